"""A kinglet model in the decoders of flashlight-text and in torchaudio's `ctc_decoder`.

    from kinglet_lm.integrations.flashlight import LanguageModel
    lm = LanguageModel("model.kgl", words)           # words[i] is the trie's word i
    decoder = LexiconDecoder(options, trie, lm, silence, blank, unknown, [], False)

    lm = LanguageModel("model.kgl")                  # torchaudio: the words are the model's
    lm.write_words("words.txt")
    ctc_decoder(lexicon=.., tokens=.., lm=lm, lm_dict="words.txt", unk_word=lm.unknown_word)

Scores are natural logarithms; flashlight's class for KenLM answers in base 10, so divide its weight
by 2.3. Keep a reference to the object as long as the decoder exists: the host does not.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from kinglet_lm._histories import History, Reader
from kinglet_lm.errors import IdOutOfRange, InvalidArgument
from kinglet_lm.integrations._host import host
from kinglet_lm.integrations._words import Words
from kinglet_lm.model import Model

_decoder: Any = host("flashlight.lib.text.decoder", "flashlight-text", "0.0.7", "LM", "LMState")
LM: Any = _decoder.LM


class LanguageModel(LM):
    """Scores words, or tokens of a lexicon-free decoder, for flashlight and torchaudio.

    `model` is a path, a Model or a Reader; `words` the host's words in the order of their numbers,
    by default the model's own vocabulary. A word that the model lacks has ln p(unknown), to which
    `unk_offset` is added. `score_boundary`: whether the end of a text is scored.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | Model | Reader,
        words: Iterable[str] | None = None,
        unk_offset: float = 0.0,
        score_boundary: bool = True,
    ) -> None:
        LM.__init__(self)
        if not isinstance(model, Reader):
            model = Reader(model if isinstance(model, Model) else Model(model))
        self.reader = model
        self.unk_offset, self.score_boundary = float(unk_offset), score_boundary
        vocabulary = model.model.vocabulary
        if words is None:
            self._words = list(vocabulary)
            self._ids: list[tuple[int, ...]] = [(id,) for id in range(len(vocabulary))]
            self._known = [id != vocabulary.unknown for id in range(len(vocabulary))]
        else:
            self._words = list(words)
            found = Words(model.model)
            self._ids = [found.ids(word) for word in self._words]
            self._known = [found.knows(word) for word in self._words]
        # The history of each of the host's states, and the answers so far. The keys keep the
        # states alive until the next text begins.
        self._meaning: dict[Any, tuple[History, dict[int, float]]] = {}
        self._from_start: dict[int, float] = {}

    @property
    def unknown_word(self) -> str:
        """The model's unknown word."""
        vocabulary = self.reader.model.vocabulary
        if vocabulary.unknown is None:
            raise InvalidArgument("kinglet: unknown_word: expected a model that has one, found "
                                  "none; put a word of your own into the list")
        return vocabulary[vocabulary.unknown]

    def write_words(self, path: str | os.PathLike[str]) -> None:
        """Writes the words, one a line, in the order of their numbers: torchaudio's lm_dict."""
        with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            for at, word in enumerate(self._words):
                # The host splits lines at blanks and skips empty ones, which would shift numbers.
                file.write((word if word and not word.split()[1:] and word == word.strip()
                            else f"<kinglet-{at}>") + "\n")

    def start(self, start_with_nothing: bool) -> Any:
        """Begins a text."""
        self._meaning.clear()
        state = _decoder.LMState()
        self._meaning[state] = (self.reader.start, self._from_start)
        return state

    def score(self, state: Any, index: int) -> tuple[Any, float]:
        """The state after word `index`, and ln of the word's probability."""
        history, answered = self._meaning[state]
        after = state.child(index)  # the same child for the same index: the host merges by address
        value = answered.get(index)
        if value is not None and after in self._meaning:
            return after, value
        if not 0 <= index < len(self._ids):
            raise IdOutOfRange(
                f"kinglet: word: expected a number below {len(self._ids)}, found {index}; give the "
                "words of the trie, or of lm_dict, in their order")
        if value is None and answered is self._from_start and not answered:
            self._ask_all()  # the trie's smearing queries every word of the lexicon after the start
            value = answered.get(index)
        total = 0.0
        for id in self._ids[index]:
            if value is None:
                total += self.reader.log_probability(history, id)
            history = History(history, id)
        if value is None:
            value = answered[index] = self._weighted(index, total)
        self._meaning[after] = (history, {})
        return after, value

    def finish(self, state: Any) -> tuple[Any, float]:
        """The state after the end, and ln of the end's probability."""
        value = 0.0
        if self.score_boundary:
            value = self.reader.log_probability(self._meaning[state][0], self.reader.end)
        return state.child(-1), value

    def _weighted(self, index: int, value: float) -> float:
        return value if self._known[index] else value + self.unk_offset

    def _ask_all(self) -> None:
        """Answers for every word of one token after the start, from one distribution."""
        single = [index for index, ids in enumerate(self._ids) if len(ids) == 1]
        values = self.reader.log_probabilities(
            self.reader.start, [self._ids[index][0] for index in single])
        for index, value in zip(single, values):
            self._from_start[index] = self._weighted(index, value)


__all__ = ["LanguageModel"]
