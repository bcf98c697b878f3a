"""Handles: used by one thread at a time, released in children of a fork, safe with Ctrl-C.

Ctrl-C raises KeyboardInterrupt after any call that Python makes in the main thread, so what must
happen together is one call of a function that is written in C, or a `finally` that begins with one.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
import weakref
from collections.abc import Callable
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kinglet_lm._native import check, lib
from kinglet_lm.errors import Busy, Cancelled, Error, WrongOrder

if TYPE_CHECKING:
    from kinglet_lm.model import Model

T = TypeVar("T")


class Handle(c_void_p):
    """A handle of the library, which is destroyed with the last reference.

    A handle that is passed to a function lives until the function returns, even if its owner
    releases it. Functions that make a handle write to `addressof(handle)`.
    """

    def __init__(self, destroy: Callable[[Any], None]) -> None:
        super().__init__()
        self._destroy = destroy

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.value is not None and not ending():
            self._destroy(self.value)

    def leave(self) -> None:
        """Forgets the pointer in a child process, which must not destroy the parent's object."""
        self.value = None


LAST = (-1,)


class Turn:
    """A handle that one thread at a time may use; a second thread is refused.

    The user has the permit, the only element of `free`. Moving an element between lists is as
    safe among threads as a lock. Each move is one call, so that Ctrl-C finds the permit in one
    list or the other: `mine += map(pop, LAST)` takes the permit, and raises IndexError if it is
    taken; in a `finally`, `free.extend(mine)` returns it, if it was taken.
    """

    __slots__ = ("_ended", "_what", "free", "pointer", "pop")

    def __init__(self, handle: Handle, what: str) -> None:
        self.pointer: Handle | None = handle  # after the end None, which the library refuses
        self.free: list[None] = [None]
        self.pop = self.free.pop
        self._what = what
        self._ended = ""

    @property
    def handle(self) -> Handle:
        """The handle, to be passed on directly: a variable would keep it alive with its frame."""
        pointer = self.pointer
        if pointer is None:
            raise WrongOrder(self._ended)
        return pointer

    def run(self, work: Callable[[], T]) -> T:
        """Returns work() with the permit; refuses if another thread has the permit."""
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
        """`check` for calls with the argument `pointer`, which may be None after the end."""
        if self.pointer is None:
            raise WrongOrder(self._ended)
        check(status)

    def refusal(self) -> Error:
        """The error for a permit that cannot be taken."""
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
        """Refuses all further uses for this reason; the handle is destroyed with its last user."""
        self._ended = self._ended or reason
        self.pointer = None

    def ended(self) -> bool:
        return bool(self._ended)


class _Forkable(Protocol):
    def after_fork(self) -> None:
        """Called in a child process."""


_live: weakref.WeakSet[_Forkable] = weakref.WeakSet()


def watch_forks(handle: _Forkable) -> None:
    """Calls handle.after_fork() in every child process that this one forks."""
    _live.add(handle)


def _in_child() -> None:
    for handle in list(_live):
        handle.after_fork()


os.register_at_fork(after_in_child=_in_child)


class Lanes:
    """What sessions and beams share: threads of their own, and an end."""

    _turn: Turn
    _what: str  # of Model, a method of this name makes another one
    model: Model
    threads: int

    def _watch(self, model: Model, handle: Handle, what: str) -> None:
        self.model = model
        self._what = what
        self._turn = Turn(handle, what)
        watch_forks(self)

    def close(self) -> None:
        """Frees the memory now rather than with the last reference.

        May be called from any thread: a running call ends first, and then frees the memory.
        """
        self._turn.end(f"kinglet: {self._what}: expected an open one, found it closed")

    def __enter__(self: T) -> T:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def after_fork(self) -> None:
        """Ends it in a child process if its threads stayed in the parent."""
        if self._turn.ended() or not (self.threads > 1 or self._turn.taken()
                                      or self.model.backend == "cuda"):
            return
        self._turn.handle.leave()  # destroying it would wait for workers of the other process
        self._turn.end(
            f"kinglet: {self._what}: expected one made in this process, found one made before a "
            f"fork that had threads of its own; make a new one: model.{self._what}()"
        )


class _LongCall:
    """A call in a thread of its own, which another thread may cancel."""

    def __init__(self, turn: Turn, work: Callable[[Handle | None], int],
                 cancel: Callable[[Handle], int] = lib.kinglet_session_cancel) -> None:
        self._turn, self._work, self._cancel = turn, work, cancel
        self._gate = threading.Lock()
        self._begun = self._given_up = self._cancelled = False
        self._running: Handle | None = None
        self.failed: BaseException | None = None
        self.ended = False
        self._until_end = threading.Lock()
        self._until_end.acquire()

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
            self.ended = True
            self._until_end.release()

    def wait(self) -> None:
        """Waits for the end; the methods of Event and Thread break if Ctrl-C interrupts them."""
        while not self.ended:
            self._until_end.acquire()

    def _in_turn(self) -> None:
        with self._gate:
            if self._given_up:
                return
            self._running = self._turn.handle
        was_cancelled = False
        try:
            check(self._work(self._running))
        except Cancelled:
            was_cancelled = True
            raise
        finally:
            with self._gate:
                self._running = None
            # If the call ended before the cancel, a second call consumes the cancel.
            if self._cancelled and not was_cancelled:
                self._work(self._turn.pointer)

    def give_up(self) -> bool:
        """Cancels the call, even before it begins. Returns whether it has begun, and ends soon."""
        with self._gate:
            self._given_up = True
            if self._running is not None:
                self._cancelled = True
                self._cancel(self._running)
            return self._begun


def interruptible(turn: Turn, work: Callable[[Handle | None], int],
                  cancel: Callable[[Handle], int] = lib.kinglet_session_cancel) -> None:
    """Runs a long call, of a session by default, so that Ctrl-C ends it with KeyboardInterrupt.

    Python handles signals in the main thread between its own instructions, so a call of the main
    thread runs in another thread, which has the permit until the call has ended, however often
    Ctrl-C is pressed. `work` returns a status, and changes nothing if it is cancelled.
    """
    if threading.current_thread() is not threading.main_thread():
        turn.run(lambda: check(work(turn.handle)))
        return
    call = _LongCall(turn, work, cancel)
    try:
        try:
            _thread.start_new_thread(call.run, ())
            call.wait()
        except BaseException:
            if call.give_up():
                call.wait()
            raise
    except BaseException:
        call.give_up()  # again: a second Ctrl-C may have come before the first took effect
        raise
    if call.failed is not None:
        raise call.failed
