"""The output of an acoustic model for a text: CTC logits with deterministic noise.

    texts(lines, 500)            runs of 5 to 12 lower-case words
    logits_of(text, seed)        float32 [frames, labels], not normalised
    logits_of(text, seed, 0.3, 1.5)    harder to hear: twice as many wrong letters, and more noise

Each letter lasts one to three frames between blanks. Some letters are heard as a neighbour of
theirs, with more weight than themselves, so that only a language model can repair the word.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterable
from typing import Any

import numpy

LABELS = [" ", *string.ascii_lowercase, ""]  # pyctcdecode's form: "" is CTC's blank
SPACE, BLANK = 0, len(LABELS) - 1
_PAIRS = "ae", "ei", "ou", "bp", "dt", "mn", "sz", "fv", "gk", "ck", "lr"
_HEARD_AS = {pair[at]: pair[1 - at] for pair in _PAIRS for at in (0, 1)}
WRONG, NOISE = 0.15, 1.0  # fraction of letters that are heard as another; deviation of the noise
_LOUD, _LOUDER, _FAINT = 7.0, 7.7, 4.0  # the letter; the wrong one; the neighbour that is not heard


def texts(lines: Iterable[str], most: int, shortest: int = 5, longest: int = 12) -> list[str]:
    """The first `most` runs of plain words in the lines."""
    found: list[str] = []
    for line in lines:
        run: list[str] = []
        for word in [*line.split(), ""]:
            if word.isascii() and word.isalpha() and word.islower():
                run.append(word)
                continue
            if shortest <= len(run) <= longest:
                found.append(" ".join(run))
                if len(found) == most:
                    return found
            run = []
    return found


def logits_of(text: str, seed: int, wrong: float = WRONG, noise: float = NOISE) -> Any:
    """The logits of a text."""
    chance = random.Random(seed)
    frames: list[tuple[str, str | None]] = []
    for letter in text:
        if chance.random() < 0.5 or (frames and letter == frames[-1][0]):
            frames.append(("", None))
        other = _HEARD_AS.get(letter) if chance.random() < wrong else None
        frames += [(letter, other)] * chance.choice((1, 1, 2, 3))
    frames.append(("", None))
    shape = len(frames), len(LABELS)
    logits = numpy.random.default_rng(seed).normal(0.0, noise, shape).astype(numpy.float32)
    for at, (letter, other) in enumerate(frames):
        logits[at, LABELS.index(letter)] += _LOUD
        if other is not None:
            logits[at, LABELS.index(other)] += _LOUDER
        elif letter in _HEARD_AS:
            logits[at, LABELS.index(_HEARD_AS[letter])] += _FAINT
    return logits


def log_softmax(logits: Any, boundary: bool = False) -> Any:
    """Log-probabilities; with `boundary` a frame of it follows, at which the last word ends."""
    if boundary:
        end = numpy.full((1, len(LABELS)), -10.0, numpy.float32)
        end[0, SPACE] = 10.0
        logits = numpy.concatenate([logits, end])
    logits = logits - logits.max(1, keepdims=True)
    logits = logits - numpy.log(numpy.exp(logits).sum(1, keepdims=True))
    return numpy.ascontiguousarray(logits, dtype=numpy.float32)


def word_errors(reference: str, hypothesis: str) -> int:
    """Words to insert, delete or replace."""
    spoken, heard = reference.split(), hypothesis.split()
    row = list(range(len(heard) + 1))
    for i, a in enumerate(spoken, 1):
        above, row[0] = row[0], i
        for j, b in enumerate(heard, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (a != b))
    return row[-1]
