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

    `unigrams` are the words that may be heard; without them those whose tokens the model knows:
    of a model of words its own, and those that its tokenizer cuts into them (did|n't). A model of
    pieces (SentencePiece, byte pairs) can spell any word.
    """

    def __init__(self, model: Model, unigrams: Iterable[str] | None = None) -> None:
        self._model = model
        self._cut: dict[str, tuple[int, ...]] = {}
        vocabulary = list(model.vocabulary)
        whole = sum(model.tokenize(word) == [id] for id, word in enumerate(vocabulary))
        self.of_pieces = whole < _OF_WORDS * len(vocabulary)
        self._special = {model.vocabulary.begin, model.vocabulary.end, model.vocabulary.unknown}
        self.unigrams = None if unigrams is None else frozenset(unigrams)
        self._sorted: list[str] = []
        if self.unigrams is not None:
            self._sorted = sorted(self.unigrams)
        elif not self.of_pieces:
            self._sorted = sorted(
                word for id, word in enumerate(vocabulary) if id not in self._special)
        self._begun: dict[str, bool] = {}

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
        return self._special.isdisjoint(self.ids(word))

    def begins(self, part: str) -> bool:
        """Whether a word that may be heard begins so."""
        if self.unigrams is None and self.of_pieces:
            return True
        if self._begins_one(part):
            return True
        if self.unigrams is not None:
            return False
        found = self._begun.get(part)
        if found is None:
            found = self._begun[part] = any(
                self._begins_cut(part, follows) for follows in ("", "a", "0"))
        return found

    def _begins_one(self, part: str) -> bool:
        at = bisect.bisect_left(self._sorted, part)
        return at < len(self._sorted) and self._sorted[at].startswith(part)

    def _begins_cut(self, part: str, follows: str) -> bool:
        """Whether `part`, cut as before `follows`, is known tokens and the beginning of one."""
        size = len(part.encode("utf-8", "surrogateescape"))
        cut = self._model.tokenize_with_ranges(part + follows)
        whole = [(id, end) for id, _, end in (cut if follows else cut[:-1]) if end <= size]
        if not whole or not self._special.isdisjoint(id for id, _ in whole):
            return False
        rest = part.encode("utf-8", "surrogateescape")[whole[-1][1]:]
        return self._begins_one(rest.decode("utf-8", "surrogateescape"))


__all__ = ["Words"]
