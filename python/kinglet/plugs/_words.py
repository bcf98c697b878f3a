"""Words of a host as tokens of a model."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinglet.model import Model

_OF_WORDS = 0.9  # the share of a vocabulary that is cut as itself where tokens are whole words


class Words:
    """What a decoder's words are to a model: their tokens, and whether it knows them.

    `unigrams` are the words that may be heard; without them those of the vocabulary. A model of
    pieces (SentencePiece, byte pairs) can spell any word: without unigrams it knows all of them.
    """

    def __init__(self, model: Model, unigrams: Iterable[str] | None = None) -> None:
        self._model = model
        self._cut: dict[str, tuple[int, ...]] = {}
        vocabulary = list(model.vocabulary)
        whole = sum(model.tokenize(word) == [id] for id, word in enumerate(vocabulary))
        self.of_pieces = whole < _OF_WORDS * len(vocabulary)
        self.unigrams: frozenset[str] | None = None
        if unigrams is not None:
            self.unigrams = frozenset(unigrams)
        elif not self.of_pieces:
            special = {model.vocabulary.begin, model.vocabulary.end, model.vocabulary.unknown}
            self.unigrams = frozenset(
                word for id, word in enumerate(vocabulary) if id not in special)
        self._sorted = sorted(self.unigrams or ())

    def ids(self, word: str) -> tuple[int, ...]:
        """The tokens of a word; those of unknown words include the model's unknown one."""
        found = self._cut.get(word)
        if found is None:
            whole = None if self.of_pieces else self._model.vocabulary.get(word)
            found = tuple(self._model.tokenize(word)) if whole is None else (whole,)
            self._cut[word] = found
        return found

    def knows(self, word: str) -> bool:
        """Whether it may be heard, and the model has all of its tokens."""
        if self.unigrams is not None and word not in self.unigrams:
            return False
        return self._model.vocabulary.unknown not in self.ids(word)

    def begins(self, part: str) -> bool:
        """Whether a word that may be heard begins so."""
        if self.unigrams is None:
            return True
        at = bisect.bisect_left(self._sorted, part)
        return at < len(self._sorted) and self._sorted[at].startswith(part)


__all__ = ["Words"]
