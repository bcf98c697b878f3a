#!/usr/bin/env python3
"""Word error rates of two speech decoders without a language model, with a 3-gram, with kinglet's.

    word_errors.py WIKITEXT2 MODEL.kgl 3GRAM.arpa [--utterances 500] [--tuned-on 1000]
                   [--wrong 0.15] [--noise 1.0]

WIKITEXT2 is the folder of wiki.valid.tokens and wiki.test.tokens. Utterances are the synthetic ones
of ctc_logits.py: --wrong is the share of letters that are heard as others, --noise the deviation
of what is added. Weights are tuned on those of the validation text. examples/rescoring/README.md
says how its 3-gram is made. Needs pyctcdecode and flashlight-text, and for the 3-gram the model's
vocabulary.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "rescoring"))

from ctc_logits import (
    BLANK,
    LABELS,
    NOISE,
    SPACE,
    WRONG,
    log_softmax,
    logits_of,
    texts,
    word_errors,
)
from ngram import Arpa

from kinglet_lm import Model
from kinglet_lm._histories import History, Reader
from kinglet_lm.integrations import flashlight, pyctcdecode

Items = list[tuple[str, Any]]
Decode = Callable[[Any], str]


class Ngram(Reader):
    """An n-gram model in the place of a network: what the integrations ask, and nothing else."""

    def __init__(self, model: Model, arpa: Arpa) -> None:
        super().__init__(model)
        self.arpa = arpa
        self.names = list(model.vocabulary)

    def name(self, id: int) -> str:
        return "</s>" if id == self.end else self.names[id]

    def log_probabilities_of(self, pairs: Iterable[tuple[History, int]]) -> list[float]:
        return [self.one(history, id) for history, id in pairs]

    def one(self, history: History, id: int) -> float:
        context: list[str] = []
        at: History | None = history
        while at is not None and len(context) < self.arpa.order - 1:
            context.append("<s>" if at.before is None else self.name(at.id))
            at = at.before
        return float(self.arpa.log10_of((*context[::-1], self.name(id)))) * math.log(10)


def items_of(path: pathlib.Path, count: int, wrong: float, noise: float) -> Items:
    with open(path, encoding="utf-8") as file:
        return [(text, logits_of(text, seed, wrong, noise))
                for seed, text in enumerate(texts(file, count))]


def heard_words(model: Model) -> list[str]:
    return [w for w in model.vocabulary if w.isascii() and w.isalpha() and w.islower()]


class Pyctcdecode:
    """100 beams and the host's other defaults; the texts are pieces of sentences: no end."""

    weights = ("alpha", "beta", "unk_score_offset")
    first, steps = (0.8, 1.0, -10.0), (0.4, 2.0, 5.0)

    def __init__(self, model: Model, reader: Reader | None) -> None:
        from pyctcdecode import build_ctcdecoder
        from pyctcdecode.alphabet import Alphabet

        self.tuned = reader is not None
        if reader is None:
            self.decoder = build_ctcdecoder(LABELS)
        else:
            lm = pyctcdecode.LanguageModel(reader, heard_words(model), score_boundary=False)
            self.decoder = pyctcdecode.BeamSearchDecoder(Alphabet.build_alphabet(LABELS), lm)

    def decode(self, *weights: float) -> Decode:
        if self.tuned:
            self.decoder.reset_params(**dict(zip(self.weights, weights)))
        return lambda logits: str(self.decoder.decode(logits))


class Flashlight:
    """50 beams, 10 letters each, over a lexicon of the same words; no end either."""

    weights = ("lm_weight", "word_score")
    first, steps = (0.8, 1.0), (0.4, 2.0)

    def __init__(self, model: Model, reader: Reader | None) -> None:
        from flashlight.lib.text import decoder as host

        self.host, self.tuned = host, True
        self.words = [*heard_words(model), "<unk>"]
        self.lm = host.ZeroLM() if reader is None else flashlight.LanguageModel(
            reader, self.words, score_boundary=False)
        self.weighted = reader is not None
        self.trie = host.Trie(len(LABELS), SPACE)
        start = self.lm.start(False)
        for at, word in enumerate(self.words[:-1]):
            spelling = [LABELS.index(letter) for letter in word] + [SPACE]
            self.trie.insert(spelling, at, self.lm.score(start, at)[1])
        self.trie.smear(host.SmearingMode.MAX)

    def decode(self, *weights: float) -> Decode:
        host, (weight, word) = self.host, weights
        options = host.LexiconDecoderOptions(
            50, 10, 25.0, weight if self.weighted else 0.0, word, -math.inf, 0.0, False,
            host.CriterionType.CTC)
        decoder = host.LexiconDecoder(options, self.trie, self.lm, SPACE, BLANK,
                                      len(self.words) - 1, [], False)

        def text_of(logits: Any) -> str:
            sound = log_softmax(logits, boundary=True)
            best = decoder.decode(sound.ctypes.data, *sound.shape)[0]
            return " ".join(self.words[at] for at in best.words if at >= 0)

        return text_of


def errors(decode: Decode, items: Items) -> int:
    return sum(word_errors(text, decode(logits)) for text, logits in items)


def tune(host: Any, items: Items) -> tuple[float, ...]:
    """A walk over the weights in steps that become smaller once, from where the host begins."""
    known: dict[tuple[float, ...], int] = {}

    def wrong(at: tuple[float, ...]) -> int:
        if at not in known:
            known[at] = errors(host.decode(*at), items)
        return known[at]

    best = host.first
    for share in (1.0, 0.5):
        moved = True
        while moved:
            near = [tuple(round(value + sign * share * step, 6) if at == axis else value
                          for at, value in enumerate(best))
                    for axis, step in enumerate(host.steps) for sign in (1, -1)]
            found = min((at for at in near if at[0] > 0), key=wrong)
            moved = wrong(found) < wrong(best)
            best = found if moved else best
    return tuple(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wikitext2", type=pathlib.Path)
    parser.add_argument("model")
    parser.add_argument("arpa")
    parser.add_argument("--utterances", type=int, default=500)
    parser.add_argument("--tuned-on", type=int, default=1000)
    parser.add_argument("--wrong", type=float, default=WRONG)
    parser.add_argument("--noise", type=float, default=NOISE)
    options = parser.parse_args()
    model = Model(options.model)
    readers = {"no language model": None, "3-gram": Ngram(model, Arpa(options.arpa)),
               "kinglet": Reader(model)}
    heard = options.wrong, options.noise
    tuning = items_of(options.wikitext2 / "wiki.valid.tokens", options.tuned_on, *heard)
    test = items_of(options.wikitext2 / "wiki.test.tokens", options.utterances, *heard)
    words = sum(len(text.split()) for text, _ in test)
    frames = sum(len(logits) for _, logits in test)
    print(f"{len(test)} utterances, {words} words, {frames} frames; tuned on {len(tuning)}")
    for kind in (Pyctcdecode, Flashlight):
        for name, reader in readers.items():
            host = kind(model, reader)
            weights = tune(host, tuning) if host.tuned else ()
            decode = host.decode(*weights)
            before, started = time.process_time(), time.perf_counter()
            wrong = errors(decode, test)
            cpu, wall = time.process_time() - before, time.perf_counter() - started
            weights_text = ", ".join(f"{n} {w:g}" for n, w in zip(host.weights, weights))
            print(f"{kind.__name__:12} {name:18} {100 * wrong / words:6.2f} %  ({wrong} words "
                  f"wrong; {weights_text if host.tuned else 'nothing to tune'}; {cpu:.1f} s of "
                  f"processor, {wall:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
