#!/usr/bin/env python3
"""examples/torch against the command: what PyTorch exports converts and replays, training rounds to the converter's bits, and
a plan's zeros are the converter's.

    torch_training_test.py EXAMPLES_TORCH KINGLET

Exits with 77 (skipped) where PyTorch or numpy is not installed.
"""
import contextlib
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

try:
    import numpy
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

KINGLET = sys.argv.pop()
sys.path.insert(0, sys.argv.pop())

import kinglet_torch  # noqa: E402
from kinglet_torch import evaluate, plan, presets, quantise, recipe, train  # noqa: E402
from make_fixtures import fill, widen_margins  # noqa: E402

torch.set_num_threads(1)
WORDS, WIDTH = 40, 16
LSTM = {"lstm": {"units": [12, WIDTH]}}
DECODER = {"decoder": {"layers": 2, "heads": 2, "key_size": 6, "value_size": 5, "inner": 20, "window": 7, "start": "masked"}}
PAIRS = [(name, "full") for name in presets.INPUTS] + [("full", name) for name in presets.OUTPUTS if name != "full"]


def network(kind_in, kind_out, context, tied=(), **changed):
    torch.manual_seed(5)
    config = {"vocabulary": WORDS, "scale": 1.5, "tied": list(tied), "input": presets.INPUTS[kind_in](WORDS, WIDTH),
              "output": presets.OUTPUTS[kind_out](WORDS, WIDTH), **context, **changed}
    model = kinglet_torch.LanguageModel(config).eval()
    with torch.no_grad():
        fill(model, torch.Generator().manual_seed(3))
        widen_margins(model, torch.Generator().manual_seed(4))
    return model


def networks():
    for context in (LSTM, DECODER):
        for kind_in, kind_out in PAIRS:
            yield f"{kind_in} {kind_out} {list(context)}", network(kind_in, kind_out, context)
        yield "adaptive, tied", network("adaptive", "adaptive", context, ["tables", "projections"])
        yield "low rank, tied", network("low_rank", "low_rank", context, ["table", "projection"])
    yield "zeros, cache", network("full", "full", {"decoder": dict(DECODER["decoder"], start="zeros")},
                                  cache={"capacity": 6, "theta": 0.4, "lambda": 0.2})


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.ids = [random.Random(1).randrange(WORDS) for _ in range(30)]
        (self.folder / "ids.txt").write_text(" ".join(map(str, self.ids)))

    def kinglet(self, *arguments):
        done = subprocess.run([KINGLET, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def convert(self, model, name="model", options=()):
        """The model file that the command makes of what `export` writes, golden values of float64 replayed."""
        path = self.folder / f"{name}.pt"
        kinglet_torch.export(model, path)
        sharp = kinglet_torch.load(path).double()
        evaluate.write_golden(self.folder / "golden.tsv", self.ids, evaluate.log_probabilities(sharp, self.ids))
        self.kinglet("convert", path, "-o", path.with_suffix(".kgl"), "--golden", self.folder / "golden.tsv",
                     "--ids", self.folder / "ids.txt", "--tolerance", "1e-6", *options)
        return path.with_suffix(".kgl")

    def differences(self, first, second):
        """By tensor, the relative error between the decoded entries; 0 where all are equal."""
        found = json.loads(self.kinglet("diff", first, second, "--json").splitlines()[0])
        return {one["name"]: 0 if one["same"] else one["relative_error"] for one in found["tensors"]}


class Exports(WithFolder):
    def test_every_technique_replays_golden_values(self):
        for name, model in networks():
            with self.subTest(name):
                self.convert(model)

    def test_tensors_have_the_names_of_the_model_file(self):
        for name, model in networks():
            with self.subTest(name):
                found = json.loads(self.kinglet("inspect", self.convert(model), "--json").splitlines()[0])["tensors"]
                names = {one["name"] for one in found if "norm" not in one["name"]}
                coded = {one[:-len(".codebook")] for one in names if one.endswith(".codebook")}
                ours = {one for one, _ in plan.parts_of(model)}
                self.assertEqual(ours, names - coded - {"embedding.table.projection"} if "kd" in name else names - coded)

    def test_a_text_in_pieces_is_the_text(self):
        for name, model in networks():
            with self.subTest(name):
                model = model.double()
                ids = torch.tensor(self.ids)[:, None]
                first, _, state = model(ids[:11])
                pieces = torch.cat([first, model(ids[11:], state)[0]])
                self.assertLess((pieces - model(ids)[0]).abs().max().item(), 1e-12)


def rounded(model, bits, activation_bits):
    passes = [{"pass": "quantise", "tensors": ["embedding*"], "bits": max(bits - 3, 2)}, {"pass": "quantise", "bits": bits}]
    passes += [{"pass": "calibrate", "bits": activation_bits}] if activation_bits else []
    return kinglet_torch.Quantised(model, kinglet_torch.plan_of(model, passes))


def trained(run, steps=3):
    """The model after some steps, which also give activations their ranges."""
    ids = torch.randint(WORDS, (9, 4), generator=torch.Generator().manual_seed(2))
    optimiser = torch.optim.Adam(run.parameters(), 0.01)
    run.train()
    for _ in range(steps):
        loss = torch.nn.functional.nll_loss(run(ids[:-1])[0].flatten(0, 1), ids[1:].flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return run.eval()


class Rounding(WithFolder):
    """Training computes with the numbers of the model file."""

    def test_weights_and_log_probabilities(self):
        for name, model in networks():
            for bits, activation_bits in ((9, 0), (5, 8)):
                if name.startswith("kd"):
                    continue
                with self.subTest(f"{name}, {bits} bits, activations {activation_bits}"):
                    run = trained(rounded(model, bits, activation_bits))
                    file = self.convert(run, "rounded")
                    self.check_weights(run, file)
                    if name.split()[0] in ("full", "define", "dpq", "dpq_vq", "slim", "hashed", "binned"):
                        self.check_rows(run, file)
                    self.check_ranges(run, file)

    def check_weights(self, run, file):
        """Against a float32 file of the forward pass's weights."""
        plain = kinglet_torch.LanguageModel(run.model.config)
        state = run.model.state_dict()
        made = [one for _, one in plan.parts_of(run.model) if isinstance(one, str)]
        state |= {key: value for key, value in run.weights().items() if not any(key.startswith(one) for one in made)}
        # Tied parameters, rounded along their other dimension, are two.
        plain.config = dict(plain.config, tied=[])
        plain = kinglet_torch.LanguageModel(plain.config)
        plain.load_state_dict(state)
        kinglet_torch.export(plain, self.folder / "plain.pt")
        self.kinglet("convert", self.folder / "plain.pt", "-o", self.folder / "plain.kgl")
        names = {name for name, one in plan.parts_of(run.model) if not isinstance(one, str)}
        errors = self.differences(file, self.folder / "plain.kgl")
        for name in names:
            self.assertEqual(errors[name], 0, name)

    def check_rows(self, run, file):
        """The rows of the forward pass bit for bit, those too that the converter computes."""
        weights = {key[len("input."):]: value for key, value in run.weights().items() if key.startswith("input.")}
        rows = 1.5 * torch.func.functional_call(run.model.input, weights, torch.arange(WORDS), tie_weights=False)
        (self.folder / "words.txt").write_text(" ".join(map(str, range(WORDS))))
        for line in self.kinglet("embed", file, "--ids", self.folder / "words.txt", "--json").splitlines():
            found = json.loads(line)
            self.assertTrue(torch.equal(torch.tensor(found["vector"], dtype=torch.float32), rows[found["id"]]))

    def check_ranges(self, run, file):
        """Range and scale of each activation."""
        text = self.kinglet("inspect", file, "--json")
        print(text[-3000:])


if __name__ == "__main__":
    unittest.main()
