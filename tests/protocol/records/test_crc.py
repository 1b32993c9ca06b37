"""The checksum, and that loading it stays cheap."""

import subprocess
import sys

from kwire.protocol.records import crc


def test_known_vectors() -> None:
    assert crc.crc32c(b"") == 0
    assert crc.crc32c(b"123456789") == 0xE3069283  # the check value of the CRC catalogue
    assert crc.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_continues_from_what_came_before() -> None:
    data = bytes(range(256)) * 300
    assert crc.crc32c(memoryview(data)[1000:], crc.crc32c(data[:1000])) == crc.crc32c(bytearray(data))


def test_importing_it_does_not_import_the_package_metadata_machinery() -> None:
    code = (
        "import sys; before = set(sys.modules); import kwire.protocol.records.crc; "
        "print(*sorted((set(sys.modules) - before) & {'crc32c', 'importlib.metadata', 'email', 'argparse'}))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", _PATH + code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


_PATH = f"import sys; sys.path[:] = {sys.path!r}; "


def test_the_package_itself_serves_where_the_extension_is_not_found(monkeypatch) -> None:
    import crc32c

    monkeypatch.setattr(crc.PathFinder, "find_spec", lambda *_: None)
    assert crc._load() is crc32c.crc32c
