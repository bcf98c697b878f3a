#!/usr/bin/env python3
"""Times a step of a beam search over icefall's LSTM language model, in kinglet and in ONNX Runtime, in one interleaved run.

    beam_steps.py [--units 2048] [--beams 4 8 16] [--rounds 15] [--bits 0 9 5] [--int8]

PYTHONPATH has the package kinglet_lm, numpy, onnx and onnxruntime. Weights are random: 500 pieces, 3 layers, tied; with --bits
activations have 9 bits. A step extends
each hypothesis of the beam by a token, from parents of which some are chosen twice and some not at all, as a recogniser does,
and needs the log-probability of every piece after each. The ways, a thread each, alternate:

    ORT 1       ONNX Runtime, float32, one hypothesis a call, as sherpa-onnx calls it
    ORT B       the same graph, the whole beam in one call, states gathered in numpy
    ORT int8    ONNX Runtime, dynamically quantised, one hypothesis a call (--int8)
    one by one  a kinglet session: restore, step, log_probabilities, save for each hypothesis
    beam        a kinglet_lm.Beam: step and log_probabilities for all

Prints the fastest steps of the whole beam, in microseconds, for machines that are busy with other things. The beam's answers must be the session's, bit for bit, and in float32
within 1e-3 of ONNX Runtime's.
"""
import argparse
import os
import tempfile
import time

import kinglet_lm
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WORDS, LAYERS, BEGIN = 500, 3, 1
CALIBRATED = 200  # tokens by which activations of quantised models get their ranges


def weights_of(units: int) -> dict:
    random = np.random.default_rng(5)
    uniform = lambda *shape: random.uniform(-1, 1, shape).astype(np.float32) * units ** -0.5  # noqa: E731
    weights = {"input_embedding.weight": uniform(WORDS, units)}
    for layer in range(LAYERS):
        for name, shape in (("weight_ih", (4 * units, units)), ("weight_hh", (4 * units, units)),
                            ("bias_ih", (4 * units,)), ("bias_hh", (4 * units,))):
            weights[f"rnn.{name}_l{layer}"] = uniform(*shape)
    weights["output_linear.weight"] = weights["input_embedding.weight"]
    weights["output_linear.bias"] = uniform(WORDS)
    return weights


def onnx_graph(weights: dict, units: int, path: str):
    """x [B], h and c [layers, B, units] -> log-probabilities [B, words], new h and c: ONNX's own LSTM nodes."""
    def gates(value):  # PyTorch's input, forget, cell, output -> ONNX's input, output, forget, cell
        i, f, g, o = np.split(value, 4)
        return np.concatenate([i, o, f, g])

    constants = {"table": weights["input_embedding.weight"], "bias": weights["output_linear.bias"],
                 "softmax": np.ascontiguousarray(weights["output_linear.weight"].T), "zero": np.array([0], np.int64),
                 "one": np.array([1], np.int64)}
    nodes = [helper.make_node("Gather", ["table", "x"], ["e"]), helper.make_node("Unsqueeze", ["e", "zero"], ["y0"]),
             helper.make_node("Split", ["h"], [f"h{i}" for i in range(LAYERS)], axis=0),
             helper.make_node("Split", ["c"], [f"c{i}" for i in range(LAYERS)], axis=0)]
    for i in range(LAYERS):
        constants[f"w{i}"] = gates(weights[f"rnn.weight_ih_l{i}"])[None]
        constants[f"r{i}"] = gates(weights[f"rnn.weight_hh_l{i}"])[None]
        constants[f"b{i}"] = np.concatenate([gates(weights[f"rnn.bias_ih_l{i}"]), gates(weights[f"rnn.bias_hh_l{i}"])])[None]
        nodes.append(helper.make_node("LSTM", [f"y{i}", f"w{i}", f"r{i}", f"b{i}", "", f"h{i}", f"c{i}"],
                                      [f"z{i}", f"nh{i}", f"nc{i}"], hidden_size=units))
        nodes.append(helper.make_node("Squeeze", [f"z{i}", "one"], [f"y{i + 1}"]))
    nodes += [helper.make_node("MatMul", [f"y{LAYERS}", "softmax"], ["m"]), helper.make_node("Add", ["m", "bias"], ["logits"]),
              helper.make_node("LogSoftmax", ["logits"], ["lp"], axis=-1),
              helper.make_node("Squeeze", ["lp", "zero"], ["p"]),
              helper.make_node("Concat", [f"nh{i}" for i in range(LAYERS)], ["new_h"], axis=0),
              helper.make_node("Concat", [f"nc{i}" for i in range(LAYERS)], ["new_c"], axis=0)]
    state = [LAYERS, "B", units]
    graph = helper.make_graph(
        nodes, "lm", [helper.make_tensor_value_info("x", TensorProto.INT64, ["B"]),
                      *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in ("h", "c"))],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["B", WORDS]),
         *(helper.make_tensor_value_info(name, TensorProto.FLOAT, state) for name in ("new_h", "new_c"))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def ort_session(path: str):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


class Ort:
    """States are (h, c), each [layers, 1, units]."""

    def __init__(self, path: str, units: int, batched: bool):
        self.session, self.batched = ort_session(path), batched
        self.empty = (np.zeros((LAYERS, 1, units), np.float32),) * 2

    def step(self, states, ids):
        if not self.batched:
            found = [self.session.run(None, {"x": np.array([id], np.int64), "h": h, "c": c})
                     for (h, c), id in zip(states, ids)]
            return np.concatenate([p for p, _, _ in found]), [(h, c) for _, h, c in found]
        p, h, c = self.session.run(None, {"x": np.array(ids, np.int64), "h": np.concatenate([h for h, _ in states], 1),
                                          "c": np.concatenate([c for _, c in states], 1)})
        return p, [(h[:, i : i + 1], c[:, i : i + 1]) for i in range(len(ids))]


class OneByOne:
    def __init__(self, model):
        self.session = model.session()
        self.empty = self.session.save()

    def step(self, states, ids):
        rows, after = np.empty((len(ids), WORDS), np.float32), []
        for i, (state, id) in enumerate(zip(states, ids)):
            self.session.restore(state)
            self.session.step(id)
            self.session.log_probabilities(out=rows[i])
            after.append(self.session.save())
        return rows, after


class Beam:
    def __init__(self, model):
        self.beam = model.beam()
        self.empty = self.beam.begin()

    def step(self, states, ids):
        after = self.beam.step(states, ids)
        return self.beam.log_probabilities(after, out=np.empty((len(ids), WORDS), np.float32)), after


def run(ways: dict, width: int, rounds: int) -> dict:
    """The times of each way, which all make the same steps."""
    random = np.random.default_rng(width)
    times, rows = {name: [] for name in ways}, {}
    states = {name: [way.step([way.empty], [BEGIN])[1][0]] * width for name, way in ways.items()}
    for turn in range(rounds + 2):
        parents = random.integers(0, width, width)
        ids = random.integers(2, WORDS, width).tolist()
        for name in [*ways][turn % len(ways):] + [*ways][: turn % len(ways)]:
            before = [states[name][parent] for parent in parents]
            start = time.perf_counter()
            rows[name], after = ways[name].step(before, ids)
            states[name] = before = None  # a search drops what it has extended, in its own time
            if turn >= 2:
                times[name].append(1e6 * (time.perf_counter() - start))
            states[name] = after
        for name in ways:
            if name.startswith("beam"):
                assert np.array_equal(rows[name], rows[name.replace("beam", "one by one")]), name
                if name == "beam float32":
                    assert np.abs(rows[name] - rows["ORT 1"]).max() < 1e-3
        assert np.abs(rows["ORT B"] - rows["ORT 1"]).max() < 1e-3
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--units", type=int, default=2048)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 9, 5], help="0 is float32")
    parser.add_argument("--int8", action="store_true")
    options = parser.parse_args()
    weights = weights_of(options.units)
    ways = {}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lm.onnx")
        onnx_graph(weights, options.units, path)
        ways["ORT 1"] = Ort(path, options.units, False)
        ways["ORT B"] = Ort(path, options.units, True)
        if options.int8:
            from onnxruntime.quantization import QuantType, quantize_dynamic
            quantize_dynamic(path, path + ".int8", weight_type=QuantType.QInt8)
            ways["ORT int8"] = Ort(path + ".int8", options.units, False)
        checkpoint = os.path.join(folder, "lm.npz")
        np.savez(checkpoint, **weights)
        text = os.path.join(folder, "ids.txt")
        np.savetxt(text, np.random.default_rng(7).integers(2, WORDS, CALIBRATED), "%d")
        for bits in options.bits:
            name = f"{bits} bits" if bits else "float32"
            model_path = os.path.join(folder, f"{bits}.kgl")
            quantised = {"bits": bits, "activation_bits": 9, "calibrate": text} if bits else {}
            kinglet_lm.convert(checkpoint, model_path, family="icefall-rnn-lm", **quantised)
            model = kinglet_lm.Model(model_path)
            ways[f"one by one {name}"], ways[f"beam {name}"] = OneByOne(model), Beam(model)
        del weights
        print(f"3 x {options.units} LSTM, {WORDS} pieces, onnxruntime {onnxruntime.__version__}, one thread, "
              f"fastest of {options.rounds} interleaved steps: microseconds a step of the beam (a hypothesis)")
        print("| way | " + " | ".join(f"beam {width}" for width in options.beams) + " |")
        print("|---|" + "--:|" * len(options.beams))
        table = {name: [] for name in ways}
        for width in options.beams:
            for name, times in run(ways, width, options.rounds).items():
                table[name].append(f"{min(times):,.0f} ({min(times) / width:,.0f})")
        for name, cells in table.items():
            print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
