"""Histories of tokens, for which the network runs when a caller queries them.

Decoders keep hundreds of states and extend one in four. A History is another History and a token:
a value of any process, for which a Reader finds the state of its Beam at the first query.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kinglet_lm.errors import Unsupported

if TYPE_CHECKING:
    from kinglet_lm.beam import Beam, BeamState
    from kinglet_lm.model import Model

_LANES = 8  # histories that the network reads together


class History:
    """The tokens of another history, then one. A value that is compared, hashed and pickled.

    `state` is the hypothesis of a reader's beam with these tokens, or None.
    """

    __slots__ = ("before", "hash", "id", "state")

    def __init__(self, before: History | None, id: int) -> None:
        self.before = before
        self.id = id
        self.hash: int = hash((before.hash if before is not None else 0, id))
        self.state: BeamState | None = None

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
        self._beam: Beam | None = None
        self._empty: BeamState | None = None

    def log_probability(self, history: History, id: int) -> float:
        """ln p(id | history)."""
        return self.log_probabilities(history, (id,))[0]

    def log_probabilities(self, history: History, ids: Iterable[int]) -> list[float]:
        """ln p(id | history) of many ids, with the bits of single calls."""
        return self.log_probabilities_of([(history, id) for id in ids])

    def log_probabilities_of(self, pairs: Iterable[tuple[History, int]]) -> list[float]:
        """ln p(id | history) of many pairs; the network reads its weights once for all of them."""
        pairs = list(pairs)
        with self._lock:
            states = [self._find(history) for history, _ in pairs]
            if not states:
                return []
            return list(states[0].beam.log_probability(states, [id for _, id in pairs]))

    def _find(self, history: History) -> BeamState:
        """The state of the history in this process's beam."""
        if self._beam is None or self._pid != os.getpid():
            self._beam = self.model.beam(lanes=_LANES, empty_cache="normalised")
            self._empty = self._beam.begin()
            self._pid = os.getpid()
        beam, state = self._beam, self._empty
        assert state is not None
        steps: list[History] = []
        at: History | None = history
        while at is not None:
            if at.state is not None and at.state.beam is beam:
                state = at.state
                break
            steps.append(at)
            at = at.before
        for step in reversed(steps):
            step.state = state = beam.step((state,), (step.id,))[0]
        return state

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.model,)


__all__ = ["History", "Reader", "history_of"]
