"""Log-probabilities of sentences and texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kinglet._buffers import TextOrIds
from kinglet.errors import Unsupported
from kinglet.session import NO_PARENT, Session

if TYPE_CHECKING:
    from kinglet.model import Model

LOG10_E = math.log10(math.e)
_NODES_AT_ONCE = 1 << 16  # tokens of one call, a few megabytes


class Score(NamedTuple):
    """The scored tokens of a sentence or text, and their natural log-probabilities."""

    ids: tuple[int, ...]
    log_probabilities: tuple[float, ...]
    unknown: int | None  # the id of the unknown word

    @property
    def log_probability(self) -> float:
        """The sum, in natural logarithm."""
        return math.fsum(self.log_probabilities)

    @property
    def log10_probability(self) -> float:
        """The sum, in logarithm to base 10."""
        return self.log_probability * LOG10_E

    @property
    def oov(self) -> int:
        """The number of tokens that are the unknown word."""
        return 0 if self.unknown is None else self.ids.count(self.unknown)

    @property
    def log_probability_without_oov(self) -> float:
        """The sum without unknown words, in natural logarithm."""
        return math.fsum(
            p for id, p in zip(self.ids, self.log_probabilities) if id != self.unknown)

    @property
    def perplexity(self) -> float:
        """exp(-mean); NaN if nothing was scored."""
        if not self.ids:
            return math.nan
        try:
            return math.exp(-self.log_probability / len(self.ids))
        except OverflowError:
            return math.inf


def framed(model: Model, sentence: TextOrIds, bos: bool, eos: bool) -> list[int]:
    """The sentence's ids between the model's begin and end token."""
    ids = model.ids(sentence)
    begin, end = model.vocabulary.begin, model.vocabulary.end
    if (bos and begin is None) or (eos and end is None):
        raise Unsupported(
            "kinglet: score: expected a model with a token that begins and one that ends a "
            f"sentence, or {'bos' if begin is None else 'eos'}=False, found none")
    return ([begin] if bos and begin is not None else []) + ids + (
        [end] if eos and end is not None else [])


def score_streams(model: Model, session: Session, streams: list[list[int]]) -> list[Score]:
    """Scores each stream from a fresh lane, without its first token."""
    unknown = model.vocabulary.unknown
    if len(streams) == 1 and streams[0]:  # the network reads the tokens of one text together
        session.reset()
        alone = session.step_many(streams[0])
        return [Score(tuple(streams[0][1:]), tuple(alone[1:]), unknown)]
    parents: list[int] = []
    ids: list[int] = []
    for stream in streams:
        first = len(ids)
        if stream:
            parents.append(NO_PARENT)
            parents.extend(range(first, first + len(stream) - 1))
            ids.extend(stream)
    values = session.score_tree(parents, ids)[0]
    scores = []
    at = 0
    for stream in streams:
        scores.append(Score(tuple(stream[1:]), tuple(values[at + 1 : at + len(stream)]), unknown))
        at += len(stream)
    return scores


def score_lines(
    model: Model, lines: Iterable[TextOrIds], lanes: int, threads: int, bos: bool, eos: bool
) -> Iterator[Score]:
    """Scores each line from a fresh state, as many at once as there are lanes."""
    waiting: list[list[int]] = []
    size = 0
    with model.session(lanes=lanes, threads=threads, empty_cache="normalised") as session:
        for line in lines:
            waiting.append(framed(model, line, bos, eos))
            size += len(waiting[-1])
            if size >= _NODES_AT_ONCE:
                yield from score_streams(model, session, waiting)
                waiting, size = [], 0
        yield from score_streams(model, session, waiting)


__all__ = ["LOG10_E", "Score", "framed", "score_lines", "score_streams"]
