"""The kernel's cache of what files hold, from which tests drop what they want to be cold."""

import ctypes
import errno
import mmap
import os
import time

PAGE = os.sysconf("SC_PAGE_SIZE")
NOWAIT = getattr(os, "RWF_NOWAIT", 0)
PATIENCE_S = 120.0
_libc = ctypes.CDLL(None, use_errno=True)
_CACHESTAT = 451
"""The number of the system call."""


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


def pages_dirty(file, position, size):
    """How many pages of the range nobody began to bring to the disk; None where the system does not tell (Linux does
    from 6.5 on)."""
    found = (ctypes.c_uint64 * 5)()  # cached, dirty, in writing, evicted, evicted a short while ago
    asked = (ctypes.c_uint64 * 2)(position, size)
    failed = _libc.syscall(_CACHESTAT, file.fileno(), ctypes.byref(asked), ctypes.byref(found), 0)
    return None if failed else found[1]


class Looks:
    """Every os.preadv from now on: where it was, and what was found.

    One that must not wait, a look, has the system read what it finds cold, and a disk that is fast answers within it.
    Whether a range was cold to whoever looked is therefore known from the answers he got, and from nothing else.
    """

    def __init__(self, monkeypatch):
        self.found = []
        """Of each look its position and the bytes found there, None where it was refused."""
        self.waiting = []
        """The positions of the reads that were free to wait."""
        self.cold_page = None
        """A page that is answered for as if it were cold."""
        self.fast = False
        """Whether every look is answered by what it has the system read, as by a disk that takes no time."""
        self._preadv = os.preadv
        monkeypatch.setattr(os, "preadv", self._look)

    @property
    def refused(self):
        return any(found is None for _, found in self.found)

    def _look(self, descriptor, buffers, position, flags=0):
        if not flags & NOWAIT:
            self.waiting.append(position)
            return self._preadv(descriptor, buffers, position, flags)
        found = None
        try:
            found = self._answer(descriptor, buffers, position, flags)
        finally:
            self.found.append((position, found))
        return found

    def _answer(self, descriptor, buffers, position, flags):
        size = sum(map(len, buffers))
        if self.cold_page is not None:
            upto = self.cold_page * PAGE
            if upto <= position < upto + PAGE:
                raise BlockingIOError(errno.EAGAIN, "it would wait for the disk")
            if position < upto < position + size:
                buffers = [bytearray(upto - position)]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self._preadv(descriptor, buffers, position, flags)
            except BlockingIOError:
                if not self.fast or time.monotonic() > deadline:
                    raise
                time.sleep(0.001)
