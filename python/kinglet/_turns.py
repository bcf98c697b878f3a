"""Who may use a session: one thread at a time, no child of a fork that cannot, and Ctrl-C."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from kinglet.errors import Busy, Cancelled


class Turn:
    """Entered by one thread at a time; a second one is refused, not kept waiting."""

    __slots__ = ("_lock", "_what", "give", "take")

    def __init__(self, what: str) -> None:
        self._lock = threading.Lock()
        self._what = what
        # What `with` does, for calls that are so short that `with` would be seen.
        self.take = self._lock.acquire
        self.give = self._lock.release

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise self.refusal()

    def refusal(self) -> Busy:
        return Busy(
            f"kinglet: {self._what}: expected one thread at a time, found a second; "
            "give each thread its own (they share the model's memory)"
        )

    def __exit__(self, *exception: object) -> None:
        self._lock.release()

    def taken(self) -> bool:
        return self._lock.locked()


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
