#!/usr/bin/env python3
"""Runs a checkpoint over token ids in float64, one token at a time, and writes what it gave to each id.

    evaluate.py model.pt --ids tokens.txt --golden golden_f64.tsv

The first id is input only. Lines are "position<TAB>id<TAB>natural log-probability", positions from 1: what
`kinglet convert --golden` and `kinglet score` compare with.
"""
import argparse
import math

import torch

from language_model import LanguageModel, load
from techniques.neural_cache import NeuralCache


@torch.no_grad()
def log_probabilities(model: LanguageModel, ids: list) -> list:
    """The log-probabilities of ids[1], ids[2], .., each given all before it. Zero states at the start."""
    cache, values, state = None, [], None
    if "cache" in model.config:
        settings = model.config["cache"]
        cache = NeuralCache(settings["capacity"], settings["theta"], settings["lambda"])
    for previous, word in zip(ids, ids[1:]):
        hidden, state = model(torch.tensor([[previous]]), state)
        hidden = hidden[0, 0]
        found = model.output(hidden)
        if cache:
            found = cache.mixed(found, hidden)
            cache.add(hidden, word)
        values.append(found[word].item())
    return values


def write_golden(path: str, ids: list, values: list):
    with open(path, "w") as out:
        for position, value in enumerate(values, 1):
            out.write(f"{position}\t{ids[position]}\t{value:.15g}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--ids", required=True, help="token ids, separated by white space")
    parser.add_argument("--golden", help="where to write the log-probabilities")
    options = parser.parse_args()
    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    values = log_probabilities(load(options.checkpoint).double(), ids)
    if options.golden:
        write_golden(options.golden, ids, values)
    mean = -sum(values) / len(values)
    print(f"{len(values)} predictions, mean {mean:.6f} nat, perplexity {math.exp(mean):.3f}")


if __name__ == "__main__":
    main()
