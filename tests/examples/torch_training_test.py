#!/usr/bin/env python3
"""examples/torch against the command: what PyTorch exports converts and replays, training rounds to the converter's
bits, and a plan's zeros are the converter's.

    torch_training_test.py EXAMPLES_TORCH KINGLET

Exits with 77 (skipped) where PyTorch 1.13 or numpy is not installed.
"""
import contextlib
import io
import json
import os
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

FOLDER, KINGLET = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
sys.path.insert(0, FOLDER)

import kinglet_torch  # noqa: E402
from kinglet_torch import evaluate, plan, presets, quantise, train  # noqa: E402
from kinglet_torch.parameters import functional_call  # noqa: E402
from make_fixtures import fill, widen_margins  # noqa: E402

torch.set_num_threads(1)
WORDS, WIDTH = 40, 16
LSTM = {"lstm": {"units": [12, WIDTH]}}
DECODER = {"decoder": {"layers": 2, "heads": 2, "key_size": 6, "value_size": 5, "inner": 20, "window": 7,
                       "start": "masked"}}
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


@contextlib.contextmanager
def in_folder(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


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
                self.assertEqual(ours, names - coded - ({"embedding.table.projection"} if "kd" in name else set()))

    def test_a_text_in_pieces_is_the_text(self):
        for name, model in networks():
            with self.subTest(name):
                model = model.double()
                ids = torch.tensor(self.ids)[:, None]
                first, _, state = model(ids[:11])
                pieces = torch.cat([first, model(ids[11:], state)[0]])
                self.assertLess((pieces - model(ids)[0]).abs().max().item(), 1e-12)


def rounded(model, bits, activation_bits):
    passes = [{"pass": "quantise", "tensors": ["embedding*"], "bits": bits - 3}, {"pass": "quantise", "bits": bits}]
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
        rows = 1.5 * functional_call(run.model.input, weights, torch.arange(WORDS), tie_weights=False)
        (self.folder / "words.txt").write_text(" ".join(map(str, range(WORDS))))
        for line in self.kinglet("embed", file, "--ids", self.folder / "words.txt", "--json").splitlines():
            found = json.loads(line)
            self.assertTrue(torch.equal(torch.tensor(found["vector"], dtype=torch.float32), rows[found["id"]]))

    def check_ranges(self, run, file):
        """Range and step of each activation are those of the file's blocks."""
        blocks = json.loads(self.kinglet("inspect", file, "--json").splitlines()[0])["blocks"]
        found = []

        def collect(part):
            if isinstance(part, list):
                for one in part:
                    collect(one)
            elif isinstance(part, dict) and "max_abs" in part:
                found.append((part["max_abs"], part["step"]))
            elif isinstance(part, dict):
                collect(list(part.values()))

        collect(blocks)
        expected = []
        for one in run.ranges.values():
            top = one.range.double().item()
            step = numpy.float32(top) / numpy.float32(2 ** (one.bits - 1) - 1)
            kept = numpy.array([step]).view(numpy.uint32) >> one.bits << one.bits
            expected.append((top, kept.view(numpy.float32).item()))
        self.assertEqual([tuple(numpy.float32(number) for number in pair) for pair in sorted(found)],
                         [tuple(numpy.float32(number) for number in pair) for pair in sorted(expected)])

    def test_training_continues_from_what_was_exported(self):
        run = trained(rounded(network("full", "full", LSTM), 6, 8))
        kinglet_torch.export(run, self.folder / "again.pt")
        again = kinglet_torch.load(self.folder / "again.pt")
        ids = torch.tensor(self.ids)[:, None]
        self.assertTrue(torch.equal(again(ids)[0], run(ids)[0]))

    def test_gradients_reach_every_parameter(self):
        """Gradients pass straight through rounding; beyond an activation's range they end."""
        run = trained(rounded(network("define", "adaptive", DECODER), 6, 8), 1)
        for name, parameter in run.named_parameters():
            self.assertGreater(parameter.grad.abs().sum().item(), 0, name)
        point = quantise.RoundedActivation(8).eval()
        point.range.fill_(1.0)
        x = torch.tensor([0.3, 2.0, -2.0], requires_grad=True)
        point(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 0, 0])

    def test_what_cannot_be_followed_is_refused(self):
        model = network("kd", "full", LSTM)
        for passes in ([{"pass": "code", "tensors": ["softmax.table"], "positions": 4, "sub_vectors": 16}],
                       [{"pass": "quantise", "tensors": ["softmax.tabel"], "bits": 9}],
                       [{"pass": "quantise", "bits": 9, "scale": "tensor"}]):
            with self.assertRaisesRegex(ValueError, "plan: "):
                kinglet_torch.plan_of(model, passes)
        with self.assertRaisesRegex(ValueError, "input: expected codes without a projection"):
            rounded(model, 9, 0)


class Pruning(WithFolder):
    def test_gradually_to_the_zeros_of_a_plan(self):
        """`kinglet plan` chooses, training follows, and convert keeps these zeros and no others."""
        model = network("adaptive", "adaptive", LSTM)
        kinglet_torch.export(model, self.folder / "dense.pt")
        (self.folder / "vocab.txt").write_text("".join(f"w{i}\n" for i in range(WORDS - 2)) + "<unk>\n<eos>\n")
        (self.folder / "text.txt").write_text(" ".join(f"w{i % (WORDS - 2)}" for i in self.ids * 5))
        self.kinglet("sensitivity", self.folder / "dense.pt", "--vocab", self.folder / "vocab.txt", "--text",
                     self.folder / "text.txt", "--sparsities", "0.3,0.6", "--bits", "4,6", "-o", self.folder / "s.json")
        self.kinglet("plan", self.folder / "s.json", "--size", "10400", "-o", self.folder / "plan.json")
        chosen = kinglet_torch.read_plan(model, self.folder / "plan.json")
        self.assertTrue(chosen.fractions and set(chosen.bits.values()) & {4, 6}, chosen)
        pruning = kinglet_torch.GradualPruning(model, chosen.fractions, begin=4, end=20, every=4)
        parts = {name: part for name, part in plan.parts_of(model) if name in chosen.fractions}
        optimiser = torch.optim.SGD(model.parameters(), 0.05)
        ids = torch.tensor(self.ids)[:, None]
        for step in range(1, 26):
            optimiser.zero_grad()
            torch.nn.functional.nll_loss(model(ids[:-1])[0][:, 0], ids[1:, 0]).backward()
            optimiser.step()
            pruning.step(step)
            last = min(max(step - step % 4, 0), 20)
            share = 0 if step < 4 else 1 - (1 - (last - 4) / 16) ** 3
            for name, part in parts.items():
                values = part.of(dict(model.named_parameters())[part.attribute])
                self.assertEqual((values == 0).sum().item(), int(chosen.fractions[name] * share * values.numel()))
        run = kinglet_torch.Quantised(model, chosen).eval()
        file = self.convert(run)
        zeros = {name: part.of(run.weights()[part.attribute]) == 0 for name, part in parts.items()}
        for name, part in parts.items():
            self.assertTrue(zeros[name][part.of(dict(model.named_parameters())[part.attribute]) == 0].all())
        # The plan's recipe prunes nothing more, and the file has no other numbers.
        passes = json.loads((self.folder / "plan.json").read_text())["passes"]
        pruned = self.by_recipe("pruned", [one for one in passes if one["pass"] == "prune"])
        self.assertEqual(set(self.differences(pruned, self.by_recipe("kept", [])).values()), {0})
        self.assertEqual(set(self.differences(file, self.by_recipe("planned", passes)).values()), {0})

    def by_recipe(self, name, passes):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps({"passes": passes}))
        self.kinglet("convert", self.folder / "model.pt", "-o", path.with_suffix(".kgl"), "--recipe", path)
        return path.with_suffix(".kgl")

    def test_one_parameter_has_one_fraction(self):
        model = network("low_rank", "low_rank", LSTM, ["table", "projection"])
        with self.assertRaisesRegex(ValueError, "softmax.projection: expected the fraction 0.5"):
            kinglet_torch.GradualPruning(model, {"embedding.projection": 0.5, "softmax.projection": 0.25})
        with self.assertRaisesRegex(ValueError, "embedding.table: the converter computes it from input"):
            kinglet_torch.GradualPruning(network("define", "full", LSTM), {"embedding.table": 0.5})


class Distillation(WithFolder):
    def shards(self, log_p, top):
        """In two files, rows in no order; position 1 is the first that is predicted."""
        values, ids = log_p.topk(top)
        order = numpy.random.default_rng(3).permutation(len(ids))
        paths = [self.folder / "teacher.npz", self.folder / "teacher.00001.npz"]
        for path, rows in zip(paths, (order[:9], order[9:])):
            numpy.savez(path, position=rows + 1, id=ids.numpy()[rows].astype(numpy.uint16),
                        logprob=values.numpy()[rows].astype(numpy.float16))
        return paths

    def test_all_words_give_the_cross_entropy(self):
        torch.manual_seed(1)
        teacher, student = torch.log_softmax(torch.randn(2, 20, WORDS), -1)
        labels = kinglet_torch.read_shards(self.shards(teacher, WORDS), 20)
        self.assertEqual(labels.at(torch.tensor([0]))[1].exp().sum().item(), 0)
        found = kinglet_torch.soft_loss(student[:19], *labels.at(torch.arange(1, 20)))
        expected = torch.nn.functional.cross_entropy(student[:19], teacher[:19].exp())
        self.assertAlmostEqual(found.item(), expected.item(), delta=1e-3)

    def test_labels_of_the_command(self):
        if "--out" not in self.kinglet("predict", "--help"):
            self.skipTest("this kinglet predict has no --out")
        teacher = network("full", "full", LSTM)
        file = self.convert(teacher)
        self.kinglet("predict", file, "--ids", self.folder / "ids.txt", "--top", "3", "--lanes", "1", "--shard-tokens",
                     "8", "--out", self.folder / "labels.npz")
        paths = sorted(self.folder.glob("labels*.npz"))
        self.assertGreater(len(paths), 1)
        labels = kinglet_torch.read_shards(paths, len(self.ids))
        log_p = teacher(torch.tensor(self.ids)[:, None])[0][:-1, 0]
        expected = log_p.topk(3)
        ids, values = labels.at(torch.arange(1, len(self.ids)))
        self.assertTrue(torch.equal(ids, expected.indices))
        self.assertLess((values - expected.values).abs().max().item(), 0.01)

    def test_training_by_command(self):
        """A teacher, a decoder, a plan with bits, and then on from the checkpoint."""
        text = self.folder / "text.txt"
        text.write_text("the cat saw the dog\n\nthe dog saw the cat\n" * 8)
        words = len(train.tokens_of(text))
        teacher = self.shards(torch.log_softmax(torch.randn(words, 6), -1), 4)
        common = ["train.py", "--text", text, "--validation", text, "--bptt", "5", "--steps", "8"]
        self.train(*common, "--decoder", "--width", "16", "--prune", "0.5", "--bits", "6", "--activation-bits", "8",
                   "--teacher", *teacher, "-o", self.folder / "first.pt")
        first = kinglet_torch.load(self.folder / "first.pt")
        for layer in first.model.decoder.layers:
            self.assertAlmostEqual((layer.qkv.weight == 0).double().mean().item(), 0.5, delta=0.01)
        self.train(*common, "--from", self.folder / "first.pt", "--steps", "4", "-o", self.folder / "second.pt")
        for name in ("first", "second"):
            self.kinglet("convert", self.folder / f"{name}.pt", "-o", self.folder / "m.kgl", "--vocab",
                         self.folder / f"{name}.vocab.txt")

    def test_the_commands_of_readme(self):
        """The block about plans, with a smaller text, size and number of steps."""
        text = "the cat saw the dog\n\nthe dog saw the cat\n" * 8
        for name in ("train.txt", "valid.txt"):
            (self.folder / name).write_text(text)
        self.train("train.py", "--text", self.folder / "train.txt", "--validation", self.folder / "valid.txt", "--bptt",
                   "5", "--steps", "4", "--width", "16", "--units", "8", "-o", self.folder / "model.pt")
        readme = (pathlib.Path(FOLDER) / "README.md").read_text()
        commands = next(block for block in readme.split("```") if "kinglet sensitivity" in block).strip().splitlines()
        self.assertEqual(len(commands), 4)
        with in_folder(self.folder):
            for line in commands:
                command, *arguments = line.replace("200000", "6000").split()
                if command == "kinglet-train":
                    self.train(command, *arguments, "--steps", "8", "--bptt", "5")
                else:
                    self.kinglet(*arguments)
        passes = json.loads((self.folder / "small.recipe.json").read_text())["passes"]
        self.assertEqual({one["pass"] for one in passes}, {"quantise"})

    def train(self, *arguments):
        with unittest.mock.patch.object(sys, "argv", [*map(str, arguments)]), contextlib.redirect_stdout(io.StringIO()):
            train.main()


if __name__ == "__main__":
    unittest.main()
