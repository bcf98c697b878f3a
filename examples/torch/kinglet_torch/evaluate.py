#!/usr/bin/env python3
"""Runs a checkpoint over token ids in float64, one token at a time, and writes what it gave to each id.

    python3 -m kinglet_torch.evaluate model.pt --ids tokens.txt --golden golden_f64.tsv

With `--plan` the model is pruned and rounded first, as `kinglet convert` does by the passes of that recipe.
The first id is input only. Lines are "position<TAB>id<TAB>natural log-probability", positions from 1: what
`kinglet convert --golden` and `kinglet score` compare with.
"""
import argparse
import math

import torch

from .checkpoint import load
from .plan import GradualPruning, read_plan
from .quantise import Quantised
from .techniques.neural_cache import NeuralCache


@torch.no_grad()
def log_probabilities(model, ids: list) -> list:
    """The log-probabilities of ids[1], ids[2], .., each given all before it, by a language model or a `Quantised`."""
    cache, values, state = None, [], None
    config = model.model.config if isinstance(model, Quantised) else model.config
    if "cache" in config:
        settings = config["cache"]
        cache = NeuralCache(settings["capacity"], settings["theta"], settings["lambda"])
    for previous, word in zip(ids, ids[1:]):
        found, hidden, state = model(torch.tensor([[previous]]), state)
        found, hidden = found[0, 0], hidden[0, 0]
        if cache:
            found = cache.mixed(found, hidden)
            cache.add(hidden, word)
        values.append(found[word].item())
    return values


def compressed(model, plan) -> Quantised:
    """The model with all of the plan at once."""
    GradualPruning(model, plan.fractions).step(0)
    return Quantised(model, plan).eval()


def write_golden(path: str, ids: list, values: list):
    with open(path, "w") as out:
        for position, value in enumerate(values, 1):
            out.write(f"{position}\t{ids[position]}\t{value:.15g}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--ids", required=True, help="token ids, separated by white space")
    parser.add_argument("--golden", help="where to write the log-probabilities")
    parser.add_argument("--plan", help="a recipe whose passes prune and quantise")
    options = parser.parse_args()
    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    model = load(options.checkpoint)
    if options.plan:
        model = compressed(model, read_plan(model, options.plan))
    values = log_probabilities(model.double(), ids)
    if options.golden:
        write_golden(options.golden, ids, values)
    mean = -sum(values) / len(values)
    print(f"{len(values)} predictions, mean {mean:.6f} nat, perplexity {math.exp(mean):.3f}")


if __name__ == "__main__":
    main()
