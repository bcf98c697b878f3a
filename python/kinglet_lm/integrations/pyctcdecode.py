"""A kinglet model in pyctcdecode's beam search.

    from pyctcdecode import Alphabet
    from kinglet_lm.integrations.pyctcdecode import BeamSearchDecoder, LanguageModel
    decoder = BeamSearchDecoder(Alphabet.build_alphabet(labels), LanguageModel("model.kgl"))

BeamSearchDecoder is the host's BeamSearchDecoderCTC, and shows the model the words of all beams of
a frame at once; LanguageModel works in the host's own class too, one word at a time.

Scores are natural, weighted as the host's class for KenLM weights its own: alpha ln p + beta for
each word. A state is a history of words: a value that can be kept, given as `lm_start_state`, and
pickled; the network runs only for states that are extended.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from typing import Any

from kinglet_lm._histories import History, Reader
from kinglet_lm.errors import InvalidArgument, Mismatch
from kinglet_lm.integrations._host import host
from kinglet_lm.integrations._words import Words
from kinglet_lm.model import Model

AbstractLanguageModel: Any = host(
    "pyctcdecode.language_model", "pyctcdecode", "0.5.0", "AbstractLanguageModel"
).AbstractLanguageModel

BeamSearchDecoderCTC: Any = host(
    "pyctcdecode.decoder", "pyctcdecode", "0.5.0", "BeamSearchDecoderCTC"
).BeamSearchDecoderCTC

_LN_10 = math.log(10.0)
_LETTERS = 6  # of an ordinary word for the host: unfinished words that are longer cost more
_FILE = "kinglet.json"


class LanguageModel(AbstractLanguageModel):
    """Scores words for `BeamSearchDecoderCTC`.

    `model` is a path, a Model or a Reader. `unigrams` are the words that a beam may have, by
    default all of the model's; a beam's unfinished last word costs nothing while it is the
    beginning of one. `unk_score_offset`, in logarithm to base 10, is added for each other word.
    `score_boundary`: whether the end of a text is scored. Names and defaults are the host's.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model | Reader,
        unigrams: Iterable[str] | None = None,
        alpha: float = 0.5,
        beta: float = 1.5,
        unk_score_offset: float = -10.0,
        score_boundary: bool = True,
    ) -> None:
        if not isinstance(model, Reader):
            model = Reader(model if isinstance(model, Model) else Model(model))
        self.reader = model
        self.words = Words(model.model, unigrams)
        self._given = None if unigrams is None else self.words.unigrams
        self.alpha, self.beta = float(alpha), float(beta)
        self.unk_score_offset = float(unk_score_offset)
        self.score_boundary = bool(score_boundary)
        # ln p of words that the host is about to ask for.
        self._prepared: dict[tuple[History, str, bool], float] = {}

    @property
    def order(self) -> int:
        """A number so high that beams with different histories are never merged."""
        return 1 << 30

    def get_start_state(self) -> History:
        """The state at the beginning of a text."""
        return self.reader.start

    def score_partial_token(self, partial_token: str) -> float:
        """0 if a word begins with the part, else the offset for unknown words; not weighted."""
        if self.words.begins(partial_token):
            return 0.0
        return self.unk_score_offset * max(1.0, len(partial_token) / _LETTERS)

    def score(
        self, prev_state: History, word: str, is_last_word: bool = False
    ) -> tuple[float, History]:
        """The weighted score of a word, and the state after it; of the end, the state before it.

        Where a text ends in a space the host asks for the word "": only the end is scored then.
        """
        total = self._prepared.pop((prev_state, word, is_last_word), None)
        if total is None:
            self.prepare([(prev_state, word)], is_last_word)
            total = self._prepared.pop((prev_state, word, is_last_word))
        state, score = prev_state, 0.0
        if word:
            for id in self.words.ids(word):
                state = History(state, id)
            if not self.words.knows(word):
                total += self.unk_score_offset * _LN_10
            score = self.beta
        return self.alpha * total + score, state

    def prepare(self, words: Iterable[tuple[History, str]], is_last_word: bool) -> None:
        """Computes what `score` will be asked for next: the network runs for all words together.

        What was prepared before, and not asked for, is forgotten.
        """
        asked = list(dict.fromkeys(words))
        ends = (self.reader.end,) if is_last_word and self.score_boundary else ()
        ids = [(*(self.words.ids(word) if word else ()), *ends) for _, word in asked]
        at, totals = [state for state, _ in asked], [0.0] * len(asked)
        for step in range(max(map(len, ids), default=0)):
            left = [i for i, tokens in enumerate(ids) if step < len(tokens)]
            values = self.reader.log_probabilities_of([(at[i], ids[i][step]) for i in left])
            for i, value in zip(left, values):
                totals[i] += value
                at[i] = History(at[i], ids[i][step])
        self._prepared = {(*key, is_last_word): total for key, total in zip(asked, totals)}

    def reset_params(self, **params: Any) -> None:
        """Sets alpha, beta, unk_score_offset and score_boundary where they are given."""
        for name in ("alpha", "beta", "unk_score_offset"):
            value = params.get(name)
            if value is not None:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise InvalidArgument(
                        f"kinglet: {name}: expected a number, found {type(value).__name__}")
                setattr(self, name, float(value))
        boundary = params.get("score_boundary")
        if boundary is not None:
            if not isinstance(boundary, bool):
                raise InvalidArgument("kinglet: score_boundary: expected True or False, found "
                                      f"{type(boundary).__name__}")
            self.score_boundary = boundary

    def save_to_dir(self, filepath: str) -> None:
        """Writes the model's path and digest, and the weights, into a folder."""
        path, digest, _ = self.reader.model.identity()
        if path is None:
            raise TypeError("model: expected one opened from a path, found one made of bytes")
        fields = {"model": path, "digest": digest, "alpha": self.alpha, "beta": self.beta,
                  "unk_score_offset": self.unk_score_offset, "score_boundary": self.score_boundary,
                  "unigrams": None if self._given is None else sorted(self._given)}
        with open(os.path.join(filepath, _FILE), "w", encoding="utf-8") as file:
            json.dump(fields, file)

    @classmethod
    def load_from_dir(cls, filepath: str) -> LanguageModel:
        """The model that `save_to_dir` wrote. Raises Mismatch if the model file has changed.

        The host's own `load_from_dir` of a whole decoder knows KenLM's models only.
        """
        with open(os.path.join(filepath, _FILE), encoding="utf-8") as file:
            fields = json.load(file)
        model, digest = Model(fields.pop("model")), fields.pop("digest")
        if model.digest != digest:
            raise Mismatch(f"kinglet: {filepath}: {model.path}: expected digest {digest}, found "
                           f"{model.digest}; save it again with the new model")
        return cls(model, **fields)


class BeamSearchDecoder(BeamSearchDecoderCTC):
    """The host's decoder, which shows a `LanguageModel` all words of a frame at once.

    The answers are those of the host's own class.
    """

    def _get_lm_beams(
        self, beams: Any, hotwords: Any, lm_scores: Any, part_scores: Any, is_eos: bool = False
    ) -> Any:
        model = self._language_model
        if isinstance(model, LanguageModel):
            new = [(text, word) for text, word, *_ in beams
                   if (" ".join(filter(None, (text, word))), is_eos) not in lm_scores]
            model.prepare(((lm_scores[text, False][-1], word) for text, word in new), is_eos)
        return super()._get_lm_beams(beams, hotwords, lm_scores, part_scores, is_eos)


__all__ = ["BeamSearchDecoder", "LanguageModel"]
