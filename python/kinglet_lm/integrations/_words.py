"""Words of a host as tokens of a model."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kinglet_lm.model import Model

_OF_WORDS = 0.9  # if more of a vocabulary's words are tokenized as themselves, tokens are words


class Words:
    """A model's tokens for a decoder's words, and whether the model knows them.

    `unigrams` are the words that a recogniser may find; the default is all words whose tokens the
    model knows: for a model of words its own, and those that its tokenizer splits into them
    (did|n't). A model of pieces (SentencePiece, byte pairs) can spell any word.
    """

    def __init__(self, model: Model, unigrams: Iterable[str] | None = None) -> None:
        self._model = model
        self._ids_of: dict[str, tuple[int, ...]] = {}
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
        found = self._ids_of.get(word)
        if found is None:
            whole = None if self.of_pieces else self._model.vocabulary.get(word)
            found = tuple(self._model.tokenize(word)) if whole is None else (whole,)
            self._ids_of[word] = found
        return found

    def knows(self, word: str) -> bool:
        """Whether the word may be found, and the model has all of its tokens."""
        if self.unigrams is not None and word not in self.unigrams:
            return False
        return self._special.isdisjoint(self.ids(word))

    def begins(self, part: str) -> bool:
        """Whether a word that may be found begins with `part`."""
        if self.unigrams is None and self.of_pieces:
            return True
        if self._begins_one(part):
            return True
        if self.unigrams is not None:
            return False
        found = self._begun.get(part)
        if found is None:
            found = self._begun[part] = any(
                self._begins_tokens(part, follows) for follows in ("", "a", "0"))
        return found

    def _begins_one(self, part: str) -> bool:
        at = bisect.bisect_left(self._sorted, part)
        return at < len(self._sorted) and self._sorted[at].startswith(part)

    def _begins_tokens(self, part: str, follows: str) -> bool:
        """Whether `part`, tokenized with `follows`, is known tokens and the beginning of one."""
        size = len(part.encode("utf-8", "surrogateescape"))
        tokens = self._model.tokenize_with_ranges(part + follows)
        whole = [(id, end) for id, _, end in (tokens if follows else tokens[:-1]) if end <= size]
        if not whole or not self._special.isdisjoint(id for id, _ in whole):
            return False
        rest = part.encode("utf-8", "surrogateescape")[whole[-1][1]:]
        return self._begins_one(rest.decode("utf-8", "surrogateescape"))


__all__ = ["Words"]
