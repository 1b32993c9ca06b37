"""A connected TCP socket: receiving, being attended, sending.

What is sent is sent at once, as far as the kernel takes it:

    buffers                  one gathered sendmsg
    file slice               os.sendfile, from the page cache to the socket
    both, one after another  the socket is corked meanwhile, so that header, file and trailer fill packets together
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from fcntl import ioctl
from struct import Struct
from termios import FIONREAD
from typing import Final

import trio
from trio.lowlevel import cancel_shielded_checkpoint, checkpoint, checkpoint_if_cancelled, wait_writable

from kwire.ports.attending import Attendance, Next, Receiver
from kwire.ports.files import Buffer, FileSlice
from kwire.ports.runs import BUFFERS, runs_of
from kwire.ports.seats import Caller, Seat
from kwire.ports.tcp_sending import SENDFILE_BYTES, CannotSendfile, Sending
from kwire.ports.transport import Part, StreamClosed, Streamed
from kwire.ports.turns import TURN_SECONDS

log = logging.getLogger(__name__)

RECEIVING_SECONDS: Final = 0.0005
"""For so long a stream may receive what is there already before others get their turn."""

STALE_SECONDS = 1.0
"""What has waited for room for so long may have left the page cache."""

READ_CHUNK_BYTES: Final = 256 * 1024
"""How much of a file is read at a time where it cannot be sent by sendfile."""

TELLS_OF_MANY: Final = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 10)
"""Whether the system can be asked to tell of many bytes only (SO_RCVLOWAT). Earlier ones of Linux may never tell, where
memory is short."""

_INT: Final = Struct("i")
_NO_BYTES: Final = bytes(_INT.size)


class TcpStream:
    """A connected TCP socket. Buffers given to `send` are bytes-like with items of one byte.

    A send that fails or is cancelled half-way leaves the peer with a torn frame: from then on every send fails.
    """

    def __init__(self, sock: socket.socket, peer: tuple[str, int], seat: Seat) -> None:
        self.peer_host, self.peer_port = peer
        self.patient = False
        self._socket = sock
        self._sending = Sending(sock)
        self._told_from = 1
        """Of how many bytes at least the system tells (SO_RCVLOWAT)."""
        self._seat = seat
        self._torn = False
        self._turn_ends = 0.0
        self._soon: list[Part] = []
        self._posted = False
        """Whether `push` will be called."""
        self.held_up = False
        """Whether what is left to send waits for room, without a task; meanwhile nothing is received."""
        self._waits_since = 0.0
        """When what is left to send began to wait."""
        self._receiver: Receiver | None = None
        """Who is attended without a task."""
        self._caller: Caller | None = None
        """Who calls meanwhile."""
        self._next = Next.LEAVE
        self._failure: StreamClosed | None = None
        """Why it can't be attended any longer."""
        self._attendance: Attendance | None = None
        """Present where it is attended in a task, since the seat can't call."""

    @property
    def sent(self) -> int:
        return self._sending.sent

    # Receiving

    async def receive(self, max_bytes: int) -> bytes:
        if self.patient or not self._seat.promising:
            return await self._receive(max_bytes)
        await checkpoint_if_cancelled()
        try:
            data = self._socket.recv(max_bytes)
        except BlockingIOError:
            self._seat.promising = False
        except OSError as error:
            raise closed(error) from error
        if not self._seat.promising:
            return await self._receive(max_bytes)
        self._seat.received(all_of_it=len(data) < max_bytes)
        if time.monotonic() > self._turn_ends:  # a peer that never pauses must not keep the others waiting
            await cancel_shielded_checkpoint()
            self._turn_ends = time.monotonic() + RECEIVING_SECONDS
        return data

    async def _receive(self, max_bytes: int) -> bytes:
        while True:
            try:
                await self._seat.wait(patient=self.patient)
                self._turn_ends = time.monotonic() + RECEIVING_SECONDS
                data = self._socket.recv(max_bytes)
            except BlockingIOError:
                self._seat.promising = False
                continue
            except (OSError, trio.ClosedResourceError) as error:
                raise closed(error) from error
            self._seat.received(all_of_it=len(data) < max_bytes)
            return data

    # Being attended

    async def attend(self, receiver: Receiver) -> None:
        try:
            caller = self._seat.caller(self)
            if caller is None:
                await self._attend_in_task(receiver)
                return
            self._receiver, self._caller, self._next = receiver, caller, Next.READ
            if self._soon:
                self.push()
            if self._seat.promising and not self.held_up:
                self.ready()
            await caller.until_let_go()
        except trio.ClosedResourceError as error:
            raise closed(error) from error
        finally:
            if self.held_up:
                self._wait_for_room(False)
            self._be_told_from(1)
            self._receiver, self._caller, self._next = None, None, Next.LEAVE
        self._raise_failure()

    def _raise_failure(self) -> None:
        """Why it can't be attended any longer, if anything is."""
        failure, self._failure = self._failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure  # with its traceback it would keep this call, and what the receiver refers to

    async def _attend_in_task(self, receiver: Receiver) -> None:
        self._attendance = Attendance()
        try:
            await self._attendance.run(self, receiver)
        finally:
            self._attendance = None

    def resume(self) -> None:
        if self._attendance is not None:
            self._attendance.resume()
        elif self._caller is not None:
            self._caller.call_soon()

    def resume_later(self) -> None:
        if self._attendance is not None:
            self._attendance.resume()
        elif self._caller is not None:
            self._caller.call_later()

    def send_soon(self, parts: Sequence[Part]) -> None:
        self._soon += parts
        if not self._posted and self._caller is not None:
            self._posted = True
            self._caller.push_soon(self)

    @property
    def unsent(self) -> bool:
        return bool(self._soon) or (self._attendance is not None and self._attendance.sending)

    def ready(self) -> None:
        """The seat tells that there may be something to read, or room for what is left to send."""
        caller, turn_ends = self._caller, 0.0
        if self.held_up:
            self.push()  # if that was all, what has come meanwhile is told again
            return
        while self._next is Next.READ and self._receiver is not None and caller is not None:
            wanted, room, data = self._receiver.wanted, self._receiver.room, b""
            try:
                if room is None:
                    data = self._socket.recv(wanted)
                    size = len(data)
                else:
                    wanted = len(room)
                    size = self._socket.recv_into(room)
            except BlockingIOError:
                caller.promising = False
                return
            except OSError as error:
                self._fail(closed(error))
                return
            if size < wanted:
                caller.promising = caller.ended
            asked = self._receiver.received(data) if room is None else self._receiver.filled(size)
            if self._receiver.needed != self._told_from:
                self._be_told_from(self._receiver.needed)
            if asked is not Next.READ:
                self._take(asked)
            if not caller.promising or self.held_up:
                return
            now = time.monotonic()
            turn_ends = turn_ends or now + RECEIVING_SECONDS
            if now > turn_ends and self._next is Next.READ:
                caller.look_again()
                return

    def _be_told_from(self, size: int) -> None:
        """From now on the system tells only of so many bytes, of the end, or that it holds no more of them.

        Who can do nothing with less would be woken for each piece, and keep who sends from sending.
        """
        if size == self._told_from or not TELLS_OF_MANY:
            return
        self._told_from = size
        with suppress(OSError):  # closed, or it will be told of less, as if nobody had asked
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    @property
    def arrived(self) -> int:
        if self._told_from > 1:
            with suppress(OSError, ValueError):  # closed
                (size,) = _INT.unpack(ioctl(self._socket, FIONREAD, _NO_BYTES))
                return int(size)
        return 0

    def resumed(self) -> None:
        """The seat calls back, as `resume` or `resume_later` asked for."""
        caller, receiver = self._caller, self._receiver
        if receiver is None or caller is None:
            return
        began = time.monotonic()
        self._take(receiver.resumed())
        if self._next is Next.READ and caller.promising and not self.held_up:  # else it waits for room
            if time.monotonic() - began > TURN_SECONDS:
                caller.look_again()  # that was its turn
            else:
                self.ready()

    def push(self) -> None:
        """Sends what is to be sent soon, as far as there is room. What needs more than that is left to the task."""
        self._posted = False
        if self._torn or not self._soon:
            return
        parts, self._soon, wants_room = self._soon, [], False
        try:
            if len(parts) == 1 and parts[0].__class__ is bytes and not self._sending.corked:
                left = self._sending.send(parts[0])
                if left is not None:
                    self._soon, wants_room = [left], True
            else:
                wants_room = self._send_now(parts)
                self._soon = parts
        except (OSError, ValueError, StreamClosed) as error:
            self._torn = True
            self._fail(closed(error))
        except Exception as error:  # who calls serves others too
            log.exception("sending to %s:%d failed", self.peer_host, self.peer_port)
            self._torn = True
            self._fail(closed(error))
        else:
            if wants_room or self.held_up:
                self._wait_for_room(wants_room)
            if self._soon and not wants_room:
                self._take(Next.LEAVE)

    def _wait_for_room(self, wanted: bool) -> None:
        """Has `ready` called when there is room to send, perhaps already, or not any more."""
        if self._caller is not None and self._next is not Next.LEAVE:
            if wanted and not self.held_up:
                self._waits_since = time.monotonic()
            self.held_up = wanted
            self._caller.watch_room(wanted)

    def _take(self, wanted: Next) -> None:
        if self._next is not Next.LEAVE:
            if wanted is Next.LEAVE and self.held_up:
                self._wait_for_room(False)
            self._next = wanted
            if wanted is Next.LEAVE and self._caller is not None:
                self._caller.let_go()

    def _fail(self, failure: StreamClosed) -> None:
        if self._receiver is not None:
            self._failure = failure
            self._take(Next.LEAVE)

    # Sending

    async def send(self, parts: Sequence[Part]) -> None:
        if self._seat.joined:
            # The others of this pass handle what they received first, then all send: a client that waits for answers to
            # many requests is woken by the first and finds the rest there. To wake it for each would be a quarter of
            # what a small request costs.
            await checkpoint()
        if self._torn:
            raise StreamClosed("an earlier send did not finish")
        if self._soon:
            parts, self._soon = [*self._soon, *parts], []
        else:
            self._waits_since = time.monotonic()
        try:
            await self._send(parts)
            if self._sending.corked:
                self._sending.cork(False)
        except (OSError, ValueError, trio.ClosedResourceError) as error:
            self._torn = True
            raise closed(error) from error
        except BaseException:
            self._torn = True
            raise

    async def _send(self, parts: Sequence[Part]) -> None:
        if len(parts) == 1 and isinstance(parts[0], bytes):
            rest = self._sending.send(parts[0])
            if rest is not None:
                await self._send_buffers([rest])
            return
        runs = runs_of(parts)
        if len(runs) == 1 and isinstance(runs[0], list):
            await self._send_buffers(runs[0])
        elif runs:
            await self._send_runs(runs)

    async def _send_runs(self, runs: list[list[Buffer] | FileSlice | Streamed]) -> None:
        self._sending.cork(True)
        shared = self._sending.sent
        for run in runs:
            if self._sending.sent - shared >= SENDFILE_BYTES:
                await checkpoint()
                shared = self._sending.sent
            if isinstance(run, FileSlice):
                await self._send_slice(run)
            elif isinstance(run, list):
                await self._send_buffers(run)
            else:
                await self._send_streamed(run)

    async def _send_buffers(self, buffers: list[Buffer]) -> None:
        while buffers := self._sending.offer(buffers):
            await wait_writable(self._socket.fileno())

    async def _send_streamed(self, part: Streamed) -> None:
        position = 0
        while position < len(part):
            data = await part.read_from(position)
            await self._send_buffers([data])
            position += len(data)

    async def _send_slice(self, part: FileSlice) -> None:
        while True:
            if self._has_gone_cold(part):
                await trio.to_thread.run_sync(part.file.load, part.position, min(part.size, SENDFILE_BYTES))
            has_room = can_sendfile = True
            rest: FileSlice | None = part
            try:
                rest = self._sending.offer_slice(part)
            except BlockingIOError:
                has_room = False
            except CannotSendfile:
                can_sendfile = False
            # Not amid an error: who is compiled leaves it to all that runs meanwhile.
            if not can_sendfile:
                await self._send_by_reading(part)
                return
            if not has_room:
                await wait_writable(self._socket.fileno())
                continue
            if rest is None:
                return
            part = rest
            await checkpoint()

    async def _send_by_reading(self, part: FileSlice) -> None:
        position, end = part.position, part.position + part.size
        while position < end:
            data = _read(part, position, min(end - position, READ_CHUNK_BYTES))
            await self._send_buffers([data])
            position += len(data)

    # What does not wait

    def _send_now(self, parts: list[Part]) -> bool:
        """Sends what the kernel takes at once, and takes it out of `parts`. Returns whether room is all that the rest
        needs.

        Raises OSError, StreamClosed.
        """
        others_turn = self._sending.sent + SENDFILE_BYTES
        while parts:
            if self._sending.sent >= others_turn:
                return True  # there may be room, and then it is told of at once
            part = parts[0]
            if isinstance(part, FileSlice):
                if self.held_up and self._has_gone_cold(part):
                    return False  # the task can have it loaded
                if len(parts) > 1 and not self._sending.corked:
                    self._sending.cork(True)
                try:
                    rest = self._sending.offer_slice(part)
                except BlockingIOError:
                    return True
                except CannotSendfile:
                    return False
                if rest is not None:
                    parts[0] = rest
                    return True
                del parts[0]
            elif isinstance(part, BUFFERS):
                buffers: list[Buffer] = []
                for later in parts:
                    if not isinstance(later, BUFFERS):
                        break
                    buffers.append(later)
                if len(buffers) < len(parts):
                    self._sending.cork(True)
                left = self._sending.offer(buffers)
                parts[: len(buffers)] = left
                if left:
                    return True
            else:
                return False
        if self._sending.corked:  # until all of it is sent
            self._sending.cork(False)
        return False

    def _has_gone_cold(self, part: FileSlice) -> bool:
        """Whether it was in the page cache when the answer was made, and is not any more: sendfile would wait for the
        disk, and everybody with it."""
        if time.monotonic() - self._waits_since < STALE_SECONDS:
            return False
        return part.file.fileno() is not None and not part.file.resident(part.position, min(part.size, SENDFILE_BYTES))

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._seat.leave()
            self._socket.close()
            if self._attendance is not None:
                self._attendance.end(StreamClosed("this side was closed"))


def closed(error: Exception) -> StreamClosed:
    """What a failure of a socket is to who uses the stream."""
    if isinstance(error, StreamClosed):
        return error
    return StreamClosed((error.strerror if isinstance(error, OSError) else None) or "this side was closed")


def _read(part: FileSlice, position: int, size: int) -> bytes:
    data = part.file.pread(size, position)
    if len(data) != size:
        raise StreamClosed(f"{part.file.path} ends before byte {position + size}")
    return data
