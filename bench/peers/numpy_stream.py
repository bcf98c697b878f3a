"""Streams one text through a runtime that is called from numpy, and times each token.

Around the runtime's step: the window of keys and values, the neural cache (Grave et al. 2017), and the score.
"""
import math
import time

import numpy


def stream(shape, step, ids: list, tokens: int, memory: tuple, masked: float) -> dict:
    """The scored loss and the time of the last `tokens` steps, after window and cache are full if `ids` allow it.

    shape: has window, width, pairs, theta and share (the cache's; pairs 0 means no cache).
    step(token, keys, values, mask) -> (probabilities, hidden, keys, values), numpy arrays; mask [window] is 0 where a slot
    holds a token and `masked` elsewhere; memory: the first keys and values.
    """
    keys, values = memory
    cache_keys = numpy.zeros((shape.pairs, shape.width), numpy.float32)
    cache_words = numpy.zeros(shape.pairs, numpy.int64)
    hidden, stored, total, times = None, 0, 0.0, []
    warm = max(0, min(shape.window + shape.pairs, len(ids) - 1 - tokens))
    count = min(len(ids) - 1, warm + tokens)
    for t in range(count):
        start = time.perf_counter()
        if shape.pairs and hidden is not None:
            cache_keys[stored % shape.pairs], cache_words[stored % shape.pairs] = hidden, ids[t]
            stored += 1
        mask = numpy.zeros(shape.window, numpy.float32)
        mask[:max(0, shape.window - 1 - t)] = masked
        p, hidden, keys, values = step(ids[t], keys, values, mask)
        held = min(stored, shape.pairs)
        if shape.pairs:
            p *= 1 - shape.share
        if held:
            logits = shape.theta * (cache_keys[:held] @ hidden)
            weights = numpy.exp(logits - logits.max())
            numpy.add.at(p, cache_words[:held], weights * (shape.share / weights.sum()))
        if t >= warm:
            times.append(time.perf_counter() - start)
        total -= math.log(max(p[ids[t + 1]], 1e-45))
    times.sort()
    return {"us_per_token": {"p50": times[len(times) // 2] * 1e6, "p90": times[len(times) * 9 // 10] * 1e6},
            "nll": total / count, "scored": count}


def read_ids(path: str) -> list:
    with open(path) as file:
        return [int(token) for token in file.read().split()]
