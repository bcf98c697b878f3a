#!/usr/bin/env python3
"""Times a transducer's search with icefall's LSTM language model in it, in kinglet and in ONNX Runtime, in one interleaved run.

    fusion.py [--units 2048] [--beams 4 8 16] [--rounds 5] [--bits 0 9 5 4] [--tokens 8] [--weight 0.4]

PYTHONPATH has the package kinglet_lm, numpy, onnx and onnxruntime. The search is that of examples/hosts/transducer.py, over
emissions that are made up: no acoustic model is at hand. Weights are random: 500 pieces, 3 layers, tied; texts are drawn from the
network itself, and of a fifth of their tokens another one is heard louder, so that the network helps. Activations of quantised
models have 9 bits, of 8 bits 8, with ranges measured on a text that the network drew. Ways, a thread each:

    no LM        the search alone
    ORT 1        ONNX Runtime, float32: as sherpa-onnx does, each new hypothesis at once, alone, with a state of its own
    ORT 1 int8   .. dynamically quantised
    ORT B        float32, the new hypotheses of a frame in one call
    ORT B int8   .. dynamically quantised
    ORT lazy     float32, what kinglet's arena does: each text once, and only if it grows; all of a frame in one call
    one by one   a kinglet session: as ORT 1
    arena        a kinglet_lm.Beam

Each round is another text, which all ways search in turn. Printed are medians of the rounds: microseconds of processor time a frame,
the real-time factor at 25 frames a second, which an acoustic model's would be added to (sherpa-onnx's own figure is 0.095), steps of
the network a frame, and wrong tokens of all texts. The answers of `arena` must be those of `one by one`.
"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import kinglet_lm
import numpy as np
from beam_steps import BEGIN, LAYERS, WORDS, onnx_graph, ort_session, weights_of
from onnxruntime.quantization import QuantType, quantize_dynamic

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "hosts"))
import ctc_logits
import transducer

FRAMES_A_SECOND = 25
CALIBRATED = 200  # tokens of another text, on which the ranges of activations are measured
TABLE_SCALE, LSTM_SCALE = 12.0, 8.0  # random weights that predict something: perplexity about 65


class Ort:
    """States are (scores of all tokens, h, c)."""

    def __init__(self, path: str, units: int, weight: float, batched: bool):
        self.session, self.weight, self.batched = ort_session(path), weight, batched
        self.calls = 0
        empty = np.zeros((LAYERS, 1, units), np.float32)
        self.start = self.run([(None, empty, empty)], [BEGIN])[0]

    def run(self, states: list, ids: list) -> list:
        self.calls += len(ids)
        p, h, c = self.session.run(None, {
            "x": np.array(ids, np.int64), "h": np.concatenate([state[1] for state in states], 1),
            "c": np.concatenate([state[2] for state in states], 1)})
        return [(p[i], h[:, i : i + 1].copy(), c[:, i : i + 1].copy()) for i in range(len(ids))]

    def begin(self):
        return self.start

    def extend(self, states: list, ids: list):
        scores = [self.weight * float(state[0][id]) for state, id in zip(states, ids)]
        if self.batched:
            return scores, self.run(states, ids)
        return scores, [self.run([state], [id])[0] for state, id in zip(states, ids)]


class Node:
    def __init__(self, before=None, id=None, state=None):
        self.before, self.id, self.state, self.after = before, id, state, {}


class OrtLazy(Ort):
    """States are nodes of a tree of texts."""

    def begin(self):
        return Node(state=self.start)

    def extend(self, states: list, ids: list):
        absent = list(dict.fromkeys(node for node in states if node.state is None))
        while absent:
            ready = [node for node in absent if node.before.state is not None]
            for node, state in zip(ready, self.run([node.before.state for node in ready], [node.id for node in ready])):
                node.state = state
            absent = [node for node in absent if node.state is None]
        scores = [self.weight * float(node.state[0][id]) for node, id in zip(states, ids)]
        return scores, [node.after.setdefault(id, Node(node, id)) for node, id in zip(states, ids)]


class OneByOne(transducer.OneByOne):
    calls = 0

    def extend(self, states, ids):
        self.calls += len(ids)
        return super().extend(states, ids)


class Arena(transducer.Arena):
    @property
    def calls(self):
        return self.beam.stepped


def text_of(model, count: int, seed: int) -> list:
    """Tokens drawn from the network; none is emitted twice in succession."""
    session, tokens = model.session(), []
    session.step(BEGIN)
    while len(tokens) < count:
        seed += 1
        id = session.draw(seed)
        if id > 2 and id not in tokens[-1:]:
            tokens.append(id)
            session.step(id)
    return tokens


def errors(found: tuple, spoken: list) -> int:
    return ctc_logits.word_errors(" ".join(map(str, spoken)), " ".join(map(str, found)))


def measured(ways: dict, texts: list, width: int) -> dict:
    """For each way: microseconds a frame and steps a frame of each text, and wrong tokens in all."""
    rows = {name: ([], [], []) for name in ways}
    for turn, spoken in enumerate(texts):
        frames = transducer.made_frames(spoken, WORDS, turn)
        joiner, heard = transducer.joiner_of(frames), {}
        names = [*ways][turn % len(ways):] + [*ways][: turn % len(ways)]
        for name in names:
            transducer.search(joiner, len(frames), transducer.Nothing(), width)  # the joiner's answers are made before
            calls, start = getattr(ways[name], "calls", 0), time.process_time()
            heard[name] = transducer.search(joiner, len(frames), ways[name], width)
            times, steps, wrong = rows[name]
            times.append(1e6 * (time.process_time() - start) / len(frames))
            steps.append((getattr(ways[name], "calls", 0) - calls) / len(frames))
            wrong.append(errors(heard[name][0].tokens, spoken))
        for name in ways:
            if name.startswith("arena"):
                same = name.replace("arena", "one by one")
                if same in ways:
                    assert [found.tokens for found in heard[name]] == [found.tokens for found in heard[same]], name
    return rows


def ways_of(options, folder: str, weights: dict) -> tuple:
    path = os.path.join(folder, "lm.onnx")
    onnx_graph(weights, options.units, path)
    quantize_dynamic(path, path + ".int8", weight_type=QuantType.QInt8)
    checkpoint = os.path.join(folder, "lm.npz")
    np.savez(checkpoint, **weights)
    models = {}
    for bits in dict.fromkeys([0, *options.bits]):
        model_path, quantised = os.path.join(folder, f"{bits}.kgl"), {}
        if bits:
            quantised = {"bits": bits, "activation_bits": 8 if bits == 8 else 9, "calibrate": os.path.join(folder, "ids.txt")}
        kinglet_lm.convert(checkpoint, model_path, family="icefall-rnn-lm", **quantised)
        models[bits] = kinglet_lm.Model(model_path)
        if not bits:
            with open(os.path.join(folder, "ids.txt"), "w") as file:
                print(*text_of(models[0], CALIBRATED, 999983), file=file)
    ways = {"no LM": transducer.Nothing()}
    for name, suffix, kind, batched in (("ORT 1", "", Ort, False), ("ORT 1 int8", ".int8", Ort, False), ("ORT B", "", Ort, True),
                                        ("ORT B int8", ".int8", Ort, True), ("ORT lazy", "", OrtLazy, True)):
        ways[name] = kind(path + suffix, options.units, options.weight, batched)
    for bits in options.bits:
        name = f"{bits} bits" if bits else "float32"
        if bits in (0, 9):
            ways[f"one by one, {name}"] = OneByOne(models[bits], options.weight)
        ways[f"arena, {name}"] = Arena(models[bits], options.weight)
    return ways, [text_of(models[0], options.tokens, 1000 * round) for round in range(options.rounds)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=2048)
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 9, 5, 4], help="0 is float32")
    parser.add_argument("--weight", type=float, default=0.4)
    options = parser.parse_args()
    weights = weights_of(options.units)
    weights["input_embedding.weight"] = weights["output_linear.weight"] = TABLE_SCALE * weights["input_embedding.weight"]
    for name in weights:
        if name.startswith("rnn.weight"):
            weights[name] *= LSTM_SCALE
    with tempfile.TemporaryDirectory() as folder:
        ways, texts = ways_of(options, folder, weights)
        count = sum(map(len, texts))
        print(f"3 x {options.units} LSTM, {WORDS} pieces; {len(texts)} texts of {options.tokens} tokens; us a frame (real-time "
              f"factor; steps a frame; wrong tokens of {count})")
        print("| | " + " | ".join(f"beam {width}" for width in options.beams) + " |")
        print("|---|" + "--:|" * len(options.beams))
        table = {name: [] for name in ways}
        for width in options.beams:
            for name, (times, steps, wrong) in measured(ways, texts, width).items():
                table[name].append(f"{statistics.median(times):,.0f} ({statistics.median(times) * FRAMES_A_SECOND / 1e6:.3f}; "
                                   f"{statistics.median(steps):.2f}; {sum(wrong)})")
        for name, cells in table.items():
            print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
