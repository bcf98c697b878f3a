#!/usr/bin/env python3
"""Writes the checkpoints of tests/data/kinglet-torch: small networks of every technique, with random weights, token ids
and the log-probabilities that evaluate.py gives in float64. Two runs write the same bytes.

    make_fixtures.py [FOLDER]
"""
import pathlib
import random
import sys

import torch
from kinglet_torch.checkpoint import export, load
from kinglet_torch.evaluate import compressed, log_probabilities, write_golden
from kinglet_torch.language_model import LanguageModel
from kinglet_torch.plan import GradualPruning, plan_of, read_plan
from kinglet_torch.techniques.coded import CodedEmbedding
from kinglet_torch.techniques.define import hgt_layers
from kinglet_torch.techniques.dpq import DpqEmbedding

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = 48


def full(width):
    return {"kind": "full", "width": width}


def low_rank(width, rank):
    return {"kind": "low_rank", "width": width, "rank": rank}


def adaptive(width, cutoffs, band_widths, project_first=False):
    return {"kind": "adaptive", "width": width, "cutoffs": cutoffs, "band_widths": band_widths,
            "project_first": project_first}


def layer(outputs, groups, **changed):
    return dict({"outputs": outputs, "groups": groups, "shared": False, "bias": True, "norm": "none", "epsilon": 1e-5,
                 "activation": "relu", "shuffle": False, "skip": "none", "order": "input_first"}, **changed)


def define(narrow, layers):
    return {"kind": "define", "map": narrow, "layers": layers}


def dpq(width, positions, choices, method="sx", **changed):
    return dict({"kind": "dpq", "width": width, "positions": positions, "choices": choices, "method": method,
                 "shared": False, "combine": "concatenate", "query_width": width, "batch_norm": "choices",
                 "epsilon": 1e-3}, **changed)


def coded(width, positions, choices, combine, **changed):
    return dict({"kind": "coded", "width": width, "positions": positions, "choices": choices, "combine": combine,
                 "shared": False, "code_width": width, "projection": False, "bias": False, "learned": False}, **changed)


def slim(width, positions, pool, mapping="shuffled", seed=1):
    return {"kind": "slim", "width": width, "positions": positions, "pool": pool, "mapping": mapping, "seed": seed}


def full_out(bias=True):
    return {"kind": "full", "bias": bias}


def adaptive_out(cutoffs, band_widths, project_first=False, bias=True, cluster_bias=True, cluster_order="forward"):
    return {"kind": "adaptive", "cutoffs": cutoffs, "band_widths": band_widths, "project_first": project_first,
            "bias": bias, "cluster_bias": cluster_bias, "cluster_order": cluster_order}


def slim_out(pools, mapping="shuffled", bias=True, seed=2):
    return {"kind": "slim", "pools": pools, "mapping": mapping, "seed": seed, "bias": bias}


def class_out(sizes, bias=True):
    return {"kind": "class_factored", "class_sizes": sizes, "bias": bias}


def network(words, embedding, units, softmax, tied=(), scale=1.0, pruned=0.0, cache=None):
    config = {"vocabulary": words, "scale": scale, "tied": list(tied), "input": embedding, "lstm": {"units": units},
              "output": softmax}
    if cache:
        config["cache"] = cache
    return config, pruned


P1_LAYERS = [layer(16, 4, shared=True, activation="none"),
             layer(24, 2, shared=True, activation="none", skip="mix", order="output_first"),
             layer(20, 1, activation="none")]
RESIDUAL_LAYERS = [layer(24, 3, activation="tanh"), layer(24, 4, activation="swish", shuffle=True, skip="residual"),
                   layer(24, 2, bias=False, norm="layer", activation="gelu", skip="residual")]
CONCAT_LAYERS = [layer(14, 2, shuffle=True, norm="layer", epsilon=1e-3, activation="swish"),
                 layer(22, 2, skip="concat", activation="gelu", shared=True, norm="layer"),
                 layer(16, 1, skip="concat", order="output_first", activation="none", bias=False)]

NETWORKS = {
    "full": network(61, full(12), [10, 9], full_out()),
    "full-tied-scaled": network(60, full(16), [12, 16], full_out(), ["table"], scale=4.0),
    "full-no-bias-cache": network(83, full(11), [13], full_out(False),
                                  cache={"capacity": 7, "theta": 0.6, "lambda": 0.15}),
    "low-rank-tied": network(90, low_rank(20, 6), [20], {"kind": "low_rank", "rank": 6, "bias": True},
                             ["table", "projection"]),
    "low-rank-own": network(71, low_rank(9, 1), [14], {"kind": "low_rank", "rank": 5, "bias": False}),
    "adaptive-tied": network(120, adaptive(24, [20, 63], [24, 12, 6]), [24], adaptive_out([20, 63], [24, 12, 6]),
                             ["tables", "projections"]),
    "adaptive-tied-tables": network(120, adaptive(16, [20, 63], [16, 4, 1]), [16],
                                    adaptive_out([20, 63], [16, 4, 1], cluster_order="reversed", cluster_bias=False),
                                    ["tables"], scale=4.0),
    "adaptive-own": network(133, adaptive(18, [17, 18, 90], [18, 9, 5, 2]), [15],
                            adaptive_out([40, 41], [15, 3, 7], bias=False, cluster_bias=False)),
    "adaptive-first-projected": network(99, adaptive(16, [30, 70], [12, 8, 4], True), [16],
                                        adaptive_out([30, 70], [12, 8, 4], True, cluster_order="reversed"),
                                        ["tables", "projections"]),
    "define-hgt": network(97, define(full(8), hgt_layers(8, 32, 3, 4, 20)), [12], full_out()),
    "define-shared-output-first": network(80, define(full(8), P1_LAYERS), [20, 8], full_out(), ["table"]),
    "define-residual-low-rank": network(70, define(low_rank(12, 4), RESIDUAL_LAYERS), [16], full_out()),
    "define-concat-adaptive": network(131, define(adaptive(12, [31, 77], [12, 6, 3]), CONCAT_LAYERS), [18, 12],
                                      adaptive_out([31, 77], [12, 6, 3]), ["tables", "projections"]),
    "dpq-sx": network(101, dpq(24, 4, 7), [14], full_out()),
    "dpq-sx-shared-responses": network(100, dpq(20, 5, 16, shared=True, batch_norm="responses", epsilon=1e-5), [12],
                                       slim_out([13, 25, 7])),
    "dpq-vq": network(77, dpq(16, 16, 2, "vq"), [15], adaptive_out([19, 50], [15, 7, 3])),
    "dpq-vq-shared-plain": network(64, dpq(18, 3, 33, "vq", shared=True, batch_norm="none"), [10], full_out()),
    "dpq-sx-mean-narrow-queries": network(66, dpq(13, 3, 9, combine="mean", query_width=12), [11], full_out(False)),
    "shu": network(150, coded(19, 6, 5, "sum"), [12], full_out()),
    "kd-mean-shared": network(88, coded(17, 5, 8, "mean", shared=True, learned=True), [13], full_out()),
    "kd-mean-linear": network(88, coded(17, 4, 6, "mean", code_width=7, projection=True, bias=True), [13],
                              class_out([1, 2, 5, 10, 20, 50])),
    "slim": network(113, slim(24, 6, 50), [16], slim_out([20, 21, 19, 20])),
    "slim-few": network(67, slim(15, 3, 2), [9], slim_out([1, 67, 100], bias=False)),
    "slim-hashed": network(113, slim(24, 6, 50, "hashed", 2 ** 62 + 5), [16], slim_out([20, 30], "hashed", seed=77)),
    "hashed": network(103, {"kind": "hashed", "width": 13, "pool": 97, "seed": 12345}, [12],
                      slim_out([40] * 12, "hashed", seed=0)),
    "classes": network(99, full(10), [17, 11], class_out([7] * 14 + [1])),
    "classes-no-bias": network(62, slim(12, 12, 31), [11], class_out([62], False)),
    "everything": network(
        200, {"kind": "binned", "cutoffs": [47],
              "bins": [define(full(8), hgt_layers(8, 24, 2, 4, 28)), dpq(28, 7, 11, shared=True)]},
        [30, 24], slim_out([50, 33, 40, 27, 50, 61]), pruned=0.4,
        cache={"capacity": 20, "theta": 0.5, "lambda": 0.2}),
    "binned-three": network(
        110, {"kind": "binned", "cutoffs": [20, 21], "bins": [low_rank(12, 5), full(12), coded(12, 4, 3, "sum")]},
        [14], adaptive_out([20, 21], [14, 9, 4])),
}


def fill(model: LanguageModel, random_numbers: torch.Generator):
    """Weights large enough that every part of the network shows in its answers."""
    def normal(tensor):
        return torch.randn(tensor.shape, generator=random_numbers)

    for name, parameter in model.named_parameters():
        numbers = normal(parameter)
        if name.endswith("norm.weight"):
            parameter.data = 1 + 0.2 * numbers
        elif "bias" in name:
            parameter.data = 0.3 * numbers
        elif name.startswith("input.") and "layers" in name:  # DeFINE's [groups, inputs, outputs]
            parameter.data = numbers * parameter.shape[1] ** -0.5
        elif name.startswith("input.") and "projection" not in name:  # the rows, or what makes them
            parameter.data = 0.8 * numbers
        else:
            parameter.data = 2 * numbers * parameter.shape[-1] ** -0.5
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(0.3 * normal(buffer))
        elif name.endswith("running_var"):
            buffer.copy_(0.5 + normal(buffer).square())
    for module in model.modules():
        if isinstance(module, CodedEmbedding) and module.codes is not None:
            module.codes.copy_(torch.randint(module.choices, module.codes.shape, generator=random_numbers))


def widen_margins(model: LanguageModel, random_numbers: torch.Generator):
    """Codes must not depend on rounding: draws those queries again whose best response is hardly above the second."""
    for module in model.modules():
        while isinstance(module, DpqEmbedding):
            best = module.responses(module.queries(torch.arange(len(module.query)))).topk(2).values
            close = ((best[..., 0] - best[..., 1]) < 1e-4).any(-1)
            if not close.any():
                break
            module.query[close] = 0.8 * torch.randn(module.query[close].shape, generator=random_numbers)


def token_ids(words: int, numbers: random.Random) -> list:
    """The first and the last word, words of all ranks, and some again and again, so that a cache finds them."""
    often = [numbers.randrange(words) for _ in range(4)]
    ids = [numbers.choice(often) if numbers.random() < 0.3 else numbers.randrange(words) for _ in range(TOKENS - 4)]
    return ids[:3] + [words - 1, 0, words - 1, 0] + ids[3:]


def write(folder: pathlib.Path, name: str):
    config, pruned = NETWORKS[name]
    seed = sum(ord(letter) * (1 + at) for at, letter in enumerate(name))
    random_numbers = torch.Generator().manual_seed(seed)
    model = LanguageModel(config).eval()
    with torch.no_grad():
        fill(model, random_numbers)
        widen_margins(model, random_numbers)
    layers = [{"pass": "prune", "tensors": ["recurrent.*weight"], "fraction": pruned}]
    GradualPruning(model, plan_of(model, layers).fractions).step(0)
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    export(model, folder / "model.pt")
    sharp = load(folder / "model.pt").double()
    ids = token_ids(config["vocabulary"], random.Random(seed))
    (folder / "tokens.txt").write_text(" ".join(map(str, ids)) + "\n")
    values = log_probabilities(sharp, ids)
    write_golden(folder / "golden_f64.tsv", ids, values)
    if name == "everything":  # and what the recipe examples/recipes/everything.json makes of it
        plan = read_plan(model, HERE.parent / "recipes" / "everything.json")
        values = log_probabilities(compressed(load(folder / "model.pt"), plan).double(), ids)
        write_golden(folder / "golden_9bit_f64.tsv", ids, values)
    print(f"{name}: {(folder / 'model.pt').stat().st_size} bytes, {min(values):.2f} .. {max(values):.2f}")


def main():
    default = HERE.parent.parent / "tests" / "data" / "kinglet-torch"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for name in NETWORKS:
        write(folder, name)


if __name__ == "__main__":
    main()
