#!/usr/bin/env python3
"""The PyTorch modules of examples/torch against explicit loops, published formulas and known hash values.

    torch_modules_test.py EXAMPLES_TORCH

Exits with 77 (skipped) where PyTorch 1.13 or numpy is not installed.
"""
import contextlib
import copy
import io
import json
import math
import pathlib
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

sys.path.insert(0, sys.argv.pop(1) if len(sys.argv) > 1 else
                str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "torch"))

from kinglet_torch import checkpoint, evaluate, language_model, presets, recipe, train  # noqa: E402
from kinglet_torch.techniques import (  # noqa: E402
    adaptive,
    binned,
    class_factored,
    coded,
    define,
    dpq,
    full,
    hashing,
    neural_cache,
    slim,
)

FIXTURES = pathlib.Path(__file__).resolve().parents[1] / "data" / "kinglet-torch"

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


class WithSeed(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def same(self, found, expected):
        self.assertEqual(tuple(found.shape), tuple(expected.shape))
        self.assertLess((found - expected).abs().max().item(), 1e-12)

    def is_distribution(self, log_p):
        self.same(log_p.exp().sum(-1), torch.ones(log_p.shape[:-1]))


class Hashing(unittest.TestCase):
    # Made with the xxHash library's own XXH64() over 8 bytes.
    KNOWN = [
        (b'\x00\x00\x00\x00\x00\x00\x00\x00', 0, 0x34c96acdcadb1bbb),
        (b'abcdefgh', 0, 0x3ad351775b4634b7),
        (b'abcdefgh', 1, 0x8305125710212a61),
        (b'\x01\x00\x00\x00\x02\x00\x00\x00', 0, 0xcd3d4c871ee4183a),
        (b'\xff\xff\xff\xff\xff\xff\xff\xff', 0xffffffffffffffff, 0x1a158c94abf6a8b1),
        (b'\x19\x1b\x0c\x00\x07\x00\x00\x00', 20180101, 0x5ac543819e263d4d),
    ]

    def test_known_values(self):
        for data, seed, expected in self.KNOWN:
            key = numpy.array([int.from_bytes(data, "little")], dtype=numpy.uint64)
            self.assertEqual(int(hashing.xxh64(key, seed)[0]), expected, (data, seed))

    def test_mapping_hashes_word_then_position(self):
        mapping = hashing.hashed_mapping(5, [7, 11, 13], 99)
        for word in range(5):
            for position, pool in enumerate([7, 11, 13]):
                key = numpy.array([int.from_bytes(word.to_bytes(4, "little") + position.to_bytes(4, "little"),
                                                  "little")], dtype=numpy.uint64)
                self.assertEqual(int(mapping[word, position]), int(hashing.xxh64(key, 99)[0]) % pool)


class Full(WithSeed):
    def test_low_rank_is_a_product(self):
        table = full.LowRankEmbedding(9, 6, 2)
        dense = table.table @ table.projection.t()
        self.same(table(torch.tensor([[8, 0]])), dense[[8, 0]][None])
        softmax = full.LowRankSoftmax(9, 6, 2, False)
        softmax.table, softmax.projection = table.table, table.projection
        hidden = torch.randn(4, 6)
        self.same(softmax(hidden), torch.log_softmax(hidden @ dense.t(), -1))


class Adaptive(WithSeed):
    def test_embedding_row_by_row(self):
        for project_first in (False, True):
            table = adaptive.AdaptiveEmbedding(11, 6, [3, 7], [6, 4, 1], project_first)
            for word in range(11):
                band = 0 if word < 3 else 1 if word < 7 else 2
                row = table.tables[band][word - table.bounds[band]]
                if band or project_first:
                    row = table.projections[str(band)] @ row
                self.same(table(torch.tensor([word]))[0], row)

    def test_softmax_equals_torchs_own(self):
        theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 13, [4, 9], div_value=2.0)
        ours = adaptive.AdaptiveSoftmax(13, 8, [4, 9], [8, 4, 2], False, False, False, "forward")
        head = theirs.head.weight.detach()
        ours.tables[0].data, ours.cluster_weight.data = head[:4], head[4:]
        for band in (1, 2):
            ours.projections[str(band)].data = theirs.tail[band - 1][0].weight.detach().t()
            ours.tables[band].data = theirs.tail[band - 1][1].weight.detach()
        hidden = torch.randn(5, 8)
        self.same(ours(hidden), theirs.log_prob(hidden))

    def test_reversed_clusters_swap_rows(self):
        options = (13, 8, [4, 9], [8, 4, 2], True, True, True)
        forward = adaptive.AdaptiveSoftmax(*options, "forward")
        backward = adaptive.AdaptiveSoftmax(*options, "reversed")
        state = {key: torch.randn_like(value) for key, value in forward.state_dict().items()}
        forward.load_state_dict(state)
        for key in ("cluster_weight", "cluster_bias"):
            state[key] = state[key].flip(0)
        backward.load_state_dict(state)
        hidden = torch.randn(3, 8)
        self.same(backward(hidden), forward(hidden))
        self.is_distribution(forward(hidden))

    def test_bands_that_do_not_fit_are_refused(self):
        for cutoffs, widths in (([3], [6]), ([3, 3], [6, 4, 2]), ([3], [5, 2]), ([11], [6, 3])):
            with self.assertRaises(ValueError):
                adaptive.AdaptiveEmbedding(11, 6, cutoffs, widths, False)


class Define(WithSeed):
    def layer(self, **changed):
        return dict({"outputs": 8, "groups": 2, "shared": False, "bias": True, "norm": "none", "epsilon": 1e-5,
                     "activation": "relu", "shuffle": False, "skip": "none", "order": "input_first"}, **changed)

    def by_hand(self, unit, mapped, layers):
        """One word, group by group, with lists."""
        x = mapped
        for options, module in zip(layers, unit.layers):
            groups, first = options["groups"], options["order"] == "input_first"
            e = mapped.tolist()
            if options["skip"] == "concat":
                z = e + x.tolist() if first else x.tolist() + e
            elif options["skip"] == "mix":
                z, before = [], x.tolist()
                for j in range(groups):
                    a = e[j * len(e) // groups:(j + 1) * len(e) // groups]
                    b = before[j * len(before) // groups:(j + 1) * len(before) // groups]
                    z += a + b if first else b + a
            else:
                z = x.tolist()
            size, out = len(z) // groups, options["outputs"] // groups
            y = []
            for j in range(groups):
                matrix = module.weight[0 if options["shared"] else j]
                part = torch.tensor(z[j * size:(j + 1) * size]) @ matrix
                if options["bias"]:
                    part = part + module.bias[0 if options["shared"] else j]
                y += part.tolist()
            if options["shuffle"]:
                y = [y[(at % groups) * out + at // groups] for at in range(len(y))]
            y = torch.tensor(y)
            if options["norm"] == "layer":
                pieces = [(part - part.mean()) / (part.var(unbiased=False) + options["epsilon"]).sqrt()
                          * module.norm.weight + module.norm.bias for part in y.split(out)]
                y = torch.cat(pieces)
            y = {"none": y, "relu": y.clamp(min=0), "tanh": y.tanh(), "swish": y * y.sigmoid(),
                 "gelu": torch.nn.functional.gelu(y)}[options["activation"]]
            x = x + y if options["skip"] == "residual" else y
        return x

    def check(self, layers):
        unit = define.DefineEmbedding(full.FullEmbedding(5, 8), layers)
        for parameter in unit.parameters():
            torch.nn.init.normal_(parameter)
        found = unit(torch.arange(5))
        for word in range(5):
            self.same(found[word], self.by_hand(unit, unit.map.table[word].detach(), layers))

    def test_each_choice(self):
        first = self.layer(outputs=12, groups=4)
        for options in ({}, {"shared": True}, {"bias": False}, {"norm": "layer"}, {"activation": "swish"},
                        {"activation": "gelu"}, {"activation": "tanh"}, {"shuffle": True},
                        {"shuffle": True, "norm": "layer", "shared": True}, {"skip": "concat"}, {"skip": "mix"},
                        {"skip": "mix", "order": "output_first"}, {"skip": "concat", "order": "output_first"},
                        {"skip": "residual", "outputs": 12}):
            with self.subTest(options):
                self.check([first, self.layer(**options)])

    def test_the_papers_unit(self):
        layers = define.hgt_layers(8, 24, 3, 4, 10)
        self.assertEqual([layer["outputs"] for layer in layers], [12, 20, 24, 10])
        self.assertEqual([layer["groups"] for layer in layers], [4, 2, 1, 1])
        self.check(layers)


class Dpq(WithSeed):
    def check(self, method, shared, combine, batch_norm):
        width = 6 if combine == "concatenate" else 4
        query_width = 6 if combine == "concatenate" else (12 if method == "vq" else 6)
        table = dpq.DpqEmbedding(10, width, 3, 5, method, shared, combine, query_width, batch_norm, 1e-3)
        for parameter in table.parameters():
            torch.nn.init.normal_(parameter)
        table.train()
        table(torch.randint(10, (4, 8))).sum().backward()  # gives the batch norm statistics
        self.assertTrue(all(parameter.grad is not None for name, parameter in table.named_parameters()
                            if not (method == "vq" and name == "keys")))
        table.eval()
        norm = table.batch_norm
        values = table.keys if method == "vq" else table.values
        codes = table.codes(torch.arange(10))
        for word in range(10):
            row = []
            for j in range(3):
                q, at = table.query[word].view(3, -1)[j], 0 if shared else j
                best, code = -math.inf, None
                for k in range(5):
                    key = table.keys[at, k]
                    response = (q * key).sum() if method == "sx" else -((q - key) ** 2).sum()
                    if norm is not None:
                        i = k if batch_norm == "choices" else j * 5 + k
                        response = (response - norm.running_mean[i]) / (norm.running_var[i] + 1e-3).sqrt()
                    if response > best:
                        best, code = response, k
                self.assertEqual(int(codes[word, j]), code)
                row.append(values[at, code])
            expected = torch.cat(row) if combine == "concatenate" else sum(row) / 3
            self.same(table(torch.tensor([[word]]))[0, 0], expected)

    def test_eval_is_a_lookup_of_codes(self):
        for method in ("sx", "vq"):
            for shared in (False, True):
                for combine in ("concatenate", "mean"):
                    for batch_norm in ("choices", "responses", "none"):
                        with self.subTest(f"{method} {shared} {combine} {batch_norm}"):
                            self.check(method, shared, combine, batch_norm)

    def test_training_forward_has_the_values_of_the_codes(self):
        for method in ("sx", "vq"):
            table = dpq.DpqEmbedding(10, 6, 3, 5, method, True, "concatenate", 6, "none", 1e-3)
            ids = torch.arange(10)
            trained = table.train()(ids)
            self.same(trained, table.eval()(ids))


class Coded(WithSeed):
    def test_rows_are_sums_and_means(self):
        for combine in ("sum", "mean"):
            for shared in (False, True):
                for learned in (False, True):
                    table = coded.CodedEmbedding(7, 6, 3, 4, combine, shared, 5, True, True, learned).eval()
                    torch.nn.init.normal_(table.bias)
                    ids = torch.tensor([[6, 0], [3, 3]])
                    found = table(ids)
                    for place, word in ((p, int(ids[p])) for p in ((0, 0), (0, 1), (1, 0))):
                        if learned:
                            codes = [int(table.code_logits[word, j].argmax()) for j in range(3)]
                        else:
                            codes = table.codes[word].tolist()
                        row = sum(table.codebook[code + (0 if shared else 4 * j)] for j, code in enumerate(codes))
                        row = row / 3 if combine == "mean" else row
                        self.same(found[place], table.projection @ row + table.bias)

    def test_learning_reaches_the_logits(self):
        table = coded.CodedEmbedding(7, 6, 3, 4, "sum", False, 6, False, False, True)
        ids = torch.arange(7)
        trained = table.train()(ids)
        self.same(trained, table.eval()(ids))
        trained.square().sum().backward()
        self.assertGreater(table.code_logits.grad.abs().sum().item(), 0)


class Slim(WithSeed):
    def test_rows_are_sub_vectors_in_order(self):
        for mapping in ("shuffled", "hashed"):
            table = slim.SlimEmbedding(9, 6, 3, 4, mapping, 5)
            for word in range(9):
                expected = torch.cat([table.sub_vectors[i] for i in table.mapping[word].tolist()])
                self.same(table(torch.tensor([word]))[0], expected)

    def test_shuffled_sub_vectors_serve_equally_often(self):
        counts = torch.bincount(slim.SlimEmbedding(10, 6, 3, 7, "shuffled", 5).mapping.flatten().long(), minlength=7)
        self.assertEqual((counts.min().item(), counts.max().item()), (4, 5))
        output = slim.SlimSoftmax(10, 6, [4, 3, 20], "shuffled", 5, True)
        for j, most in enumerate((3, 4, 1)):
            self.assertEqual(torch.bincount(output.mapping[:, j].long()).max().item(), most)
        alike = slim.SlimSoftmax(50, 6, [40, 40, 40], "shuffled", 5, True).mapping
        self.assertFalse(torch.equal(alike[:, 0], alike[:, 1]))

    def test_only_shuffled_mappings_are_saved(self):
        self.assertIn("mapping", slim.SlimEmbedding(9, 6, 3, 4, "shuffled", 5).state_dict())
        self.assertEqual(list(slim.HashedEmbedding(9, 6, 4, 5).state_dict()), ["sub_vectors"])

    def test_partial_products_equal_the_expanded_matrix(self):
        for mapping in ("shuffled", "hashed"):
            output = slim.SlimSoftmax(10, 6, [4, 3, 20], mapping, 5, True)
            torch.nn.init.normal_(output.bias)
            firsts = torch.tensor([0, 4, 7])
            dense = output.sub_vectors[output.mapping.long() + firsts].flatten(1)
            hidden = torch.randn(2, 3, 6)
            self.same(output.logits(hidden), hidden @ dense.t() + output.bias)
            self.is_distribution(output(hidden))

    def test_hashed_embedding_shares_single_numbers(self):
        table = slim.HashedEmbedding(9, 6, 5, 123)
        numbers = table.sub_vectors[:, 0][hashing.hashed_mapping(9, [5] * 6, 123)]
        self.same(table(torch.arange(9)), numbers)


class ClassFactored(WithSeed):
    def test_product_of_two_softmaxes(self):
        output = class_factored.ClassFactoredSoftmax(6, 4, [1, 3, 2], True)
        for parameter in output.parameters():
            torch.nn.init.normal_(parameter)
        hidden = torch.randn(4)
        found = output(hidden).exp()
        of_class = torch.softmax(output.class_table @ hidden + output.class_bias, 0)
        scores = (output.table @ hidden + output.bias).exp()
        for word, (number, members) in enumerate(zip([0, 1, 1, 1, 2, 2], [[0]] + [[1, 2, 3]] * 3 + [[4, 5]] * 2)):
            self.same(found[word], of_class[number] * scores[word] / scores[members].sum())
        self.is_distribution(output(hidden))


class Composition(WithSeed):
    def test_bins_count_their_own_words(self):
        bins = [full.FullEmbedding(4, 6), slim.SlimEmbedding(5, 6, 2, 3, "shuffled", 1)]
        table = binned.BinnedEmbedding(9, [4], bins)
        self.same(table(torch.tensor([[3, 4], [8, 0]])),
                  torch.stack([bins[0](torch.tensor([3, 0]))[[0]].squeeze(0), bins[1](torch.tensor([0]))[0],
                               bins[1](torch.tensor([4]))[0], bins[0](torch.tensor([0]))[0]]).view(2, 2, 6))

    def test_cache_mixes_the_words_it_holds(self):
        cache = neural_cache.NeuralCache(2, 0.5, 0.25)
        log_p, hidden = torch.log_softmax(torch.randn(4), 0), torch.randn(3)
        self.same(cache.mixed(log_p, hidden), log_p + math.log(0.75))
        keys = torch.randn(3, 3)
        for key, word in zip(keys, (3, 1, 1)):
            cache.add(key, word)
        self.same(cache.mixed(log_p, hidden).exp(), 0.75 * log_p.exp() + 0.25 * torch.tensor([0.0, 1, 0, 0]))
        cache.add(keys[0], 2)
        weights = torch.softmax(0.5 * keys[[2, 0]] @ hidden, 0)
        shares = torch.stack([torch.zeros(()), weights[0], weights[1], torch.zeros(())])
        self.same(cache.mixed(log_p, hidden).exp(), 0.75 * log_p.exp() + 0.25 * shares)

    def config(self, kind_in, kind_out):
        return {"vocabulary": 40, "scale": 1.5, "tied": [], "input": presets.INPUTS[kind_in](40, 16),
                "lstm": {"units": [12, 16]}, "output": presets.OUTPUTS[kind_out](40, 16)}

    def test_every_preset_learns_and_survives_saving(self):
        ids = torch.randint(40, (9, 4))
        pairs = [(name, "full") for name in presets.INPUTS] + [("full", name) for name in presets.OUTPUTS]
        for pair in pairs:
            with self.subTest(pair), tempfile.TemporaryDirectory() as folder:
                model = language_model.LanguageModel(self.config(*pair))
                optimiser = torch.optim.Adam(model.parameters(), 0.02)
                losses = []
                for _ in range(12):
                    log_p = model(ids[:-1])[0]
                    loss = torch.nn.functional.nll_loss(log_p.flatten(0, 1), ids[1:].flatten())
                    losses.append(loss.item())
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                self.assertLess(losses[-1], losses[0])
                path = pathlib.Path(folder) / "model.pt"
                checkpoint.export(model, path)
                stream = ids[:, 0].tolist()
                again = checkpoint.load(path)
                values = evaluate.log_probabilities(again, stream)
                whole = again(ids[:, :1])[0][:, 0]
                expected = [whole[t, stream[t + 1]].item() for t in range(len(stream) - 1)]
                self.assertLess(max(abs(a - b) for a, b in zip(values, expected)), 1e-12)

    def test_tied_parameters_are_one(self):
        config = self.config("adaptive", "adaptive")
        config["tied"] = ["tables", "projections"]
        model = language_model.LanguageModel(config)
        state = model.state_dict()
        for key in [key for key in state if key.startswith(("input.tables", "input.projections"))]:
            self.assertEqual(state[key].data_ptr(), state["output" + key[5:]].data_ptr())
        config = copy.deepcopy(config)
        config["output"]["band_widths"][2] += 1
        with self.assertRaises(ValueError):
            language_model.LanguageModel(config)

    def test_golden_values_of_the_fixtures(self):
        """A new PyTorch or a changed module must give what the checkpoints in tests/data were written with."""
        folders = sorted(path.parent for path in FIXTURES.glob("*/model.pt"))
        self.assertGreaterEqual(len(folders), 20)
        for folder in folders:
            with self.subTest(folder.name):
                ids = [int(token) for token in (folder / "tokens.txt").read_text().split()][:20]
                golden = [line.split("\t") for line in (folder / "golden_f64.tsv").read_text().splitlines()]
                values = evaluate.log_probabilities(checkpoint.load(folder / "model.pt").double(), ids)
                for position, value in enumerate(values, 1):
                    self.assertEqual(golden[position - 1][:2], [str(position), str(ids[position])])
                    self.assertAlmostEqual(float(golden[position - 1][2]), value, delta=1e-9)

    def test_golden_values_of_a_plan(self):
        """`everything` pruned and rounded by the passes of the recipe whose conversion the fixture's values check."""
        folder, plan = FIXTURES / "everything", FIXTURES.parents[2] / "examples" / "recipes" / "everything.json"
        with tempfile.TemporaryDirectory() as made:
            arguments = ["kinglet-evaluate", folder / "model.pt", "--ids", folder / "tokens.txt", "--golden",
                         made + "/golden.tsv", "--plan", plan]
            with unittest.mock.patch.object(sys, "argv", [*map(str, arguments)]), \
                    contextlib.redirect_stdout(io.StringIO()):
                evaluate.main()
            found = [line.split("\t") for line in pathlib.Path(made, "golden.tsv").read_text().splitlines()]
        golden = [line.split("\t") for line in (folder / "golden_9bit_f64.tsv").read_text().splitlines()]
        self.assertEqual([line[:2] for line in found], [line[:2] for line in golden])
        for ours, theirs in zip(found, golden):
            self.assertAlmostEqual(float(ours[2]), float(theirs[2]), delta=1e-9)

    def test_recipes_of_the_fixtures_are_those_of_their_configs(self):
        for path in sorted(FIXTURES.glob("*/model.pt")):
            with self.subTest(path.parent.name):
                config = torch.load(path)["config"]
                self.assertEqual(json.loads(checkpoint.recipe_path(path).read_text()), recipe.recipe_of(config))

    def test_saving_writes_a_recipe_beside_the_weights(self):
        config = {"vocabulary": 20, "scale": 2.5, "tied": ["table"], "input": {"kind": "full", "width": 4},
                  "lstm": {"units": [8, 4]}, "output": {"kind": "full", "bias": False},
                  "cache": {"capacity": 3, "theta": 0.5, "lambda": 0.25}}
        with tempfile.TemporaryDirectory() as folder:
            checkpoint.export(language_model.LanguageModel(config), folder + "/small.pt")
            found = json.loads((pathlib.Path(folder) / "small.recipe.json").read_text())
        self.assertEqual(found, {
            "embedding": {"scale": 2.5, "bins": [{"table": "input.table"}]},
            "recurrent": {"cell": "lstm", "torch": "lstm.{}", "layers": 2},
            "softmax": {"table": "input.table"},
            "cache": {"capacity": 3, "theta": 0.5, "lambda": 0.25, "start": "first_pair"},
            "unused": ["output.table"]})

    def test_no_recipe_is_made_of_what_kinglet_cannot_run(self):
        plain = {"vocabulary": 20, "scale": 1.0, "tied": [], "input": {"kind": "full", "width": 4},
                 "lstm": {"units": [4]}, "output": {"kind": "full", "bias": True}}
        for part, changed in (("input", {"kind": "cnn"}), ("output", {"kind": "nce"}),
                              ("input", presets.coded(4, "sum", 4, True))):
            with self.assertRaises(ValueError):
                recipe.recipe_of(dict(plain, **{part: changed}))

    def test_other_formats_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            torch.save({"format": "kinglet-torch-2"}, folder + "/model.pt")
            with self.assertRaises(ValueError):
                checkpoint.load(folder + "/model.pt")


class Training(WithSeed):
    def test_vocabulary(self):
        self.assertEqual(train.vocabulary_of("b a a b once c a <unk> c".split()), ["a", "<unk>", "b", "c"])
        self.assertEqual(train.ids_of(["c", "never", "a"], ["a", "<unk>", "b", "c"]).tolist(), [3, 1, 0])

    def test_the_script_prunes_and_saves(self):
        with tempfile.TemporaryDirectory() as folder:
            text = pathlib.Path(folder) / "text.txt"
            text.write_text("the cat saw the dog\n\nthe dog saw the cat\n" * 8)
            path = pathlib.Path(folder) / "small.pt"
            arguments = ["train.py", "--text", str(text), "--validation", str(text), "-o", str(path), "--steps", "4",
                         "--width", "16", "--units", "8", "--bptt", "5", "--prune", "0.4", "--cache", "9"]
            output = io.StringIO()
            with unittest.mock.patch.object(sys, "argv", arguments), contextlib.redirect_stdout(output):
                train.main()
            self.assertIn("validation perplexity", output.getvalue())
            self.assertEqual((pathlib.Path(folder) / "small.vocab.txt").read_text().split(),
                             ["the", "<eos>", "cat", "dog", "saw", "<unk>"])
            self.assertEqual((pathlib.Path(folder) / "small.tokens.txt").read_text().split()[:6],
                             ["0", "2", "4", "0", "3", "1"])
            model = checkpoint.load(path)
            self.assertEqual(model.config["cache"]["capacity"], 9)
            for matrix in (parameter for parameter in model.lstm.parameters() if parameter.dim() == 2):
                self.assertAlmostEqual((matrix == 0).double().mean().item(), 0.4, delta=0.01)
            self.assertTrue(all(bias.ne(0).any() for bias in model.lstm.parameters() if bias.dim() == 1))


if __name__ == "__main__":
    unittest.main()
