"""KenLM's Python module over a kinglet model: programs switch by `import kinglet.kenlm as kenlm`.

Names, arguments, units (log10) and refusals are KenLM's. What a network cannot mean: there is no
empty context, so `bos=False` and `NullContextWrite` begin as a sentence does (the first
`bos=False` warns once); `ngram_length` is 1; `order` is 127, as if the whole history mattered.
`Config` is accepted and has nothing to say.

A state says "that one, then this word": the network runs only when somebody asks about it.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Iterator

from kinglet.errors import Error, Unsupported
from kinglet.model import Model as _Network
from kinglet.scoring import LOG10_E
from kinglet.session import Session
from kinglet.state import State as _Saved

_BLANKS = re.compile(rb"[\t-\r ]+")  # what KenLM cuts at: bytes 9 to 13 and 32
_IMPOSSIBLE = -99.0  # log10 of "<s>", which begins and is never predicted
_warned = False


class LoadMethod:
    """How KenLM reads its file; a kinglet model is always read."""

    LAZY = 0
    POPULATE_OR_LAZY = 1
    POPULATE_OR_READ = 2
    READ = 3
    PARALLEL_READ = 4


class ARPALoadComplain:
    """What KenLM complains about in an ARPA file."""

    ALL = 0
    EXPENSIVE = 1
    NONE = 2


class Config:
    """KenLM's options: accepted, and without effect."""

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


class _Node:
    """A history: the one before it, then a word; and the network's memory once it was needed."""

    __slots__ = ("before", "hash", "id", "saved")

    def __init__(self, before: _Node | None, id: int) -> None:
        self.before = before
        self.id = id
        self.hash: int = hash((before.hash if before is not None else 0, id))
        self.saved: _Saved | None = None

    def ids(self) -> list[int]:
        found = []
        node: _Node | None = self
        while node is not None:
            found.append(node.id)
            node = node.before
        return found[::-1]


def _same(a: _Node | None, b: _Node | None) -> bool:
    while a is not b:
        if a is None or b is None or a.hash != b.hash or a.id != b.id:
            return False
        a, b = a.before, b.before
    return True


class State:
    """A history, written by a model. Compared and hashed by value; `copy.copy` copies it."""

    __slots__ = ("_node",)

    def __init__(self) -> None:
        self._node: _Node | None = None

    def _ids(self) -> list[int]:
        return [] if self._node is None else self._node.ids()

    @staticmethod
    def _checked(other: object) -> State:
        if not isinstance(other, State):
            raise TypeError(f"expected a State to compare with, found {type(other).__name__}")
        return other

    def __eq__(self, other: object) -> bool:
        return _same(self._node, State._checked(other)._node)

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
    """A language model with KenLM's methods. Threads may share one; they take turns."""

    __slots__ = ("__weakref__", "_at", "_begin", "_end", "_lock", "_network", "_path", "_pid",
                 "_session", "_start", "_unknown")

    def __init__(self, path: str | bytes, config: Config | None = None) -> None:
        self._path = os.path.abspath(_bytes(path))
        try:
            self._network = _Network(os.fsdecode(self._path))
        except Error as error:
            raise OSError(f"Cannot read model '{os.fsdecode(self._path)}' ({error})") from error
        words = self._network.vocabulary
        if words.begin is None or words.end is None or not words.has_words:
            raise OSError(
                f"Cannot read model '{os.fsdecode(self._path)}' (expected words, a token that "
                "begins and one that ends a sentence, found a model without)")
        self._begin, self._end, self._unknown = words.begin, words.end, words.unknown
        self._start = _Node(None, self._begin)
        self._lock = threading.RLock()
        self._pid = 0
        self._session: Session | None = None
        self._at: _Node | None = None

    @property
    def path(self) -> bytes:
        """The absolute path."""
        return self._path

    @property
    def order(self) -> int:
        """127: all of a history matters, as far as a host can tell."""
        return 127

    def __repr__(self) -> str:
        return f"<Model from {os.path.basename(self._path)!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._path,)

    def __deepcopy__(self, memo: object) -> Model:
        return type(self)(self._path)

    def __contains__(self, word: str | bytes) -> bool:
        found = self._find(_bytes(word))
        return found is not None and found != self._unknown

    def _find(self, word: bytes) -> int | None:
        if word == b"<s>":
            return self._begin
        if word == b"</s>":
            return self._end
        return self._network.vocabulary.get(word.decode("utf-8", "surrogateescape"))

    def _id(self, word: bytes) -> int:
        found = self._find(word)
        if found is None:
            found = self._unknown
        if found is None:
            raise Unsupported(
                f"kinglet: score: expected a word of the vocabulary, found {word!r}, and the "
                "model has no unknown word")
        return found

    def _go(self, node: _Node) -> Session:
        """Brings the lane to where the node's history ends."""
        if self._session is None or self._pid != os.getpid():
            self._session = self._network.session(empty_cache="normalised")
            self._at = None
            self._pid = os.getpid()
        session = self._session
        if self._at is node:
            return session
        if self._at is not None and self._at.saved is None:
            self._at.saved = session.save()  # it will be asked again: hosts try several words
        steps: list[_Node] = []
        at: _Node | None = node
        while at is not None and at is not self._at and at.saved is None:
            steps.append(at)
            at = at.before
        if at is None:
            session.reset()
        elif at is not self._at:
            assert at.saved is not None
            session.restore(at.saved)
        self._at = None
        for step in reversed(steps):
            session.step(step.id)
        self._at = node
        return session

    def _score(self, node: _Node | None, word: bytes) -> tuple[float, _Node, bool]:
        """log10 of the word after a history (None: a sentence's beginning), and what follows."""
        before = self._start if node is None else node
        if word == b"<s>":
            return _IMPOSSIBLE, _Node(before, self._begin), False
        id = self._id(word)
        with self._lock:
            value = self._go(before).log_probability(id) * LOG10_E
        return value, _Node(before, id), word not in self

    @staticmethod
    def _words(sentence: str | bytes) -> list[bytes]:
        return [word for word in _BLANKS.split(_bytes(sentence).split(b"\0")[0]) if word]

    def full_scores(
        self, sentence: str | bytes, bos: bool = True, eos: bool = True
    ) -> Iterator[tuple[float, int, bool]]:
        """For each word, and the end, its log10 probability, 1, and whether it is unknown."""
        if not bos:
            _warn_of_context()
        node = self._start
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
        State._checked(state)._node = self._start

    def NullContextWrite(self, state: State) -> None:
        """Writes the beginning of a sentence too: a network has no empty context."""
        State._checked(state)._node = self._start

    def BaseScore(self, in_state: State, word: str, out_state: State) -> float:
        """log10 of `word` after `in_state`; writes what follows into `out_state`."""
        return self.BaseFullScore(in_state, word, out_state).log_prob

    def BaseFullScore(self, in_state: State, word: str, out_state: State) -> FullScoreReturn:
        """`BaseScore` with the length of the n-gram and whether the word is unknown."""
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
            "kinglet.kenlm: bos=False begins as a sentence does: a network has no empty context",
            stacklevel=3)


__all__ = ["ARPALoadComplain", "Config", "FullScoreReturn", "LanguageModel", "LoadMethod", "Model",
           "State"]


