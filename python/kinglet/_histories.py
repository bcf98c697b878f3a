"""Histories of tokens, for which the network runs when a caller queries them.

Decoders keep hundreds of states and extend one in four. A History is another History and a token,
and costs nothing; a Reader steps the network through it at the first query.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kinglet.errors import Unsupported

if TYPE_CHECKING:
    from kinglet.model import Model
    from kinglet.session import Session
    from kinglet.state import State


class History:
    """The tokens of another history, then one. A value that is compared, hashed and pickled.

    `saved` is the network's memory after the tokens, saved when a reader moves on to another.
    """

    __slots__ = ("before", "hash", "id", "saved")

    def __init__(self, before: History | None, id: int) -> None:
        self.before = before
        self.id = id
        self.hash: int = hash((before.hash if before is not None else 0, id))
        self.saved: State | None = None

    def ids(self) -> list[int]:
        """All tokens of the history, the first one first."""
        found = []
        at: History | None = self
        while at is not None:
            found.append(at.id)
            at = at.before
        return found[::-1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        a: History | None = self
        b: History | None = other
        while a is not b:
            if a is None or b is None or a.hash != b.hash or a.id != b.id:
                return False
            a, b = a.before, b.before
        return True

    def __hash__(self) -> int:
        return self.hash

    def __reduce__(self) -> tuple[object, ...]:
        return history_of, (self.ids(),)

    def __repr__(self) -> str:
        return f"History of {self.ids()}"


def history_of(ids: Iterable[int]) -> History:
    """The history of these tokens, at least one."""
    at: History | None = None
    for id in ids:
        at = History(at, id)
    if at is None:
        raise ValueError("ids: expected at least one, found none")
    return at


class Reader:
    """A model's log-probabilities after histories. Threads take turns; forks start afresh."""

    def __init__(self, model: Model) -> None:
        words = model.vocabulary
        if words.begin is None or words.end is None or not words.has_words:
            raise Unsupported(
                f"kinglet: {model.path or 'model'}: expected words, a token that begins a text and "
                "one that ends it, found a model without; convert it with --vocab")
        self.model = model
        self.end: int = words.end
        self.start = History(None, words.begin)
        self._lock = threading.RLock()
        self._pid = 0
        self._session: Session | None = None
        self._at: History | None = None

    def log_probability(self, history: History, id: int) -> float:
        """ln p(id | history)."""
        with self._lock:
            return self._go(history).log_probability(id)

    def log_probabilities(self, history: History, ids: Iterable[int]) -> list[float]:
        """ln p(id | history) of many ids, with the bits of single calls."""
        with self._lock:
            return list(self._go(history).log_probabilities(ids))

    def _go(self, history: History) -> Session:
        """Steps the lane to the end of the history."""
        if self._session is None or self._pid != os.getpid():
            self._session = self.model.session(empty_cache="normalised")
            self._at = None
            self._pid = os.getpid()
        session = self._session
        if self._at is history:
            return session
        if self._at is not None and self._at.saved is None:
            self._at.saved = session.save()  # hosts query a history several times
        steps: list[int] = []
        at: History | None = history
        while at is not None and at is not self._at and at.saved is None:
            steps.append(at.id)
            at = at.before
        if at is None:
            session.reset()
        elif at is not self._at:
            assert at.saved is not None
            session.restore(at.saved)
        self._at = None
        for id in reversed(steps):
            session.step(id)
        self._at = history
        return session

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model,)


__all__ = ["History", "Reader", "history_of"]
