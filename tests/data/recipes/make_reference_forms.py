#!/usr/bin/env python3
"""Writes tiny checkpoints with the tensor names and forms that examples/recipes/reference-*.json map: networks of random
weights made of examples/torch's modules, renamed, with token ids and float64 log-probabilities of those modules.

    make_reference_forms.py [FOLDER]

Two runs write the same values.
"""
import pathlib
import random
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "examples" / "torch"))

from kinglet_torch.evaluate import log_probabilities, write_golden  # noqa: E402
from kinglet_torch.language_model import LanguageModel  # noqa: E402
from make_fixtures import (adaptive, adaptive_out, define, dpq, fill, full_out, layer, network, slim,  # noqa: E402
                           slim_out, token_ids, widen_margins)

UNITS = [12, 8]
NETWORKS = {
    # The recipe's head has 800 words.
    "define": network(830, define(adaptive(16, [300, 700], [16, 6, 2], True),
                                  [layer(32, 4), layer(48, 2, skip="mix"), layer(32, 1, skip="mix"),
                                   layer(16, 1, activation="none")]),
                      UNITS, adaptive_out([800, 815], [8, 4, 2], bias=False, cluster_bias=False)),
    "dpq": network(70, dpq(32, 16, 5, shared=True, batch_norm="responses", epsilon=1e-5), UNITS, full_out()),
    "slim": network(70, slim(24, 3, 41), UNITS, slim_out([9, 9, 9, 9])),
}


def lstm(state):
    """The layers as one torch.nn.LSTM has them."""
    return {f"lstm.{part}_l{at}": state[f"lstm.{at}.{part}_l0"] for at in range(len(UNITS))
            for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}


def define_names(state):
    names = {f"inp.base.emb.{b}.weight": state[f"input.map.tables.{b}"] for b in range(3)}
    names |= {f"inp.base.proj.{b}.weight": state[f"input.map.projections.{b}"] for b in range(3)}
    for at in range(3):
        names |= {f"inp.layers.{at}.{part}": state[f"input.layers.{at}.{part}"] for part in ("weight", "bias")}
    # A torch.nn.Linear, and torch.nn.AdaptiveLogSoftmaxWithLoss.
    names |= {"inp.reduce.weight": state["input.layers.3.weight"][0].t().contiguous(),
              "inp.reduce.bias": state["input.layers.3.bias"][0],
              "out.head.weight": torch.cat([state["output.tables.0"], state["output.cluster_weight"]])}
    for at in range(2):
        names |= {f"out.tail.{at}.0.weight": state[f"output.projections.{at + 1}"].t().contiguous(),
                  f"out.tail.{at}.1.weight": state[f"output.tables.{at + 1}"]}
    return names


def dpq_names(state):
    return {"inp.query.weight": state["input.query"], "inp.key": state["input.keys"], "inp.value": state["input.values"],
            "inp.bn.running_mean": state["input.batch_norm.running_mean"],
            "inp.bn.running_var": state["input.batch_norm.running_var"],
            "inp.bn.num_batches_tracked": state["input.batch_norm.num_batches_tracked"],
            "out.weight": state["output.table"], "out.bias": state["output.bias"]}


def slim_names(state):
    pools = NETWORKS["slim"][0]["output"]["pools"]
    firsts = torch.tensor([sum(pools[:at]) for at in range(len(pools))])
    return {"inp.table": state["input.sub_vectors"], "inp.map": state["input.mapping"].long(),
            "out.table": state["output.sub_vectors"], "out.map": state["output.mapping"].long() + firsts,
            "bias": state["output.bias"]}


def write(folder: pathlib.Path, name: str, rename):
    config, _ = NETWORKS[name]
    random_numbers = torch.Generator().manual_seed(len(name))
    model = LanguageModel(config).eval()
    with torch.no_grad():
        fill(model, random_numbers)
        widen_margins(model, random_numbers)
    state = model.state_dict()
    folder = folder / f"reference-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(rename(state) | lstm(state), folder / "model.pt")
    ids = token_ids(config["vocabulary"], random.Random(1))
    (folder / "tokens.txt").write_text(" ".join(map(str, ids)) + "\n")
    write_golden(folder / "golden_f64.tsv", ids, log_probabilities(model.double(), ids))


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, rename in (("define", define_names), ("dpq", dpq_names), ("slim", slim_names)):
        write(folder, name, rename)


if __name__ == "__main__":
    main()
