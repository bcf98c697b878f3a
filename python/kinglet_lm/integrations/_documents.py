"""Scores of complete documents, with the same bits in any process, thread and batch.

A document begins in a fresh state after the model's begin token; each newline in it is the end of
a line, and so is its end. A document of one line has the score of `kinglet score --lines`.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from kinglet_lm._numbers import integer
from kinglet_lm.errors import Mismatch, Unsupported
from kinglet_lm.integrations._time_slices import long_time_slices
from kinglet_lm.model import Model
from kinglet_lm.scoring import score_streams
from kinglet_lm.session import Session

_TOKENS_AT_ONCE = 1 << 16  # tokens of one call, a few megabytes
_NO_CHARACTER = re.compile("[\ud800-\udfff]")


class DocumentScore(NamedTuple):
    """A model's score of a document."""

    log_probability: float  # natural, of all scored tokens
    tokens: int  # scored tokens, including ends of lines
    oov: int  # scored tokens that are the unknown word
    repaired: bool  # whether the text had lone surrogates, which were scored as U+FFFD

    @property
    def perplexity(self) -> float:
        """exp of the mean loss of a token."""
        try:
            return math.exp(-self.log_probability / self.tokens) if self.tokens else math.nan
        except OverflowError:
            return math.inf

    @property
    def oov_share(self) -> float:
        """The fraction of unknown words among the tokens."""
        return self.oov / self.tokens if self.tokens else 0.0


def repaired(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, that is, for each byte that was not Unicode."""
    return _NO_CHARACTER.sub("\ufffd", text)


class DocumentScorer:
    """Scores documents with the model at a path, which each process opens once.

    A pickled scorer is the path, the digest and the options: a process that finds another file at
    the path raises Mismatch. `lanes` documents are computed at once by `threads` threads.
    `most_tokens` limits the scored tokens of each document. The constructor opens the model, so
    that a missing or damaged file ends a job before it begins.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        lanes: int = 16,
        threads: int = 1,
        most_tokens: int | None = None,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.lanes, self.threads = integer(lanes, "lanes", 1), integer(threads, "threads", 1)
        self.most_tokens = None if most_tokens is None else integer(most_tokens, "most_tokens", 1)
        model = Model(self.path)
        self.digest = model.digest
        begin, end = model.vocabulary.begin, model.vocabulary.end
        if begin is None or end is None or not model.vocabulary.has_words:
            raise Unsupported(
                f"kinglet: {self.path}: expected words, a token that begins a text and one that "
                "ends it, found a model without; convert it with --vocab")
        part = "" if most_tokens is None else f"; the first {most_tokens} tokens"
        self.protocol = (
            f"documents; fresh state every document; token {begin} first, unscored; token {end} "
            f"for newlines and last; empty cache normalised{part}")
        with _lock:
            _models.setdefault((self.path, self.digest), model)

    def score(self, texts: Iterable[str]) -> list[DocumentScore]:
        """The score of each text."""
        model = _opened(self.path, self.digest)
        found: list[DocumentScore] = []
        waiting: list[list[int]] = []
        bad: list[bool] = []
        size = 0
        with long_time_slices(), _Lanes(model, self.lanes, self.threads) as session:
            for text in texts:
                whole = repaired(_text(text))
                waiting.append(self._stream(model, whole))
                bad.append(whole != text)
                size += len(waiting[-1])
                if size >= _TOKENS_AT_ONCE:
                    found += self._scored(model, session, waiting, bad)
                    waiting, bad, size = [], [], 0
            found += self._scored(model, session, waiting, bad)
        return found

    def _stream(self, model: Model, text: str) -> list[int]:
        begin, end = model.vocabulary.begin, model.vocabulary.end
        assert begin is not None and end is not None
        most = None if self.most_tokens is None else self.most_tokens + 1
        ids = [begin]
        for line in text.removesuffix("\n").split("\n"):
            ids += model.tokenize(line)
            ids.append(end)
            if most is not None and len(ids) >= most:
                break
        return ids if most is None else ids[:most]

    @staticmethod
    def _scored(
        model: Model, session: Session, streams: list[list[int]], bad: list[bool]
    ) -> list[DocumentScore]:
        return [
            DocumentScore(score.log_probability, len(score.ids), score.oov, repaired)
            for score, repaired in zip(score_streams(model, session, streams), bad)]

    def record(self, score: DocumentScore, prefix: str = "kinglet") -> dict[str, Any]:
        """The fields that are added to a document: numbers, the model's digest and the protocol."""
        fields: dict[str, Any] = {
            f"{prefix}_log_probability": score.log_probability,
            f"{prefix}_hex": score.log_probability.hex(),
            f"{prefix}_tokens": score.tokens,
            f"{prefix}_oov": score.oov,
            f"{prefix}_perplexity": score.perplexity,
            f"{prefix}_digest": self.digest,
            f"{prefix}_protocol": self.protocol,
        }
        if score.repaired:
            fields[f"{prefix}_repaired"] = True
        return fields

    def __repr__(self) -> str:
        return f"DocumentScorer({self.path!r}, digest {self.digest}, lanes {self.lanes})"


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"text: expected str, found {type(text).__name__}; decode it: "
                        "data.decode('utf-8', 'replace')")
    return text


# The models of this process: a step of a pipeline is unpickled for every task.
_models: dict[tuple[str, str], Model] = {}
_lock = threading.Lock()
_mine = threading.local()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def _opened(path: str, digest: str) -> Model:
    with _lock:
        model = _models.get((path, digest))
        if model is None:
            model = Model(path)
            if model.digest != digest:
                raise Mismatch(
                    f"kinglet: {path}: expected digest {digest}, found {model.digest}; the file "
                    "has changed since the job was made: make the job again, or restore the file")
            _models[path, digest] = model
        return model


class _Lanes:
    """A session of the calling thread in the current process, kept for the next batch."""

    def __init__(self, model: Model, lanes: int, threads: int) -> None:
        self._key = (os.getpid(), model.digest, lanes, threads)
        self._model = model

    def __enter__(self) -> Session:
        kept: dict[Any, Session] = getattr(_mine, "sessions", {})
        session = kept.pop(self._key, None)
        if session is None:
            _, _, lanes, threads = self._key
            session = self._model.session(lanes=lanes, threads=threads, empty_cache="normalised")
        self._session = session
        return session

    def __exit__(self, kind: object, *exception: object) -> None:
        if kind is None:
            _mine.sessions = {self._key: self._session}


__all__ = ["DocumentScore", "DocumentScorer", "repaired"]
