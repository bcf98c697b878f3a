"""Log-probabilities of sentences and texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kinglet_lm._buffers import TextOrIds
from kinglet_lm.errors import InvalidArgument, Unsupported
from kinglet_lm.session import NO_PARENT, Session

if TYPE_CHECKING:
    from kinglet_lm.model import Model

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
    ids = model.spelled(sentence) if isinstance(sentence, str) else model.ids(sentence)
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
    words = len(model.vocabulary)

    def score(stream: list[int], values: Iterable[float]) -> Score:
        # A spelt word is predicted as the unknown word.
        ids = tuple(id if id < words or unknown is None else unknown for id in stream[1:])
        return Score(ids, tuple(values), unknown)

    if len(streams) == 1 and streams[0]:  # the network reads the tokens of one text together
        session.reset()
        alone = session.step_many(streams[0])
        return [score(streams[0], alone[1:])]
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
        scores.append(score(stream, values[at + 1 : at + len(stream)]))
        at += len(stream)
    return scores


class Hypothesis(NamedTuple):
    """A hypothesis of a list that `Model.rescore` has scored."""

    position: int  # in the list that was given, from 0
    score: float  # given_weight * given + weight * log_probability + length_weight * tokens
    log_probability: float  # natural logarithm, the end included
    tokens: int  # scored tokens, the end included


def rescore(
    model: Model,
    hypotheses: Iterable[TextOrIds],
    given: Iterable[float] | None,
    weights: tuple[float, float, float],
    threads: int,
) -> list[Hypothesis]:
    """Scores hypotheses, each beginning that several share once, and sorts them."""
    streams = [framed(model, hypothesis, True, True) for hypothesis in hypotheses]
    scores = [0.0] * len(streams) if given is None else [float(value) for value in given]
    if len(scores) != len(streams):
        raise InvalidArgument(
            f"kinglet: given: expected {len(streams)} scores, as many as hypotheses, "
            f"found {len(scores)}")
    for name, numbers in ("given", scores), ("weights", weights):
        wrong = [number for number in numbers if not math.isfinite(number)]
        if wrong:
            raise InvalidArgument(f"kinglet: {name}: expected finite numbers, found {wrong[0]}")
    parents: list[int] = []
    ids: list[int] = []
    nodes: dict[tuple[int, int], int] = {}
    paths = []
    for stream in streams:
        path = []
        at = NO_PARENT
        for id in stream:
            node = nodes.setdefault((at, id), len(ids))
            if node == len(ids):
                parents.append(at)
                ids.append(id)
            path.append(node)
            at = node
        paths.append(path[1:])
    with model.session(threads=threads, empty_cache="normalised") as session:
        values = session.score_tree(parents, ids)[0]
    given_weight, weight, length_weight = weights
    answers = []
    for index, (path, own) in enumerate(zip(paths, scores)):
        log_probability = math.fsum(values[node] for node in path)
        score = given_weight * own + weight * log_probability + length_weight * len(path)
        answers.append(Hypothesis(index, score, log_probability, len(path)))
    return sorted(answers, key=lambda answer: -answer.score)


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
