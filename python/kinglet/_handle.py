"""Who may use a handle: one thread at a time, no child of a fork that cannot, and Ctrl-C.

Ctrl-C raises KeyboardInterrupt after any call that Python makes in the main thread, so what must
happen together is one call of a function that is written in C, or a `finally` that begins with one.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from ctypes import c_void_p
from typing import Any, Protocol, TypeVar

from kinglet._native import check, lib
from kinglet.errors import Busy, Cancelled, Error, WrongOrder

T = TypeVar("T")


class Handle(c_void_p):
    """A handle of the library, which is destroyed when nothing refers to it any more.

    Passed to a function, it lives until the function returns, also where its owner lets go of it.
    Functions that make a handle write it here: `addressof(handle)`.
    """

    def __init__(self, destroy: Callable[[Any], None]) -> None:
        super().__init__()
        self._destroy = destroy

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.value is not None and not ending():
            self._destroy(self.value)

    def leave(self) -> None:
        """In a child process: what belongs to the parent is not destroyed here."""
        self.value = None


LAST = (-1,)


class Turn:
    """A handle that one thread at a time may use; a second one is refused.

    Who uses it holds the permit, the one element of `free`. To move it from list to list is as
    safe among threads as a lock. One call moves it, so that Ctrl-C finds it in one or the other:
    `mine += map(pop, LAST)` takes it, and raises IndexError where there is none; in a
    `finally`, `free.extend(mine)` gives back what was taken, if anything.
    """

    __slots__ = ("_ended", "_what", "free", "pointer", "pop")

    def __init__(self, handle: Handle, what: str) -> None:
        self.pointer: Handle | None = handle  # None, which the library refuses, once it has ended
        self.free: list[None] = [None]
        self.pop = self.free.pop
        self._what = what
        self._ended = ""

    @property
    def handle(self) -> Handle:
        """To be passed on at once: a variable would keep it alive with a frame."""
        pointer = self.pointer
        if pointer is None:
            raise WrongOrder(self._ended)
        return pointer

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns; another thread that comes meanwhile is refused."""
        mine: list[None] = []
        try:
            try:
                mine += map(self.pop, LAST)
            except IndexError:
                raise self.refusal() from None
            return work()
        finally:
            self.free.extend(mine)

    def check(self, status: int) -> None:
        """`check`, for calls that got `pointer`."""
        if self.pointer is None:
            raise WrongOrder(self._ended)
        check(status)

    def refusal(self) -> Error:
        """Why the permit cannot be had."""
        if self._ended:
            return WrongOrder(self._ended)
        return Busy(
            f"kinglet: {self._what}: expected one thread at a time, found a second; "
            "give each thread its own (they share the model's memory)"
        )

    def taken(self) -> bool:
        """Whether a thread uses the handle now."""
        return not self.free

    def end(self, reason: str) -> None:
        """From now on all are refused for this reason; the handle ends with its last user."""
        self._ended = self._ended or reason
        self.pointer = None

    def ended(self) -> bool:
        return bool(self._ended)


class _Forkable(Protocol):
    def after_fork(self) -> None: ...


_live: weakref.WeakSet[_Forkable] = weakref.WeakSet()


def watch_forks(handle: _Forkable) -> None:
    """Calls handle.after_fork() in every child process that fork makes of this one."""
    _live.add(handle)


def _in_child() -> None:
    for handle in list(_live):
        handle.after_fork()


os.register_at_fork(after_in_child=_in_child)


class _LongCall:
    """A call of a session in a thread of its own, which another thread may give up."""

    def __init__(self, turn: Turn, work: Callable[[Handle | None], int]) -> None:
        self._turn, self._work = turn, work
        self._gate = threading.Lock()
        self._begun = self._given_up = self._cancelled = False
        self._running: Handle | None = None
        self.failed: BaseException | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        with self._gate:
            if self._given_up:  # the turn is another call's by now
                return
            self._begun = True
        try:
            self._turn.run(self._in_turn)
        except BaseException as error:  # raised again by the thread that waits
            self.failed = error
        finally:
            self.ended.set()

    def _in_turn(self) -> None:
        with self._gate:
            if self._given_up:
                return
            self._running = self._turn.handle
        heard = False
        try:
            check(self._work(self._running))
        except Cancelled:
            heard = True
            raise
        finally:
            with self._gate:
                self._running = None
            if self._cancelled and not heard:  # the call ended first: a second one takes the cancel
                self._work(self._turn.pointer)

    def give_up(self) -> bool:
        """Cancels the call; whether it has begun, and so ends soon. Else it never takes the turn."""
        with self._gate:
            self._given_up = True
            if self._running is not None:
                self._cancelled = True
                lib.kinglet_session_cancel(self._running)
            return self._begun


def interruptible(turn: Turn, work: Callable[[Handle | None], int]) -> None:
    """Runs a long call of a session so that Ctrl-C ends it, and KeyboardInterrupt follows.

    Python sees signals in the main thread between its own instructions, so there the call runs in
    a thread of its own, which has the turn until the call has ended, however often Ctrl-C is
    pressed. `work` returns a status, and leaves everything as it was when it is cancelled.
    """
    if threading.current_thread() is not threading.main_thread():
        turn.run(lambda: check(work(turn.handle)))
        return
    call = _LongCall(turn, work)
    worker = threading.Thread(target=call.run, name="kinglet call", daemon=True)
    try:
        try:
            worker.start()
            call.ended.wait()
        except BaseException:
            if call.give_up():
                call.ended.wait()
            raise
    except BaseException:
        call.give_up()  # again: a second Ctrl-C may have come before the first was heard
        raise
    worker.join()
    if call.failed is not None:
        raise call.failed
