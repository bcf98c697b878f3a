#!/usr/bin/env python3
"""Streams a MicroNet checkpoint in LiteRT (TensorFlow Lite with XNNPACK) and prints what a token costs as one line of JSON.

    stream_litert.py export FOLDER weights.npz                    # in a Python with PyTorch
    stream_litert.py run weights.npz --ids tokens.txt [--weights int8|float32] [--threads 1] [--tokens 300]

Two commands, because PyTorch and TensorFlow often want different Pythons: `export` writes the checkpoint's weights as NumPy arrays,
`run` needs TensorFlow, whose converter writes the LiteRT model and whose interpreter runs it. The model is one step with
explicit state: embedding row, keys and values, mask -> probabilities, hidden state, keys and values. With int8 weights each large matrix has
8 bits an entry and activations are quantised as they come ("dynamic range"). The embedding row and the neural cache stay outside, in NumPy.
"""
import argparse
import json
import math
import os

import numpy

import numpy_stream

MASKED = -1e9  # LiteRT's softmax makes NaN of minus infinity
SIZES = ("width", "heads", "key", "value", "window", "pairs")


def export(folder: str, path: str):
    """Writes the arrays that `run` reads: the names are Network's and Layer's of micronet.py, with a number after a dot."""
    from micronet import Network
    network = Network(folder)
    arrays = {"ends": network.ends, "head": network.head, "head_bias": network.head_bias,
              "theta": network.theta, "share": network.share, "layers": len(network.layers)}
    for name in SIZES:
        arrays[name] = getattr(network, name)
    for name in ("tables", "biases", "widen", "narrow"):
        arrays.update({f"{name}.{i}": array for i, array in enumerate(getattr(network, name))})
    for i, layer in enumerate(network.layers):
        for name, parts in vars(layer).items():
            for part, array in zip(("weight", "bias"), parts if isinstance(parts, tuple) else (parts,)):
                arrays[f"layers.{i}.{name}.{part}"] = array
    numpy.savez(path, **{name: numpy.asarray(array) for name, array in arrays.items()})


class Weights:
    def __init__(self, path: str):
        self.arrays = dict(numpy.load(path))
        for name in SIZES:
            setattr(self, name, int(self.arrays[name]))
        self.layers = int(self.arrays["layers"])
        self.theta, self.share = float(self.arrays["theta"]), float(self.arrays["share"])
        self.ends = [int(end) for end in self.arrays["ends"]]
        self.tails = len(self.ends) - 2

    def __getitem__(self, name: str) -> numpy.ndarray:
        return self.arrays[name]

    def embedding(self, token: int) -> numpy.ndarray:
        """The scaled embedding of a token, [1, width]."""
        i = next(i for i, end in enumerate(self.ends[1:]) if token < end)
        row = self[f"tables.{i}"][token - self.ends[i]]
        row = self[f"widen.{i - 1}"] @ row if i else row
        return (row * math.sqrt(self.width)).astype(numpy.float32)[None]

    def empty_memory(self) -> tuple:
        """Keys and values of the window's slots, oldest first: [layers, heads, window, size]."""
        shape = (self.layers, self.heads, self.window)
        return numpy.zeros((*shape, self.key), numpy.float32), numpy.zeros((*shape, self.value), numpy.float32)


def converted(weights: Weights, int8: bool) -> bytes:
    """One step as a LiteRT model."""
    import tensorflow as tf

    def linear(x, name: str, bias: str = ""):
        y = tf.matmul(x, tf.constant(weights[name]), transpose_b=True)
        return y + tf.constant(weights[bias]) if bias else y

    def norm(x, name: str):
        centred = x - tf.reduce_mean(x, -1, keepdims=True)
        variance = tf.reduce_mean(tf.square(centred), -1, keepdims=True)
        return centred * tf.math.rsqrt(variance + 1e-5) * weights[name + ".weight"] + weights[name + ".bias"]

    def layer(i: int, x, keys, values, mask):
        name = f"layers.{i}."
        projected = linear(norm(x, name + "norm1"), name + "qkv.weight", name + "qkv.bias")
        parts = tf.reshape(projected, [weights.heads, 1, 2 * weights.key + weights.value])
        query, key, value = tf.split(parts, [weights.key, weights.key, weights.value], -1)
        keys = tf.concat([keys[:, 1:], key], 1)
        values = tf.concat([values[:, 1:], value], 1)
        score = tf.matmul(query, keys, transpose_b=True)[:, 0] + query[:, 0] @ tf.constant(weights[name + "positions.weight"])
        shares = tf.nn.softmax(score * weights.key ** -0.5 + mask)
        context = tf.reshape(tf.matmul(shares[:, None], values), [1, weights.heads * weights.value])
        x = x + linear(context, name + "out.weight")
        inner = tf.nn.relu(linear(norm(x, name + "norm2"), name + "inner.weight", name + "inner.bias"))
        return x + linear(inner, name + "outer.weight", name + "outer.bias"), keys, values

    def probabilities(hidden):
        head = tf.nn.softmax(linear(hidden, "head", "head_bias"))
        parts = [head[:, :weights.ends[1]]]
        for i in range(1, weights.tails + 1):
            cluster = weights.ends[1] + weights.tails - i  # in reverse order of the bins
            tail = tf.nn.softmax(linear(linear(hidden, f"narrow.{i - 1}"), f"tables.{i}", f"biases.{i}"))
            parts.append(head[:, cluster:cluster + 1] * tail)
        return tf.concat(parts, 1)

    class Step(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32) for shape in
                                      ([1, weights.width], *(memory.shape for memory in weights.empty_memory()),
                                       [weights.window])])
        def step(self, x, keys, values, mask):
            new_keys, new_values = [], []
            for i in range(weights.layers):
                x, k, v = layer(i, x, keys[i], values[i], mask)
                new_keys.append(k)
                new_values.append(v)
            return {"p": probabilities(x), "hidden": x, "new_keys": tf.stack(new_keys), "new_values": tf.stack(new_values)}

    module = Step()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.step.get_concrete_function()], module)
    if int8:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    return converter.convert()


def runner_of(model: bytes, threads: int) -> tuple:
    """A function that runs a step, with its name and version: the interpreter that comes with TensorFlow. The interpreter of the
    package ai-edge-litert 2.3.0 takes twice as long for the same model."""
    import tensorflow as tf
    found = tf.lite.Interpreter(model_content=model, num_threads=threads)
    return found.get_signature_runner(), found, f"LiteRT of TensorFlow {tf.__version__}"


def run(options: argparse.Namespace):
    weights = Weights(options.weights_file)
    model = converted(weights, options.weights == "int8")
    step, _owner, name = runner_of(model, options.threads)

    def advance(token, keys, values, mask) -> tuple:
        found = step(x=weights.embedding(token), keys=keys, values=values, mask=mask)
        return found["p"][0], found["hidden"][0], found["new_keys"], found["new_values"]

    ids = numpy_stream.read_ids(options.ids)
    result = numpy_stream.stream(weights, advance, ids, options.tokens, weights.empty_memory(), MASKED)
    print(json.dumps({"peer": name, "weights": options.weights, "bytes": len(model), "threads": options.threads,
                      "lanes": 1, **result}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export")
    exporting.add_argument("folder")
    exporting.add_argument("weights_file")
    running = commands.add_parser("run")
    running.add_argument("weights_file")
    running.add_argument("--ids", required=True)
    running.add_argument("--weights", choices=("int8", "float32"), default="int8")
    running.add_argument("--threads", type=int, default=1)
    running.add_argument("--tokens", type=int, default=300, help="steps to time")
    options = parser.parse_args()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    if options.command == "export":
        export(options.folder, options.weights_file)
    else:
        run(options)


if __name__ == "__main__":
    main()
