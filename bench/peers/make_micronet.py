#!/usr/bin/env python3
"""Writes a MicroNet checkpoint with random weights of published shapes and zeros: the same network for every runtime.

    make_micronet.py ../../tests/data/micronet-best-shapes.json FOLDER [--ids 6000] [--seed 1]

FOLDER gets config.yaml, models/model-1.pth, vocab.txt, tokens.txt (ids that fall into the bins as often as those of
WikiText-103's test text do) and text.txt (other such ids as words, to calibrate with).
"""
import argparse
import collections
import json
import math
import os

import numpy
import torch


def drawn_ids(shapes: dict, count: int, random: numpy.random.Generator) -> numpy.ndarray:
    """In each bin the lower ids are the likelier, as 1 / rank."""
    config = shapes["config"]
    ends = [0, *config["cutoffs"], config["n_vocab"]]
    share = numpy.array(shapes["test_bin_counts"], float)
    bins = random.choice(len(share), count, p=share / share.sum())
    sizes = numpy.diff(ends)[bins]
    return numpy.array(ends)[bins] + numpy.floor(sizes ** random.random(count) - 1e-9).astype(int).clip(0, sizes - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes")
    parser.add_argument("folder")
    parser.add_argument("--ids", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with open(options.shapes) as file:
        shapes = json.load(file)
    config = shapes["config"]
    torch.manual_seed(options.seed)
    random = numpy.random.default_rng(options.seed)

    weights = collections.OrderedDict()
    for tensor in shapes["tensors"]:
        shape = tensor["shape"]
        value = torch.randn(shape) / math.sqrt(shape[-1] if len(shape) > 1 else 16)
        if tensor["final_sparsity"]:
            value[torch.rand(shape) < tensor["final_sparsity"]] = 0
        weights[tensor["tensor"]] = value
    for i in range(config["n_layers"]):
        for norm in ("ln1", "ln2"):
            weights[f"layers.{i}.{norm}.weight"] = torch.ones(config["n_embed"])
            weights[f"layers.{i}.{norm}.bias"] = torch.zeros(config["n_embed"])
    for name in [name for name in weights if name.startswith("embed.layers.")]:
        weights.setdefault(name.replace("embed", "loss"), weights[name])

    os.makedirs(os.path.join(options.folder, "models"), exist_ok=True)
    torch.save({"step": 1, "net": weights}, os.path.join(options.folder, "models", "model-1.pth"))
    settings = {key: value for key, value in config.items() if key != "bits"}
    settings.update(use_cache=config["n_cache"] > 0, pos_emb="trained")
    with open(os.path.join(options.folder, "config.yaml"), "w") as file:
        json.dump(settings, file, indent=1)  # which is YAML, too
    with open(os.path.join(options.folder, "vocab.txt"), "w") as file:
        file.writelines("<eos>\n" if word == 0 else f"w{word}\n" for word in range(config["n_vocab"]))
    with open(os.path.join(options.folder, "tokens.txt"), "w") as file:
        file.write(" ".join(map(str, drawn_ids(shapes, options.ids, random))))
    with open(os.path.join(options.folder, "text.txt"), "w") as file:
        file.write(" ".join(f"w{max(word, 1)}" for word in drawn_ids(shapes, 2000, random)) + "\n")


if __name__ == "__main__":
    main()
