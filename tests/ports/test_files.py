"""All file systems keep the promises of the port; each also what only it can."""

import errno
import gc
import os
import subprocess
import sys
import time

import pytest

from kwire.ports import real_files
from kwire.ports.files import FileSlice, FileSystem
from kwire.ports.memory_files import MemoryFileSystem
from kwire.ports.real_files import PosixFileSystem
from kwire.ports.simulated_disk import SimulatedDisk

from ..page_cache import Looks, evict, pages_dirty


@pytest.fixture(params=["real", "memory", "simulated disk"])
def place(request, tmp_path) -> tuple[FileSystem, str]:
    if request.param == "real":
        return PosixFileSystem(), str(tmp_path)
    files = MemoryFileSystem() if request.param == "memory" else SimulatedDisk()
    files.make_dirs("/data")
    return files, "/data"


def test_bytes_are_read_where_they_were_written(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    assert file.pwrite([b"abc", memoryview(b"defg"), bytearray(b"h")], 0) == 8
    assert file.pwrite([b"XY"], 2) == 2
    assert file.pread(100, 0) == b"abXYefgh"
    assert file.pread(3, 5) == b"fgh"
    assert file.pread(3, 8) == b""
    assert file.size() == files.file_size(f"{root}/a") == 8
    assert FileSlice(file, 1, 3).read() == b"bXY"
    assert FileSlice(file, 1, 3) == FileSlice(file, 1, 3)
    assert FileSlice(file, 1, 3) != FileSlice(file, 1, 2)
    assert FileSlice(file, 1, 3) != b"bXY"
    assert f"{FileSlice(file, 1, 3)}" == f"FileSlice({file}, 1, 3)"


def test_a_gap_reads_as_zeros_and_truncate_goes_both_ways(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    file.pwrite([b"end"], 5)
    assert file.pread(8, 0) == bytes(5) + b"end"
    file.truncate(6)
    assert file.pread(8, 0) == bytes(5) + b"e"
    file.truncate(9)
    assert file.pread(9, 0) == bytes(5) + b"e" + bytes(3)
    file.sync()


def test_what_is_begun_to_be_written_stays_as_it_is(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    file.pwrite([b"0123456789"], 0)
    file.begin_writing(0, 10)
    file.begin_writing(1_000_000, 10)  # nothing is there
    file.pwrite([b"ABC"], 8)
    file.sync()
    assert file.pread(100, 0) == b"01234567ABC"
    file.begin_writing(0, 8)
    file.close()


def test_more_buffers_than_one_system_call_takes(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    buffers = [bytes([i % 251]) * (i % 5) for i in range(3000)]
    assert file.pwrite(buffers, 7) == sum(map(len, buffers))
    assert file.pread(10_000, 7) == b"".join(buffers)


def test_open_of_a_missing_file_and_in_a_missing_folder(place):
    files, root = place
    with pytest.raises(FileNotFoundError):
        files.open(f"{root}/missing")
    with pytest.raises(FileNotFoundError):
        files.open(f"{root}/no/such/folder", create=True)
    assert not files.exists(f"{root}/missing")


def test_names_in_a_folder(place):
    files, root = place
    files.make_dirs(f"{root}/t-0/deep")
    files.make_dirs(f"{root}/t-0")
    files.open(f"{root}/b", create=True)
    files.open(f"{root}/a", create=True)
    assert files.list(root) == ["a", "b", "t-0"]
    assert files.list(f"{root}/t-0") == ["deep"]
    with pytest.raises(FileNotFoundError):
        files.list(f"{root}/nothing")


def test_syncing_a_folder(place):
    files, root = place
    files.make_dirs(f"{root}/t-0")
    files.sync_dir(f"{root}/t-0")
    files.rename(f"{root}/t-0", f"{root}/t-1")
    files.sync_dir(f"{root}/t-1")
    with pytest.raises(FileNotFoundError):
        files.sync_dir(f"{root}/t-0")


def test_an_open_file_outlives_its_name(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    file.pwrite([b"kept"], 0)
    files.rename(f"{root}/a", f"{root}/b")
    files.open(f"{root}/a", create=True).pwrite([b"other"], 0)
    assert file.pread(9, 0) == b"kept"
    files.remove(f"{root}/b")
    assert file.pread(9, 0) == b"kept"
    with pytest.raises(FileNotFoundError):
        files.remove(f"{root}/b")


def test_rename_replaces_a_file_and_moves_a_folder(place):
    files, root = place
    files.make_dirs(f"{root}/old/in")
    files.open(f"{root}/old/in/x", create=True).pwrite([b"1"], 0)
    files.rename(f"{root}/old", f"{root}/new")
    assert files.read(f"{root}/new/in/x") == b"1"
    assert not files.exists(f"{root}/old")
    files.open(f"{root}/new/in/y", create=True).pwrite([b"2"], 0)
    files.rename(f"{root}/new/in/y", f"{root}/new/in/x")
    assert files.list(f"{root}/new/in") == ["x"]
    assert files.read(f"{root}/new/in/x") == b"2"
    with pytest.raises(FileNotFoundError):
        files.rename(f"{root}/new/in/x", f"{root}/missing/x")
    assert files.read(f"{root}/new/in/x") == b"2"
    files.remove_tree(f"{root}/new")
    assert files.list(root) == []


def test_only_an_empty_folder_is_removed(place):
    files, root = place
    files.make_dirs(f"{root}/a/b")
    with pytest.raises(OSError, match="not empty"):
        files.remove_dir(f"{root}/a")
    files.remove_dir(f"{root}/a/b")
    assert files.list(f"{root}/a") == []
    with pytest.raises(FileNotFoundError):
        files.remove_dir(f"{root}/a/b")


def test_an_atomic_write_leaves_no_temporary(place):
    files, root = place
    files.write_atomically(f"{root}/c", b"one")
    files.write_atomically(f"{root}/c", b"two and more")
    assert files.read(f"{root}/c") == b"two and more"
    assert files.list(root) == ["c"]
    files.sync_dir(root)


def test_a_write_in_place_replaces_the_whole_content(place):
    files, root = place
    files.write(f"{root}/c", b"long and longer")
    files.write(f"{root}/c", b"short")
    assert files.read(f"{root}/c") == b"short"
    assert files.list(root) == ["c"]
    with pytest.raises(FileNotFoundError):
        files.write(f"{root}/missing/c", b"")


def test_a_lock_has_one_holder(place):
    files, root = place
    lock = files.lock(f"{root}/.lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{root}/.lock")
    lock.release()
    files.lock(f"{root}/.lock").release()


def test_space(place):
    files, root = place
    total, usable = files.space(root)
    assert 0 < usable <= total


def test_a_lock_keeps_out_another_process(tmp_path):
    files = PosixFileSystem()
    lock = files.lock(f"{tmp_path}/.lock")
    program = f"from kwire.ports.real_files import PosixFileSystem as F; F().lock({str(tmp_path)!r} + '/.lock')"
    blocked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "BlockingIOError" in blocked.stderr
    lock.release()
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_refused_attempt_in_this_process_does_not_let_a_java_broker_in(tmp_path):
    """Java takes record locks, and a process that closes a file loses all of its own on it."""
    files = PosixFileSystem()
    lock = files.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{tmp_path}/.lock")
    program = f"import fcntl; fcntl.lockf(open({str(tmp_path)!r} + '/.lock', 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    blocked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "BlockingIOError" in blocked.stderr
    lock.release()
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_descriptor_closes_with_the_last_reference(tmp_path):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    descriptor = file.fileno()
    part = FileSlice(file, 0, 1)
    del file
    gc.collect()
    os.fstat(descriptor)
    del part
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_the_system_begins_to_write(tmp_path):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    size = 1 << 20
    file.pwrite([os.urandom(size)], 0)
    if not pages_dirty(file, 0, size):
        pytest.skip("this system does not tell what is dirty, or this file system writes nothing to a disk")
    file.begin_writing(0, size)
    deadline = time.monotonic() + 20  # by itself the system begins after 30 s
    while pages_dirty(file, 0, size):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_system_is_had_to_write_without_a_wait_where_it_can_be(tmp_path, monkeypatch):
    calls = []
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    file.pwrite([b"abc"], 0)
    monkeypatch.setattr(real_files, "_sync_file_range", lambda: lambda *arguments: calls.append(arguments))
    file.begin_writing(4096, 8192)
    assert calls == [(file.fileno(), 4096, 8192, 2)]
    monkeypatch.setattr(real_files, "_sync_file_range", lambda: None)
    file.begin_writing(0, 3)
    file.sync()
    assert file.pread(3, 0) == b"abc"


def test_evicted_pages_are_not_resident(tmp_path, monkeypatch):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    size = 1 << 20
    file.pwrite([os.urandom(size)], 0)
    if not file.resident(0, size):
        pytest.skip("this file system cannot tell what is cached")
    evict(f"{tmp_path}/a")
    looks = Looks(monkeypatch)
    assert file.resident(0, size) != looks.refused
    assert looks.found
    assert not looks.waiting
    file.pread(size, 0)
    assert file.resident(0, size)
    assert file.resident(size, 0)


def test_what_is_resident_is_read_without_waiting(place):
    files, root = place
    file = files.open(f"{root}/a", create=True)
    file.pwrite([b"0123456789"], 0)
    assert bytes(file.read_resident(4, 3)) == b"3456"
    assert bytes(file.read_resident(10, 0)) == b"0123456789"
    assert file.read_resident(4, 7) is None  # it ends before


def test_what_was_evicted_is_not_read_without_waiting(tmp_path, monkeypatch):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    content = os.urandom(3 * 4096)
    file.pwrite([content], 0)
    if file.read_resident(len(content), 0) is None:
        pytest.skip("this file system cannot tell what is cached")
    evict(f"{tmp_path}/a")
    looks = Looks(monkeypatch)
    found = file.read_resident(100, 5000)
    assert found == (None if looks.refused else content[5000:5100])
    assert len(looks.found) == 1
    assert not looks.waiting
    assert file.pread(4096, 4096) == content[4096:8192]
    assert file.read_resident(100, 5000) == content[5000:5100]
    looks.cold_page = 2
    assert file.read_resident(4096, 5000) is None  # its end is cold


def test_what_a_fault_does_in_memory():
    files = MemoryFileSystem()
    files.make_dirs("/d")
    file = files.open("/d/a", create=True)
    file.pwrite([b"whole"], 0)
    files.fault = lambda operation, path, size: 2 if operation == "write" else None
    with pytest.raises(OSError, match="No space") as caught:
        file.pwrite([b"torn"], 5)
    assert caught.value.errno == errno.ENOSPC
    assert file.pread(99, 0) == b"wholeto"


def test_a_power_cut_in_memory_keeps_what_was_synced():
    files = MemoryFileSystem()
    files.make_dirs("/d")
    file = files.open("/d/a", create=True)
    file.pwrite([b"synced"], 0)
    file.sync()
    file.pwrite([b"lost"], 6)
    files.lock("/d/.lock")
    files.lose_power()
    assert files.read("/d/a") == b"synced"
    files.lock("/d/.lock")
    file.pwrite([b"more"], 6)
    files.lose_power(lambda synced, size: synced + 1 if size > synced else size)
    assert files.read("/d/a") == b"syncedm"


def test_a_write_that_the_system_takes_in_parts(tmp_path, monkeypatch):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    pwritev = os.pwritev

    def a_little(descriptor, buffers, position):
        return pwritev(descriptor, [b"".join(buffers)[:5]], position)

    monkeypatch.setattr(os, "pwritev", a_little)
    assert file.pwrite([b"abc", memoryview(b"defghi"), b"jklmn"], 2) == 14
    assert file.pread(20, 0) == bytes(2) + b"abcdefghijklmn"


def test_a_write_that_fails_amid_says_so(tmp_path, monkeypatch):
    file = PosixFileSystem().open(f"{tmp_path}/a", create=True)
    pwritev = os.pwritev
    calls = []

    def full_after_5(descriptor, buffers, position):
        calls.append(position)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return pwritev(descriptor, [b"".join(buffers)[:5]], position)

    monkeypatch.setattr(os, "pwritev", full_after_5)
    with pytest.raises(OSError, match="No space"):
        file.pwrite([b"abcdefgh"], 0)


def test_syncing_a_volume_and_writing_without_waiting(place):
    files, root = place
    files.write_atomically(f"{root}/a", b"1", sync=False)
    files.sync_volume(root)
    assert files.read(f"{root}/a") == b"1"
    assert files.list(root) == ["a"]
