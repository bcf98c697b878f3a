#!/usr/bin/env python3
"""Streams a checkpoint of examples/torch in PyTorch, float32, and prints what a token costs as one line of JSON.

    stream_lstm.py make model.pt --ids-out tokens.txt     # LSTM of 2 x 1500 units, 10,000 words, DPQ input (K 32, D 50), random
    stream_lstm.py run model.pt --ids tokens.txt [--threads 1] [--tokens 300]

The input's row is a look-up: the table that DPQ's codes and values stand for is made once.
"""
import argparse
import json
import math
import os
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "torch"))
from kinglet_torch import LanguageModel, export, load  # noqa: E402


def make(path: str, ids_path: str):
    torch.manual_seed(1)
    words, width = 10000, 1500
    config = {"vocabulary": words, "scale": 1.0, "tied": [], "lstm": {"units": [width, width]},
              "input": {"kind": "dpq", "width": width, "positions": 50, "choices": 32, "method": "sx", "shared": True,
                        "combine": "concatenate", "query_width": width, "batch_norm": "choices", "epsilon": 0.001},
              "output": {"kind": "full", "bias": True}}
    model = LanguageModel(config)
    for parameter in model.lstm.parameters():  # as an LSTM of the PTB recipes begins: gates that open
        torch.nn.init.uniform_(parameter, -0.04, 0.04)
    export(model, path)
    words_path = path + ".vocab.txt"
    with open(words_path, "w") as file:
        file.writelines("<eos>\n" if word == 0 else f"w{word}\n" for word in range(words))
    ids = (torch.rand(2000).mul_(math.log(words)).exp_().long() - 1).clamp_(0, words - 1).tolist()
    with open(ids_path, "w") as file:
        file.write(" ".join(map(str, ids)))
    with open(path + ".text.txt", "w") as file:
        file.write(" ".join(f"w{max(word, 1)}" for word in reversed(ids)) + "\n")


@torch.no_grad()
def run(path: str, ids_path: str, threads: int, tokens: int):
    torch.set_num_threads(threads)
    model = load(path)
    with open(ids_path) as file:
        ids = [int(token) for token in file.read().split()]
    table = model.config["scale"] * model.input(torch.arange(model.config["vocabulary"])[:, None])[:, 0]
    cells = [tuple(parameter.detach() for parameter in layer.parameters()) for layer in model.lstm]
    state = [(torch.zeros(weights[1].shape[1]), torch.zeros(weights[1].shape[1])) for weights in cells]
    times, total = [], 0.0
    for t in range(min(len(ids) - 1, 50 + tokens)):
        start = time.perf_counter()
        x = table[ids[t]]
        for i, (w, u, b, d) in enumerate(cells):
            gates = torch.addmv(b, w, x) + torch.addmv(d, u, state[i][0])
            opened, forget, new, out = gates.chunk(4)
            cell = torch.sigmoid(forget) * state[i][1] + torch.sigmoid(opened) * torch.tanh(new)
            x = torch.sigmoid(out) * torch.tanh(cell)
            state[i] = (x, cell)
        found = model.output(x).exp()
        if t >= 50:
            times.append(time.perf_counter() - start)
        total -= math.log(found[ids[t + 1]])
    times.sort()
    print(json.dumps({"peer": f"PyTorch {torch.__version__}", "threads": threads, "lanes": 1,
                      "us_per_token": {"p50": times[len(times) // 2] * 1e6, "p90": times[len(times) * 9 // 10] * 1e6},
                      "nll": total / (t + 1), "scored": t + 1}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "run"])
    parser.add_argument("checkpoint")
    parser.add_argument("--ids")
    parser.add_argument("--ids-out")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=300)
    options = parser.parse_args()
    if options.what == "make":
        make(options.checkpoint, options.ids_out)
    else:
        run(options.checkpoint, options.ids, options.threads, options.tokens)


if __name__ == "__main__":
    main()
