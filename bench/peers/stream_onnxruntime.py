#!/usr/bin/env python3
"""Streams a MicroNet checkpoint in ONNX Runtime, float32, and prints what a token costs as one line of JSON.

    stream_onnxruntime.py FOLDER --ids tokens.txt [--threads 1] [--tokens 300]

PyTorch exports one step with explicit state: embedding row, keys and values, mask -> probabilities, hidden state, keys and
values. The embedding row and the neural cache stay outside, in numpy, where nothing has to be copied.
"""
import argparse
import json
import math
import os
import tempfile
import time

import numpy
import onnxruntime
import torch
from micronet import Network


class Step(torch.nn.Module):
    def __init__(self, network: Network):
        super().__init__()
        self.network = network

    def forward(self, x, keys, values, mask):
        hidden, keys, values = self.network.hidden(x, keys, values, mask)
        return self.network.log_softmax(hidden).exp(), hidden, keys, values


def session_of(network: Network, threads: int) -> onnxruntime.InferenceSession:
    keys, values = network.empty_memory()
    names = ["x", "keys", "values", "mask"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.onnx")
        torch.onnx.export(Step(network), (torch.zeros(network.width), keys, values, torch.zeros(network.window)), path,
                          input_names=names, output_names=["p", "hidden", "new_keys", "new_values"], opset_version=15)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=300, help="steps to time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network = Network(options.folder)
    session = session_of(network, options.threads)
    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    keys, values = (memory.numpy() for memory in network.empty_memory())
    cache_keys = numpy.zeros((network.pairs, network.width), numpy.float32)
    cache_words = numpy.zeros(network.pairs, numpy.int64)
    hidden, stored, total, times = None, 0, 0.0, []
    warm = max(0, min(network.window + network.pairs, len(ids) - 1 - options.tokens))
    for t in range(min(len(ids) - 1, warm + options.tokens)):
        start = time.perf_counter()
        if network.pairs and hidden is not None:
            cache_keys[stored % network.pairs], cache_words[stored % network.pairs] = hidden, ids[t]
            stored += 1
        mask = numpy.zeros(network.window, numpy.float32)
        mask[:max(0, network.window - 1 - t)] = -math.inf
        found, hidden, keys, values = session.run(
            None, {"x": network.embedding(ids[t]).numpy(), "keys": keys, "values": values, "mask": mask})
        held = min(stored, network.pairs)
        if network.pairs:
            found *= 1 - network.share
        if held:
            logits = network.theta * (cache_keys[:held] @ hidden)
            weights = numpy.exp(logits - logits.max())
            numpy.add.at(found, cache_words[:held], weights * (network.share / weights.sum()))
        if t >= warm:
            times.append(time.perf_counter() - start)
        total -= math.log(found[ids[t + 1]])
    times.sort()
    print(json.dumps({"peer": f"ONNX Runtime {onnxruntime.__version__}", "threads": options.threads, "lanes": 1,
                      "us_per_token": {"p50": times[len(times) // 2] * 1e6, "p90": times[len(times) * 9 // 10] * 1e6},
                      "nll": total / (t + 1), "scored": t + 1}))


if __name__ == "__main__":
    main()
