#!/usr/bin/env python3
"""How long a step takes along a text, and how perplexity depends on how frequent a word is.

    curves.py MODEL.kgl TEXT [PICTURE.png]

Prints both as tables; with PICTURE also draws them (needs matplotlib). A word's frequency is that
in the text itself: the words of the text fall into bins of ranks 1-10, 11-100, 101-1000, ...
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import kinglet_lm

Curve = list[tuple[str, float]]


def latencies(model: kinglet_lm.Model, ids: list[int], pieces: int = 10) -> Curve:
    """The median microseconds of a step with one query, in equal pieces of the text."""
    session = model.session()
    times = []
    for now, after in zip(ids, ids[1:]):
        begin = time.perf_counter()
        session.step(now)
        session.log_probability(after)
        times.append((time.perf_counter() - begin) * 1e6)
    size = max(1, math.ceil(len(times) / pieces))
    return [(str(at), statistics.median(times[at : at + size]))
            for at in range(0, len(times), size)]


def perplexities(model: kinglet_lm.Model, ids: list[int]) -> Curve:
    """Perplexity of the words whose rank by frequency lies in each power of ten."""
    score = model.score_stream(ids)
    ranks = {id: rank for rank, (id, _) in enumerate(Counter(ids).most_common(), 1)}
    bins: dict[int, list[float]] = {}
    for id, value in zip(score.ids, score.log_probabilities):
        bins.setdefault(math.ceil(math.log10(max(ranks[id], 10))), []).append(value)
    return [(f"to {10 ** power}", math.exp(-statistics.fmean(values)))
            for power, values in sorted(bins.items())]


def draw(curves: list[tuple[str, str, Curve]], picture: str) -> None:
    """Draws the curves side by side."""
    from matplotlib import pyplot

    _, axes = pyplot.subplots(1, len(curves), figsize=(10, 4))
    for axis, (title, label, curve) in zip(axes, curves):
        axis.plot([name for name, _ in curve], [value for _, value in curve], marker="o")
        axis.set(title=title, xlabel=label)
        if title == "perplexity":
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.1 * max(value for _, value in curve))
    pyplot.tight_layout()
    pyplot.savefig(picture)


def main() -> None:
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    model = kinglet_lm.Model(sys.argv[1])
    ids = model.tokenize(Path(sys.argv[2]).read_text(encoding="utf-8", errors="surrogateescape"))
    curves = [
        ("microseconds a step", "position", latencies(model, ids)),
        ("perplexity", "rank by frequency", perplexities(model, ids)),
    ]
    for title, label, curve in curves:
        print(f"{title}, by {label}:")
        for name, value in curve:
            print(f"  {name:>9} {value:10.1f}")
    if len(sys.argv) == 4:
        draw(curves, sys.argv[3])


if __name__ == "__main__":
    main()
