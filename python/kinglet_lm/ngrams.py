"""N-gram files, and scores of a network, n-grams and phrases together."""

from __future__ import annotations

import ctypes
import os
from ctypes import addressof, c_double, c_uint32
from typing import TYPE_CHECKING

from kinglet_lm._buffers import TextOrIds, address, uint32s
from kinglet_lm._handle import Handle
from kinglet_lm._native import check, lib, number_of
from kinglet_lm.errors import InvalidArgument

if TYPE_CHECKING:
    from kinglet_lm.model import Model

_STATE_BYTES = 32  # of a kinglet_ngram_state
_ADDED, _MIXED = 0, 1  # kinglet_ngram_use


class Ngrams:
    """An n-gram file, which `kinglet ngram` makes of an ARPA file. Threads may share it.

    A state is bytes: the words before, as far as the n-grams distinguish them. Equal states have
    equal futures.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.handle = Handle(lib.kinglet_ngrams_destroy)
        check(lib.kinglet_ngrams_open(os.fsencode(self.path), addressof(self.handle)))

    def __reduce__(self) -> tuple[object, ...]:
        return Ngrams, (self.path,)

    def word(self, text: str) -> int:
        """The number of a word: that of <unk> if the n-grams lack it."""
        data = text.encode("utf-8", "surrogateescape")
        return int(number_of(c_uint32, lambda out: lib.kinglet_ngrams_word(
            self.handle, data, len(data), out)))

    def begin(self, sentence: bool = True) -> bytes:
        """The state after <s>, or the one with no word before."""
        state = ctypes.create_string_buffer(_STATE_BYTES)
        check(lib.kinglet_ngrams_begin(self.handle, int(sentence), addressof(state)))
        return state.raw

    def score(self, state: bytes, word: str | int) -> tuple[float, bytes]:
        """The log-probability of a word after a state, and the state that follows."""
        if len(state) != _STATE_BYTES:
            raise InvalidArgument(
                f"kinglet: state: expected {_STATE_BYTES} bytes, found {len(state)}; begin() and "
                "score() return states")
        number = c_uint32(word if isinstance(word, int) else self.word(word))
        at, value = ctypes.create_string_buffer(state, _STATE_BYTES), c_double()
        check(lib.kinglet_ngrams_score(self.handle, addressof(at), addressof(number), 1,
                                       addressof(at), addressof(value)))
        return value.value, at.raw

    def sentence(self, text: str) -> float:
        """The log-probability of the words of a text, which white space separates, and its end."""
        state, total = self.begin(), 0.0
        for word in (*text.split(), "</s>"):
            value, state = self.score(state, word)
            total += value
        return total


class Scorer:
    """What a beam adds up for each token, instead of the network's log-probability.

    That is `weight` times log p of the network (mixed with n-grams, if any are), the weighted log p
    of n-grams that are added, `unknown_weight` for the token of unknown words, and what the bonus
    of phrases grows by. `Model.beam(scorer=...)` copies the value. One thread at a time may add.
    """

    def __init__(self, model: Model, weight: float = 1.0, unknown_weight: float = 0.0) -> None:
        self.model = model
        self.handle = Handle(lib.kinglet_scorer_destroy)
        check(lib.kinglet_scorer_create(model.handle, weight, unknown_weight,
                                        addressof(self.handle)))

    def add_ngrams(self, ngrams: Ngrams, weight: float) -> Scorer:
        """Adds weight times log p; below 0 with bigrams is LODR. Returns the scorer.

        Words of the n-grams are the tokens as the model's vocabulary spells them: pieces of pieces.
        """
        return self._add(ngrams, _ADDED, weight)

    def mix_ngrams(self, ngrams: Ngrams, share: float) -> Scorer:
        """Mixes p with the network's, which keeps what all shares leave. Returns the scorer."""
        return self._add(ngrams, _MIXED, share)

    def _add(self, ngrams: Ngrams, use: int, weight: float) -> Scorer:
        if not isinstance(ngrams, Ngrams):
            raise TypeError(f"ngrams: expected kinglet_lm.Ngrams, found {type(ngrams).__name__}")
        check(lib.kinglet_scorer_add_ngrams(self.handle, ngrams.handle, use, weight))
        return self

    def add_phrase(self, phrase: TextOrIds, bonus: float) -> Scorer:
        """Adds a bonus for each token of a phrase, also while the phrase is being matched.

        What a phrase that fails or a text that ends has got for its beginning is taken back.
        Returns the scorer.
        """
        ids = uint32s(self.model.ids(phrase))
        check(lib.kinglet_scorer_add_phrase(self.handle, address(ids), len(ids), bonus))
        return self


__all__ = ["Ngrams", "Scorer"]
