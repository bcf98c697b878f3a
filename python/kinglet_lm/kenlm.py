"""KenLM's Python module over a kinglet model: programs switch by
`import kinglet_lm.kenlm as kenlm`.

Names, arguments, units (log10) and refusals are KenLM's. A network differs from n-grams: it has no
empty context, so `bos=False` and `NullContextWrite` begin as a sentence does (the first
`bos=False` warns once); `ngram_length` is 1; `order` is 127, as if the complete history mattered.
`Config` is accepted and ignored. A word that the vocabulary lacks is split by the model's
tokenizer, and known if all of its tokens are.

A state refers to another state and adds a word: the network runs only when a caller queries it.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterator

from kinglet_lm._histories import History, Reader
from kinglet_lm.errors import Error, UnknownWord, Unsupported
from kinglet_lm.model import Model as _Network
from kinglet_lm.scoring import LOG10_E

_BLANKS = re.compile(rb"[\t-\r ]+")  # KenLM's separators: bytes 9 to 13 and 32
_IMPOSSIBLE = -99.0  # log10 of "<s>", which is never predicted
_warned = False


class LoadMethod:
    """KenLM's ways to load its file; accepted, and without effect."""

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """KenLM's warnings about an ARPA file; accepted, and without effect."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


class Config:
    """KenLM's options; accepted, and without effect."""

    __slots__ = ("arpa_complain", "load_method", "show_progress")

    def __init__(self) -> None:
        self.show_progress = True
        self.arpa_complain = ARPALoadComplain.ALL
        self.load_method = LoadMethod.POPULATE_OR_READ


class FullScoreReturn:
    """log10 probability, length of the n-gram (1), and whether the word is unknown."""

    __slots__ = ("log_prob", "ngram_length", "oov")

    def __init__(self, log_prob: float, ngram_length: int, oov: bool) -> None:
        self.log_prob = log_prob
        self.ngram_length = ngram_length
        self.oov = oov

    def __repr__(self) -> str:
        return f"FullScoreReturn({self.log_prob!r}, {self.ngram_length!r}, {self.oov!r})"


class State:
    """A history, written by a model. Compared and hashed by value; `copy.copy` copies it."""

    __slots__ = ("_node",)

    def __init__(self) -> None:
        self._node: History | None = None

    def _ids(self) -> list[int]:
        return [] if self._node is None else self._node.ids()

    @staticmethod
    def _checked(other: object) -> State:
        if not isinstance(other, State):
            raise TypeError(f"expected a State to compare with, found {type(other).__name__}")
        return other

    def __eq__(self, other: object) -> bool:
        return other is not None and self._node == State._checked(other)._node

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        return self._ids() < State._checked(other)._ids()

    def __le__(self, other: object) -> bool:
        return self._ids() <= State._checked(other)._ids()

    def __gt__(self, other: object) -> bool:
        return self._ids() > State._checked(other)._ids()

    def __ge__(self, other: object) -> bool:
        return self._ids() >= State._checked(other)._ids()

    def __hash__(self) -> int:
        return 0 if self._node is None else self._node.hash

    def __copy__(self) -> State:
        new = State()
        new._node = self._node
        return new

    def __deepcopy__(self, memo: object) -> State:
        raise TypeError("State: expected copy.copy, found copy.deepcopy, which KenLM's lacks too")

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("State: expected no pickling, as of KenLM's; pickle the words instead")


def _bytes(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    if isinstance(text, str):
        return text.encode("utf-8", "surrogateescape")
    raise TypeError(f"Cannot convert {type(text).__name__} to string")


class Model:
    """A language model with KenLM's methods. Threads may share a model; they take turns."""

    __slots__ = ("__weakref__", "_begin", "_end", "_ids_of", "_network", "_path", "_reader",
                 "_unknown")

    def __init__(self, path: str | bytes, config: Config | None = None) -> None:
        self._path = os.path.abspath(_bytes(path))
        try:
            self._network = _Network(os.fsdecode(self._path))
            self._reader = Reader(self._network)
        except Error as error:
            raise OSError(f"Cannot read model '{os.fsdecode(self._path)}' ({error})") from error
        self._begin, self._end = self._reader.start.id, self._reader.end
        self._unknown = self._network.vocabulary.unknown
        self._ids_of: dict[bytes, tuple[int, ...]] = {}

    @property
    def path(self) -> bytes:
        """The absolute path."""
        return self._path

    @property
    def order(self) -> int:
        """127, so that hosts keep complete histories."""
        return 127

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(self._path)!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._path,)

    def __deepcopy__(self, memo: object) -> Model:
        return type(self)(self._path)

    def __contains__(self, word: str | bytes) -> bool:
        data = _bytes(word)
        return bool(data) and self._knows(data)

    def _knows(self, word: bytes) -> bool:
        if self._find(word) is None and self._unknown is None:
            return False
        return self._unknown not in self._ids(word)

    def _find(self, word: bytes) -> int | None:
        if word == b"<s>":
            return self._begin
        if word == b"</s>":
            return self._end
        return self._network.vocabulary.get(word.decode("utf-8", "surrogateescape"))

    def _ids(self, word: bytes) -> tuple[int, ...]:
        """The tokens of a word: its own id, or the ids of the model's tokenizer."""
        found = self._find(word)
        if found is not None:
            return (found,)
        ids = self._ids_of.get(word)
        if ids is None:
            text = word.decode("utf-8", "surrogateescape")
            ids = ()
            with contextlib.suppress(Unsupported, UnknownWord):
                if len(text.split()) == 1:  # KenLM splits at ASCII blanks only
                    ids = tuple(self._network.tokenize(text))
            if not ids and self._unknown is not None:
                ids = (self._unknown,)
            self._ids_of[word] = ids
        if not ids:
            raise Unsupported(
                f"kinglet: score: expected a word of the vocabulary, found {word!r}, and the "
                "model has no unknown word")
        return ids

    def _score(self, node: History | None, word: bytes) -> tuple[float, History, bool]:
        """log10 of the word, the next history, and whether the word is unknown.

        A history of None is a sentence's beginning.
        """
        before = self._reader.start if node is None else node
        if word == b"<s>":
            return _IMPOSSIBLE, History(before, self._begin), False
        total = 0.0
        ids = self._ids(word)
        for id in ids:
            total += self._reader.log_probability(before, id)
            before = History(before, id)
        return total * LOG10_E, before, self._unknown in ids

    @staticmethod
    def _words(sentence: str | bytes) -> list[bytes]:
        return [word for word in _BLANKS.split(_bytes(sentence).split(b"\0")[0]) if word]

    def full_scores(
        self, sentence: str | bytes, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """The log10 probability of each word and the end, 1, and whether the word is unknown."""
        if not bos:
            _warn_of_context()
        node = self._reader.start
        for word in self._words(sentence) + ([b"</s>"] if eos else []):
            value, node, oov = self._score(node, word)
            yield value, 1, oov

    def score(self, sentence: str | bytes, bos: bool = True, eos: bool = True) -> float:
        """The log10 probability of a sentence."""
        return float(sum((value for value, _, _ in self.full_scores(sentence, bos, eos)), 0.0))

    def perplexity(self, sentence: str | bytes) -> float:
        """10 ** (-score / (words + 1))."""
        words = len(self._words(sentence)) + 1
        return float(10.0 ** (-self.score(sentence) / words))

    def BeginSentenceWrite(self, state: State) -> None:
        """Writes the beginning of a sentence into `state`."""
        State._checked(state)._node = self._reader.start

    def NullContextWrite(self, state: State) -> None:
        """Like BeginSentenceWrite: a network has no empty context."""
        State._checked(state)._node = self._reader.start

    def BaseScore(self, in_state: State, word: str, out_state: State) -> float:
        """log10 of `word` after `in_state`; writes the next state into `out_state`."""
        return self.BaseFullScore(in_state, word, out_state).log_prob

    def BaseFullScore(self, in_state: State, word: str, out_state: State) -> FullScoreReturn:
        """Like BaseScore, with the n-gram's length and whether the word is unknown."""
        if not isinstance(word, str):
            raise TypeError(f"word: expected str, found {type(word).__name__}")
        State._checked(out_state)
        value, node, oov = self._score(State._checked(in_state)._node, _bytes(word))
        out_state._node = node
        return FullScoreReturn(value, 1, oov)


LanguageModel = Model


def _warn_of_context() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "kinglet_lm.kenlm: bos=False begins as a sentence does: a network has no empty context",
            stacklevel=3)


__all__ = ["ARPALoadComplain", "Config", "FullScoreReturn", "LanguageModel", "LoadMethod", "Model",
           "State"]


