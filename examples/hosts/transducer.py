#!/usr/bin/env python3
"""The modified beam search of transducers, with a language model in it: shallow fusion and LODR.

    transducer.py MODEL.kgl TEXT [--beam 4] [--weight 0.3] [--bigrams B.kng] [--bigram-weight -0.1]
                  [--one-by-one] [--frames FRAMES.txt]

Prints what is heard of a text without the model and with it. The sound is made up: `made_frames`
scripts what a transducer's joiner gives for each frame. --frames writes that for transducer.cc,
the program in C++.

As in icefall and sherpa-onnx a frame adds one token to a hypothesis or none (the blank): of all
pairs of a hypothesis and a symbol the most probable continue; a new token's weighted score is added
after that choice; and hypotheses of equal tokens become one, whose probability is their sum.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import kinglet_lm

BLANK = 0
Frame = dict[int, float]  # logits of the symbols that are likely; others are impossible
# ln p of each likely symbol in a frame, after a hypothesis that ends with this token.
Joiner = Callable[[int, int], list[tuple[int, float]]]


class Fusion(Protocol):
    """A language model in a search. A state is what it knows of a hypothesis's tokens."""

    def begin(self) -> Any:
        """The state of the hypothesis without tokens."""

    def extend(self, states: list[Any], ids: list[int]) -> tuple[Iterable[float], list[Any]]:
        """The weighted score of token ids[i] after states[i], and the state that follows."""


class Nothing:
    """No language model."""

    def begin(self) -> Any:
        return None

    def extend(self, states: list[Any], ids: list[int]) -> tuple[Iterable[float], list[Any]]:
        return [0.0] * len(ids), states


class Arena:
    """States are hypotheses of a beam, which are asked together, each once, and only if they grow.

    `bigrams`, of the model's pieces, are added with their weight: below 0, LODR.
    """

    def __init__(self, model: kinglet_lm.Model, weight: float,
                 bigrams: kinglet_lm.Ngrams | None = None, bigram_weight: float = 0.0,
                 lanes: int = 16) -> None:
        scorer = model.scorer(weight)
        if bigrams is not None:
            scorer.add_ngrams(bigrams, bigram_weight)
        self.beam = model.beam(scorer=scorer, lanes=lanes)
        self._begin = self.beam.step([self.beam.begin()], [_begin_of(model)])[0]

    def begin(self) -> Any:
        return self._begin

    def extend(self, states: list[Any], ids: list[int]) -> tuple[Iterable[float], list[Any]]:
        return self.beam.log_probability(states, ids), self.beam.step(states, ids)


class Copied(NamedTuple):
    """A state that has everything in it, as sherpa-onnx copies it from hypothesis to hypothesis."""

    network: kinglet_lm.State
    scores: Any  # ln p of every token
    bigrams: bytes


class OneByOne:
    """sherpa-onnx's way: each new hypothesis runs the network at once, alone, for all tokens."""

    def __init__(self, model: kinglet_lm.Model, weight: float,
                 bigrams: kinglet_lm.Ngrams | None = None, bigram_weight: float = 0.0) -> None:
        self._model, self._weight = model, weight
        self._bigrams, self._bigram_weight = bigrams, bigram_weight
        self._session = model.session(empty_cache="reference")
        self._begin = self._stepped(_begin_of(model), bigrams.begin() if bigrams else b"")

    def begin(self) -> Any:
        return self._begin

    def extend(self, states: list[Any], ids: list[int]) -> tuple[Iterable[float], list[Any]]:
        scores, after = [], []
        for state, id in zip(states, ids):
            score, bigrams = self._weight * state.scores[id], state.bigrams
            if self._bigrams is not None:
                value, bigrams = self._bigrams.score(bigrams, self._model.vocabulary[id])
                score += self._bigram_weight * value
            scores.append(score)
            self._session.restore(state.network)
            after.append(self._stepped(id, bigrams))
        return scores, after

    def _stepped(self, id: int, bigrams: bytes) -> Copied:
        self._session.step(id)
        return Copied(self._session.save(), self._session.log_probabilities(), bigrams)


def _begin_of(model: kinglet_lm.Model) -> int:
    begin = model.vocabulary.begin
    if begin is None:
        raise SystemExit(f"transducer: {model.path}: expected a token that begins a text, found "
                         "none; convert a language model of sentences")
    return begin


class Heard(NamedTuple):
    """A hypothesis: its tokens, and the logarithm of its weighted probability."""

    tokens: tuple[int, ...]
    score: float
    state: Any


def search(joiner: Joiner, frames: int, fusion: Fusion, width: int) -> list[Heard]:
    """The hypotheses that are left after all frames, at most `width`, the best one first."""
    found = [Heard((), 0.0, fusion.begin())]
    for frame in range(frames):
        pairs = [(before.score + value, before, id) for before in found
                 for id, value in joiner(frame, before.tokens[-1] if before.tokens else BLANK)]
        best = heapq.nlargest(width, pairs, key=lambda pair: pair[0])
        grown = [(before, id) for _, before, id in best if id != BLANK]
        scores, states = fusion.extend([before.state for before, _ in grown],
                                       [id for _, id in grown]) if grown else ([], [])
        after = iter(list(zip(scores, states)))
        merged: dict[tuple[int, ...], Heard] = {}
        for score, before, id in best:
            heard = Heard(before.tokens, score, before.state)
            if id != BLANK:
                value, state = next(after)
                heard = Heard((*before.tokens, id), score + value, state)
            other = merged.get(heard.tokens)
            if other is not None:
                heard = heard._replace(score=_sum(heard.score, other.score))
            merged[heard.tokens] = heard
        found = list(merged.values())
    return sorted(found, key=lambda heard: -heard.score)


def _sum(a: float, b: float) -> float:
    """ln(exp(a) + exp(b))."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


# --- a transducer that is made up

_PAUSES = 2, 3, 4, 5, 6  # frames between tokens: at 25 frames a second 4 tokens a second
_OTHERS = 15  # symbols of a frame besides the blank and those that are heard
# A token with this logit is heard. If it was the last of a hypothesis, it and what it may be
# mistaken for were emitted: the joiner takes so much away.
_HEARD, _EMITTED = 6.0, 8.0


def made_frames(tokens: Iterable[int], size: int, seed: int, wrong: float = 0.2) -> list[Frame]:
    """What is heard of the tokens, of a vocabulary of this size: logits of likely symbols.

    A token is heard in two frames, and after some frames of blanks; `wrong` is the fraction of
    tokens of which another one is heard louder.
    """
    chance = random.Random(seed)
    frames: list[Frame] = []

    def frame() -> Frame:
        likely = chance.sample(range(2, size), min(_OTHERS, size - 2))
        frames.append({BLANK: 8.0, **{id: chance.gauss(0.0, 1.5) for id in likely}})
        return frames[-1]

    for token in tokens:
        for _ in range(chance.choice(_PAUSES)):
            frame()
        other = chance.randrange(2, size)
        louder = 0.7 if chance.random() < wrong else -1.0
        for loud in (8.5, 10.0):
            heard = frame()
            heard[other] = loud + louder
            heard[token] = loud
    for _ in range(max(_PAUSES)):
        frame()
    return frames


def joiner_of(frames: list[Frame]) -> Joiner:
    """The made-up joiner. Answers are kept, so that a second search has them at once."""
    kept: dict[tuple[int, bool], list[tuple[int, float]]] = {}

    def joiner(frame: int, last: int) -> list[tuple[int, float]]:
        emitted = last != BLANK and frames[frame].get(last, 0.0) >= _HEARD
        found = kept.get((frame, emitted))
        if found is None:
            logits = {id: logit - (_EMITTED if emitted and id != BLANK and logit >= _HEARD else 0.0)
                      for id, logit in frames[frame].items()}
            total = math.log(sum(map(math.exp, logits.values())))
            found = kept[frame, emitted] = [(id, logit - total) for id, logit in logits.items()]
        return found

    return joiner


def write_frames(frames: list[Frame], path: str) -> None:
    """A line a frame: symbol and logit, symbol and logit, .."""
    with open(path, "w", encoding="ascii") as file:
        for frame in frames:
            file.write(" ".join(f"{id} {logit!r}" for id, logit in frame.items()) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--weight", type=float, default=0.3)
    parser.add_argument("--bigrams")
    parser.add_argument("--bigram-weight", type=float, default=-0.1)
    parser.add_argument("--one-by-one", action="store_true")
    parser.add_argument("--frames")
    options = parser.parse_args()
    model = kinglet_lm.Model(options.model)
    frames = made_frames(model.tokenize(options.text), len(model.vocabulary), seed=1)
    if options.frames:
        write_frames(frames, options.frames)
    bigrams = kinglet_lm.Ngrams(options.bigrams) if options.bigrams else None
    way = OneByOne if options.one_by_one else Arena
    fusion = way(model, options.weight, bigrams, options.bigram_weight)
    joiner = joiner_of(frames)
    for name, used in (("without", Nothing()), ("with", fusion)):
        best = search(joiner, len(frames), used, options.beam)[0]
        print(f"{name}\t{best.score:.4f}\t{model.detokenize(best.tokens)}")


if __name__ == "__main__":
    main()
