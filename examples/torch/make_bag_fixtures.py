#!/usr/bin/env python3
"""Writes tests/data/bag-classifier: classifiers of word lists with random weights, lists, and what PyTorch makes of
them in float64. Two runs write the same bytes.

    make_bag_fixtures.py [FOLDER]

A folder has model.pt (the state dict), recipe.json, lists.txt (word ids, a list in each line), logits_f64.tsv (a line
for each list) and vectors_f64.tsv (a line for each word).
"""
import json
import pathlib
import random
import sys

import torch
from kinglet_torch.bag_classifier import BagClassifier
from kinglet_torch.techniques.dpq import DpqEmbedding
from kinglet_torch.techniques.full import FullEmbedding
from make_fixtures import fill, widen_margins

HERE = pathlib.Path(__file__).resolve().parent
WORDS, WIDTH, CLASSES = 100, 12, 4
FULL = "embedding.table"
DPQ = {"dpq": {"method": "sx", "positions": 4, "query": "embedding.query", "keys": "embedding.keys",
               "values": "embedding.values", "combine": "concatenate", "batch_norm": "choices", "epsilon": 1e-3,
               "mean": "embedding.batch_norm.running_mean", "variance": "embedding.batch_norm.running_var"}}
# Embedding, hidden units, max-pool, padding.
MODELS = {"full": (FULL, 0, False, 0), "full-hidden": (FULL, 9, False, 0), "dpq-max": (DPQ, 0, True, 0),
          "dpq-hidden-max": (DPQ, 7, True, 0)}


def embedding(table):
    if table == FULL:
        return FullEmbedding(WORDS, WIDTH)
    return DpqEmbedding(WORDS, WIDTH, positions=4, choices=8, method="sx", shared=False, combine="concatenate",
                        query_width=WIDTH, batch_norm="choices", epsilon=1e-3)


def norm(name):
    return {"gain": f"{name}.weight", "offset": f"{name}.bias", "mean": f"{name}.running_mean",
            "variance": f"{name}.running_var", "epsilon": 1e-3}


def recipe(table, hidden, max_pool, padding):
    classifier = {"padding": padding, "max_pool": max_pool, "weight": "output.weight", "bias": "output.bias"}
    if hidden:
        classifier["hidden"] = {"input_norm": norm("hidden.0"), "weight": "hidden.2.weight", "bias": "hidden.2.bias",
                                "output_norm": norm("hidden.3")}
    return {"embedding": {"scale": 1, "table": table}, "classifier": classifier}


def word_lists(padding):
    """One word; one word again and again; lists with padding after, before and between, and without; a long one."""
    numbers = random.Random(7)
    lists = [[5], [99] * 3, [1, padding], [padding, padding, 3], [8, padding, 8, 21]]
    for length in (2, 7, 20, 33, 64):
        words = [numbers.randrange(1, WORDS) for _ in range(length)]
        lists += [words, words + [padding] * 5]
    return lists + [[numbers.randrange(1, WORDS) for _ in range(1500)]]


def write_rows(path, rows):
    path.write_text("".join("\t".join(f"{number:.17g}" for number in row) + "\n" for row in rows.tolist()))


@torch.no_grad()
def write(folder, name):
    table, hidden, max_pool, padding = MODELS[name]
    model = BagClassifier(embedding(table), CLASSES, hidden, max_pool, padding).eval()
    random_numbers = torch.Generator().manual_seed(len(name))
    fill(model, random_numbers)
    for key, parameter in model.named_parameters():
        if key in ("hidden.0.weight", "hidden.3.weight"):  # gains
            parameter.copy_(1 + 0.2 * torch.randn(parameter.shape, generator=random_numbers))
    widen_margins(model, random_numbers)
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), folder / "model.pt")
    (folder / "recipe.json").write_text(json.dumps(recipe(table, hidden, max_pool, padding), indent=1) + "\n")
    lists = word_lists(padding)
    (folder / "lists.txt").write_text("".join(" ".join(map(str, words)) + "\n" for words in lists))
    sharp = model.double()
    write_rows(folder / "logits_f64.tsv", torch.cat([sharp(torch.tensor([words])) for words in lists]))
    write_rows(folder / "vectors_f64.tsv", sharp.embedding(torch.arange(WORDS)))


def main():
    default = HERE.parent.parent / "tests" / "data" / "bag-classifier"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for name in MODELS:
        write(folder, name)


if __name__ == "__main__":
    main()
