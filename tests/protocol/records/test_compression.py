"""The codecs: round trips, the frames Kafka's clients write and read, bombs and garbage."""

import gzip
import subprocess
import sys
import zlib
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwire.protocol.errors import ErrorCode
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.compression import Compression, compress, decompress

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
TEXT = b"".join(b"line %d of some text that repeats itself\n" % number for number in range(20_000))


@pytest.mark.parametrize("codec", Compression)
@given(data=st.binary(max_size=2000), times=st.integers(1, 300))
def test_round_trip(codec: Compression, data: bytes, times: int) -> None:
    packed = compress(codec, memoryview(data * times))
    assert decompress(codec, memoryview(packed)) == data * times


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_text_shrinks(codec: Compression) -> None:
    packed = compress(codec, TEXT)
    assert len(packed) < len(TEXT) / 4
    assert decompress(codec, packed) == TEXT
    assert type(decompress(codec, packed)) is bytes


@pytest.mark.parametrize(
    ("codec", "fast", "small"), [(Compression.GZIP, 1, 9), (Compression.LZ4, 9, 17), (Compression.ZSTD, -5, 19)]
)
def test_levels(codec: Compression, fast: int, small: int) -> None:
    packed = {level: compress(codec, TEXT, level) for level in (fast, small)}
    assert len(packed[small]) < len(packed[fast])
    assert all(decompress(codec, data) == TEXT for data in packed.values())


def test_default_levels_are_kafkas() -> None:
    assert (
        compress(Compression.GZIP, TEXT) == compress(Compression.GZIP, TEXT, -1) == compress(Compression.GZIP, TEXT, 6)
    )
    assert compress(Compression.LZ4, TEXT) == compress(Compression.LZ4, TEXT, 9)
    assert compress(Compression.ZSTD, TEXT) == compress(Compression.ZSTD, TEXT, 3)


def test_lz4_is_what_java_can_read() -> None:
    packed = compress(Compression.LZ4, TEXT)
    info = lz4.frame.get_frame_info(packed)
    assert not info["block_linked"]
    assert info["block_size_id"] == lz4.frame.BLOCKSIZE_MAX64KB
    assert packed[4:6] == b"\x60\x40"  # no checksums, no content size, as the Java client writes it


def test_snappy_is_xerial() -> None:
    packed = compress(Compression.SNAPPY, TEXT)
    assert packed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    first = int.from_bytes(packed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(packed[20 : 20 + first])) == TEXT[: 32 * 1024]


def test_raw_and_concatenated_snappy_are_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert decompress(Compression.SNAPPY, compress(Compression.SNAPPY, TEXT) * 2) == TEXT * 2


def test_frames_of_other_writers_are_read() -> None:
    assert decompress(Compression.GZIP, gzip.compress(TEXT) + gzip.compress(b"more")) == TEXT + b"more"
    full = lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True, store_size=True, block_linked=True)
    assert decompress(Compression.LZ4, full) == TEXT
    assert decompress(Compression.ZSTD, _zstd_of_known_size(TEXT)) == TEXT
    one = compress(Compression.ZSTD, TEXT)
    skippable = b"\x50\x2a\x4d\x18" + (3).to_bytes(4, "little") + b"abc"
    assert decompress(Compression.ZSTD, one + skippable + one) == TEXT * 2


def _zstd_of_known_size(data: bytes) -> bytes:
    """A frame of raw blocks: single segment, four bytes of content size."""
    blocks = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")
    for index, block in enumerate(blocks):
        frame += (len(block) << 3 | (index == len(blocks) - 1)).to_bytes(3, "little") + block
    return frame


def test_many_gzip_members_cost_no_more_than_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What zlib finds behind a member it copies, so that no member may be handed all the others."""
    handed_over = []

    class Counted:
        def __init__(self, **options: int) -> None:
            self.unpacker = decompressobj(**options)

        def decompress(self, data: bytes, size: int) -> bytes:
            handed_over.append(len(data))
            return self.unpacker.decompress(data, size)

        def __getattr__(self, name: str) -> object:
            return getattr(self.unpacker, name)

    decompressobj = zlib.decompressobj
    monkeypatch.setattr(zlib, "decompressobj", Counted)
    packed = gzip.compress(b"x") * 1000 + gzip.compress(TEXT)
    assert decompress(Compression.GZIP, packed) == b"x" * 1000 + TEXT
    assert sum(handed_over) < 50 * len(packed)


@pytest.mark.parametrize("codec", CODECS)
def test_no_more_than_the_limit(codec: Compression) -> None:
    packed = compress(codec, bytes(1_000_000))
    assert len(decompress(codec, packed, 1_000_000)) == 1_000_000
    with pytest.raises(CorruptBatchError, match="more than 999999 bytes"):
        decompress(codec, packed, 999_999)


def test_the_limit_holds_for_all_members_together() -> None:
    with pytest.raises(CorruptBatchError, match="more than"):
        decompress(Compression.GZIP, gzip.compress(bytes(600)) * 2, 1000)
    with pytest.raises(CorruptBatchError, match="more than"):
        decompress(Compression.SNAPPY, compress(Compression.SNAPPY, bytes(600)) * 2, 1000)
    with pytest.raises(CorruptBatchError, match="more than"):
        decompress(Compression.ZSTD, compress(Compression.ZSTD, bytes(600)) * 2, 1000)


def test_a_bomb_is_refused_without_being_unpacked() -> None:
    """Each of these claims or holds from 256 MiB to 4 GiB."""
    code = """
import resource, sys, zlib
from kwire.protocol.records import CorruptBatchError
from kwire.protocol.records.compression import Compression, decompress
packer = zlib.compressobj(1, wbits=31)
gzip_bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
block = (2 | (128 * 1024) << 3).to_bytes(3, "little") + b"x"
zstd_bomb = bytes.fromhex("28b52ffd0058") + block * 20_000 + b"\\x01\\x00\\x00"
snappy_bomb = b"\\xff\\xff\\xff\\xff\\x0f" + b"\\x00"
import cramjam, lz4.frame
limit = 8 << 20
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for codec, bomb in ((1, gzip_bomb), (4, zstd_bomb), (2, snappy_bomb)):
    try:
        decompress(Compression(codec), bomb, limit)
    except CorruptBatchError:
        print(codec)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print("grown", grown // 1024)
"""
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    done = subprocess.run([sys.executable, "-c", path + code], capture_output=True, text=True, check=True)
    *refused, last = done.stdout.splitlines()
    assert refused == ["1", "4", "2"]
    assert int(last.split()[1]) < 64  # MiB


def test_a_snappy_block_that_claims_too_much_is_not_allocated_for() -> None:
    claim = b"\x80\x80\x80\x20" + b"\x00"  # 64 MiB from a single byte
    with pytest.raises(CorruptBatchError):
        decompress(Compression.SNAPPY, claim)


@pytest.mark.parametrize("codec", CODECS)
def test_cut_short(codec: Compression) -> None:
    packed = compress(codec, TEXT[:5000])
    for size in (1, 5, 10, 15, 20, len(packed) // 2, len(packed) - 1):
        with pytest.raises(CorruptBatchError) as caught:
            decompress(codec, packed[:size])
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR, size


def test_no_data_at_all() -> None:
    """Nothing, to zstd; no frame, to the others. As in Kafka."""
    assert decompress(Compression.ZSTD, b"") == b""
    for codec in (Compression.GZIP, Compression.SNAPPY, Compression.LZ4):
        with pytest.raises(CorruptBatchError):
            decompress(codec, b"")


@pytest.mark.parametrize(
    ("codec", "rest", "overlooked"),
    [
        (Compression.GZIP, b"\0", True),
        (Compression.GZIP, b"junkjunkjunk", True),
        (Compression.SNAPPY, b"\0", True),
        (Compression.SNAPPY, b"junkjunkjunk", False),
        (Compression.LZ4, b"\0", True),
        (Compression.LZ4, b"junkjunkjunk", True),
        (Compression.ZSTD, b"\0", False),
        (Compression.ZSTD, b"junkjunkjunk", False),
    ],
)
def test_what_follows_the_frame(codec: Compression, rest: bytes, overlooked: bool) -> None:
    """Overlooked where Kafka's Java libraries overlook it."""
    packed = compress(codec, TEXT) + rest
    if overlooked:
        assert decompress(codec, packed) == TEXT
    else:
        with pytest.raises(CorruptBatchError):
            decompress(codec, packed)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=300))
def test_garbage_raises_only_our_error(codec: Compression, data: bytes) -> None:
    _decompress_or_refuse(codec, data)


@pytest.mark.parametrize("codec", CODECS)
@given(where=st.integers(0, 10_000), what=st.integers(1, 255))
def test_a_flipped_byte_raises_only_our_error(codec: Compression, where: int, what: int) -> None:
    packed = bytearray(compress(codec, TEXT[:3000] + bytes(range(256))))
    packed[where % len(packed)] ^= what
    _decompress_or_refuse(codec, bytes(packed))


def _decompress_or_refuse(codec: Compression, data: bytes) -> None:
    with suppress(CorruptBatchError):
        assert len(decompress(codec, data, 100_000)) <= 100_000


def test_libraries_are_imported_only_when_used() -> None:
    code = (
        "import kwire.protocol.records.compression as c, sys; "
        "print([m for m in ('lz4', 'cramjam', 'zlib') if m in sys.modules]); "
        "c.compress(c.Compression.LZ4, b'x'); print([m for m in ('lz4', 'cramjam') if m in sys.modules])"
    )
    path = f"import sys; sys.path[:] = {sys.path!r}; "
    done = subprocess.run([sys.executable, "-S", "-c", path + code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "['lz4']"
    assert "cramjam" not in done.stdout


def test_names_are_those_of_compression_type() -> None:
    assert [codec.config_name for codec in Compression] == ["uncompressed", "gzip", "snappy", "lz4", "zstd"]


def test_gzip_checksum_is_verified() -> None:
    packed = bytearray(compress(Compression.GZIP, TEXT[:100]))
    packed[-5] ^= 1
    with pytest.raises(CorruptBatchError):
        decompress(Compression.GZIP, packed)
    assert zlib.decompress(compress(Compression.GZIP, TEXT[:100]), wbits=31) == TEXT[:100]
