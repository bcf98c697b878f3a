"""Who may use a session: one thread at a time, no child of a fork that cannot, and Ctrl-C."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from ctypes import c_void_p
from typing import Any, Protocol

from kinglet.errors import Busy, Cancelled, Error


class Turn:
    """A handle of the library that one thread at a time may use; a second one is refused.

    While nobody uses the handle it lies in the list `free`. To take it out of a list is as safe
    among threads as a lock, and a third of the cost where a call lasts 40 microseconds and leaves
    nothing of the interpreter in the processor's caches (bench/python_calls).
    """

    __slots__ = ("_ended", "_what", "free", "handle")

    def __init__(self, handle: int, what: str) -> None:
        self.handle: Any = c_void_p.from_param(handle)  # ready to be passed, to `untyped` too
        self.free = [self.handle]
        self._what = what
        self._ended: Error | None = None

    def __enter__(self) -> Any:
        try:
            return self.free.pop()
        except IndexError:
            raise self.refusal() from None

    def __exit__(self, *exception: object) -> None:
        if self._ended is None:
            self.free.append(self.handle)

    def refusal(self) -> Error:
        """Why the handle cannot be had."""
        return self._ended or Busy(
            f"kinglet: {self._what}: expected one thread at a time, found a second; "
            "give each thread its own (they share the model's memory)"
        )

    def taken(self) -> bool:
        """Whether somebody uses the handle now."""
        return self._ended is None and not self.free

    def end(self, reason: Error) -> None:
        """From now on everybody is refused for this reason."""
        self._ended = reason
        self.free.clear()

    def ended(self) -> bool:
        return self._ended is not None


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


def interruptible(call: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Runs a long call so that Ctrl-C ends it: `cancel` makes it return, KeyboardInterrupt follows.

    Python sees signals in the main thread between its own instructions, so there the call runs in
    a thread beside. `call` must leave everything as it was when it is cancelled.
    """
    if threading.current_thread() is not threading.main_thread():
        call()
        return
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # raised again by whoever waits
            failed.append(error)
        finally:
            done.set()

    worker = threading.Thread(target=run, name="kinglet call", daemon=True)
    worker.start()
    try:
        done.wait()
    except BaseException:
        cancel()
        done.wait()
        if not failed:  # it ended first: the next call takes the cancel
            try:
                call()
            except Cancelled:
                pass
        raise
    worker.join()
    if failed:
        raise failed[0]
