"""examples/hosts/transducer.py and .cc: both ways find what plain fusion and brute force find.

    transducer_test.py TRANSDUCER   (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

TRANSDUCER is the program in C++.
"""

import itertools
import math
import pathlib
import random
import subprocess
import sys
import tempfile

import kinglet_lm
from ngrams_test import log_p, opened
from support import DATA, ROOT

sys.path.insert(0, str(ROOT / "examples" / "hosts"))
import transducer  # noqa: E402

WEIGHT, BIGRAM_WEIGHT = 0.6, -0.2


class Exact:
    """Weighted scores of tokens by a session that steps from the start, and by the definition."""

    def __init__(self, model, table):
        self.model, self.table = model, table
        self.session = model.session()
        self.pieces = list(model.vocabulary)
        self.known = {}

    def score(self, tokens, id):
        if (tokens, id) not in self.known:
            self.session.reset()
            for token in (self.model.vocabulary.begin, *tokens):
                self.session.step(token)
            before = ["<s>", *(self.pieces[token] for token in tokens)]
            self.known[tokens, id] = (
                WEIGHT * self.session.log_probability(id)
                + BIGRAM_WEIGHT * log_p(self.table, 2, before, self.pieces[id]))
        return self.known[tokens, id]


def log_sum(values):
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))


def symbols(frame, tokens):
    """ln p of each symbol of a frame after these tokens."""
    heard = [id for id, logit in frame.items() if id != 0 and logit >= 6]
    emitted = heard if tokens and tokens[-1] in heard else []
    logits = {id: logit - (8 if id in emitted else 0) for id, logit in frame.items()}
    total = log_sum(list(logits.values()))
    return {id: logit - total for id, logit in logits.items()}


def plain(frames, width, exact):
    """The search written down as its description."""
    found = {(): 0.0}
    for frame in frames:
        pairs = [(score + value, tokens, id) for tokens, score in found.items()
                 for id, value in symbols(frame, tokens).items()]
        pairs.sort(key=lambda pair: -pair[0])
        ends = {}
        for score, tokens, id in pairs[:width]:
            after, added = (tokens, 0) if id == 0 else ((*tokens, id), exact.score(tokens, id))
            ends.setdefault(after, []).append(score + added)
        found = {tokens: log_sum(scores) for tokens, scores in ends.items()}
    return found


def brute_force(frames, exact):
    """Every sequence of symbols."""
    ends = {}
    for path in itertools.product(*frames):
        tokens, total = (), 0.0
        for frame, id in zip(frames, path):
            total += symbols(frame, tokens)[id]
            if id != 0:
                total += exact.score(tokens, id)
                tokens = (*tokens, id)
        ends.setdefault(tokens, []).append(total)
    return {tokens: log_sum(scores) for tokens, scores in ends.items()}


def compare(found, expected):
    """Texts and scores are the expected ones, the best first."""
    assert {tokens for tokens, _ in found} == set(expected), (found, expected)
    for tokens, score in found:
        assert abs(score - expected[tokens]) < 1e-4, (tokens, score, expected[tokens])
    scores = [score for _, score in found]
    assert scores == sorted(scores, reverse=True)


class Program:
    def __init__(self, program, model, bigrams):
        self.program, self.model, self.bigrams = program, model, bigrams

    def found(self, frames, width, *options):
        with tempfile.NamedTemporaryFile() as file:
            transducer.write_frames(frames, file.name)
            printed = subprocess.run(
                [self.program, self.model.path, file.name, str(width), str(WEIGHT),
                 self.bigrams.path, str(BIGRAM_WEIGHT), *options], check=True, capture_output=True,
                text=True).stdout
        lines = [line.split("\t") for line in printed.splitlines()]
        return [(tuple(map(int, tokens.split())), float(score)) for score, tokens in lines]


def searches(model, bigrams, exact, program):
    draw = random.Random(2)
    arena = transducer.Arena(model, WEIGHT, bigrams, BIGRAM_WEIGHT, lanes=3)
    copied = transducer.OneByOne(model, WEIGHT, bigrams, BIGRAM_WEIGHT)
    size = len(model.vocabulary)
    changed = 0
    for seed in range(12):
        width = (1, 4, 8)[seed % 3]
        spoken = [draw.randrange(2, size) for _ in range(10)]
        frames = transducer.made_frames(spoken, size, seed, wrong=0.4)
        joiner = transducer.joiner_of(frames)
        expected = plain(frames, width, exact)
        for fusion in (arena, copied):
            found = transducer.search(joiner, len(frames), fusion, width)
            compare([(heard.tokens, heard.score) for heard in found], expected)
        compare(program.found(frames, width), expected)
        compare(program.found(frames, width, "--one-by-one"), expected)
        alone = transducer.search(joiner, len(frames), transducer.Nothing(), width)
        changed += alone[0].tokens != found[0].tokens
    assert changed > 3, changed  # otherwise the searches above show little
    return arena.beam.stepped


def whole(model, bigrams, exact, program):
    """A search that drops nothing has the sums of all paths."""
    frames = [{0: 1.0, 3: 0.5, 4: -0.3}, {0: 0.2, 4: 1.0, 3: 0.9}, {4: 0.4, 0: 0.0, 5: 0.1},
              {0: 2.0, 4: 1.5}, {5: 0.7, 0: 0.6, 3: 0.1}]
    expected = brute_force(frames, exact)
    assert len(expected) > 50
    arena = transducer.Arena(model, WEIGHT, bigrams, BIGRAM_WEIGHT)
    found = transducer.search(transducer.joiner_of(frames), len(frames), arena, 10 ** 6)
    compare([(heard.tokens, heard.score) for heard in found], expected)
    compare(program.found(frames, 10 ** 6), expected)
    return len(expected)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checkpoint = DATA / "speech-lm-variants" / "icefall-rnn-tied" / "epoch-7.pt"
        kinglet_lm.convert(checkpoint, folder / "pieces.kgl", family="icefall-rnn-lm")
        model = kinglet_lm.Model(folder / "pieces.kgl")
        table, bigrams = opened(folder, list(model.vocabulary)[3:], 2, 8)
        exact, program = Exact(model, table), Program(sys.argv[1], model, bigrams)
        stepped = searches(model, bigrams, exact, program)
        texts = whole(model, bigrams, exact, program)
    print(f"transducers: plain fusion's texts in Python and C++, {stepped} tokens computed; "
          f"{texts} texts with the sums of all paths")


if __name__ == "__main__":
    main()
