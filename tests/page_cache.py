"""The kernel's cache of what files hold, from which tests drop what they want to be cold."""

import ctypes
import mmap
import os
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE_S = 120.0
_libc = ctypes.CDLL(None, use_errno=True)


def evict(path):
    """Returns when nothing of the file is cached: the kernel may keep a page that is in use the moment it is asked."""
    deadline = time.monotonic() + PATIENCE_S
    with open(path, "r+b") as file:
        while True:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if not cached(file):
                return
            assert time.monotonic() < deadline, f"{path} stays in the page cache"
            time.sleep(0.01)


def cached(file):
    """Whether any page of the file is. Asked without reading, which would let the kernel read ahead."""
    return any(pages_cached(file))


def pages_cached(file):
    """Of each page of the file, whether it is."""
    size = os.fstat(file.fileno()).st_size
    if size == 0:
        return []
    pages = (ctypes.c_ubyte * -(-size // PAGE))()
    with mmap.mmap(file.fileno(), size) as mapped:
        start = ctypes.c_char.from_buffer(mapped)
        failed = _libc.mincore(ctypes.byref(start), ctypes.c_size_t(size), pages)
        del start  # as long as it is there the mapping can't be closed
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return [bool(page & 1) for page in pages]
