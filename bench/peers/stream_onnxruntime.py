#!/usr/bin/env python3
"""Streams a MicroNet checkpoint in ONNX Runtime and prints what a token costs as one line of JSON.

    stream_onnxruntime.py FOLDER --ids tokens.txt [--weights float32|int8|int8-rows] [--threads 1] [--tokens 300]

PyTorch exports one step with explicit state: embedding row, keys and values, mask -> probabilities, hidden state, keys and
values. The embedding row and the neural cache stay outside, in numpy, where nothing has to be copied. With int8 weights
onnxruntime.quantization quantises each large matrix, with one scale or one for each row (which needs the package onnx),
and ONNX Runtime quantises activations as they come. Constants are folded first: otherwise there is nothing to quantise.
"""
import argparse
import json
import math
import os
import tempfile

import numpy_stream
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


def quantised(path: str, per_channel: bool) -> str:
    """The model with its weights in 8 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = path + ".folded.onnx"
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    quantize_dynamic(options.optimized_model_filepath, path + ".int8.onnx", per_channel=per_channel,
                     weight_type=QuantType.QInt8)
    return path + ".int8.onnx"


def session_of(network: Network, threads: int, weights: str) -> tuple:
    """A function that runs a step, and the bytes of its file."""
    keys, values = network.empty_memory()
    names = ["x", "keys", "values", "mask"]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.onnx")
        torch.onnx.export(Step(network), (torch.zeros(network.width), keys, values, torch.zeros(network.window)), path,
                          input_names=names, output_names=["p", "hidden", "new_keys", "new_values"], opset_version=15,
                          **({} if torch.__version__.startswith("1.") else {"dynamo": False}))
        if weights != "float32":
            path = quantised(path, weights == "int8-rows")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        return (onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"]),
                os.path.getsize(path))


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--weights", choices=("float32", "int8", "int8-rows"), default="float32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=300, help="steps to time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    network = Network(options.folder)
    session, size = session_of(network, options.threads, options.weights)

    def advance(token, keys, values, mask) -> tuple:
        x = network.embedding(token).numpy()
        return session.run(None, {"x": x, "keys": keys, "values": values, "mask": mask})

    ids = numpy_stream.read_ids(options.ids)
    memory = tuple(part.numpy() for part in network.empty_memory())
    result = numpy_stream.stream(network, advance, ids, options.tokens, memory, -math.inf)
    print(json.dumps({"peer": f"ONNX Runtime {onnxruntime.__version__}", "weights": options.weights, "bytes": size,
                      "threads": options.threads, "lanes": 1, **result}))


if __name__ == "__main__":
    main()
