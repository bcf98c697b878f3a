#!/usr/bin/env python3
"""The peers' networks of bench/peers compute what the framework computed.

    peers_test.py BENCH_PEERS TEST_DATA

Exits with 77 (skipped) where PyTorch is not installed. ONNX Runtime and LiteRT are tested where they are installed; the environment
variable KINGLET_LITERT_PYTHON names another Python for LiteRT, because TensorFlow and PyTorch often want different ones.
"""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

PEERS, DATA = sys.argv[1:3]
LITERT_PYTHON = os.environ.get("KINGLET_LITERT_PYTHON", sys.executable)


def has_litert():
    finds = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"
    return subprocess.run([LITERT_PYTHON, "-c", finds], check=False).returncode == 0


def run(script, *arguments, python=sys.executable):
    done = subprocess.run([python, "-B", os.path.join(PEERS, script), *arguments], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout) if done.stdout.strip() else None


class Peers(unittest.TestCase):
    def assert_golden(self, script, *options, delta=2e-6):
        folder = os.path.join(DATA, "micronet-small-fp32")
        with open(os.path.join(folder, "golden_f64.tsv")) as file:
            golden = [float(line.split("\t")[-1]) for line in file]
        found = run(script, folder, "--ids", os.path.join(folder, "tokens.txt"), "--tokens", str(len(golden)), *options)
        self.assertEqual(found["scored"], len(golden))
        self.assertAlmostEqual(found["nll"], -sum(golden) / len(golden), delta=delta)
        self.assertGreater(found["us_per_token"]["p50"], 0)
        return found

    def test_pytorch_streams_the_network(self):
        self.assert_golden("stream_pytorch.py")

    @unittest.skipUnless(importlib.util.find_spec("onnxruntime"), "ONNX Runtime is not installed")
    def test_onnx_runtime_streams_the_network(self):
        self.assert_golden("stream_onnxruntime.py")

    @unittest.skipUnless(importlib.util.find_spec("onnxruntime") and importlib.util.find_spec("onnx"),
                         "ONNX Runtime or onnx is not installed")
    def test_onnx_runtime_quantises_the_network(self):
        whole = self.assert_golden("stream_onnxruntime.py")
        for weights in ("int8", "int8-rows"):  # near, smaller, and not the same
            found = self.assert_golden("stream_onnxruntime.py", "--weights", weights, delta=0.05)
            self.assertNotEqual(found["nll"], whole["nll"])
            self.assertLess(found["bytes"], whole["bytes"])

    @unittest.skipUnless(has_litert(), "TensorFlow is not installed")
    def test_litert_streams_the_network(self):
        folder = os.path.join(DATA, "micronet-small-fp32")
        ids = os.path.join(folder, "tokens.txt")
        with open(os.path.join(folder, "golden_f64.tsv")) as file:
            golden = [float(line.split("\t")[-1]) for line in file]
        with tempfile.TemporaryDirectory() as work:
            weights = os.path.join(work, "weights.npz")
            run("stream_litert.py", "export", folder, weights)
            found = {kind: run("stream_litert.py", "run", weights, "--ids", ids, "--weights", kind, "--tokens",
                               str(len(golden)), python=LITERT_PYTHON) for kind in ("float32", "int8")}
        # int8 weights give another network: near, smaller, and not the same.
        for kind, delta in (("float32", 2e-6), ("int8", 1e-2)):
            self.assertEqual(found[kind]["scored"], len(golden))
            self.assertAlmostEqual(found[kind]["nll"], -sum(golden) / len(golden), delta=delta)
            self.assertGreater(found[kind]["us_per_token"]["p50"], 0)
        self.assertNotEqual(found["int8"]["nll"], found["float32"]["nll"])
        self.assertLess(found["int8"]["bytes"], 0.5 * found["float32"]["bytes"])

    def test_pytorch_streams_transformer_xl(self):
        folder = os.path.join(DATA, "transformer-xl-variants", "hf-published")
        with open(os.path.join(folder, "golden_f64.tsv")) as file:
            golden = [float(line.split("\t")[-1]) for line in file]
        for more in ([], ["--recompute"]):
            found = run("stream_transformer_xl.py", "run", folder, "--ids", os.path.join(folder, "tokens.txt"), *more)
            self.assertEqual(found["scored"], len(golden))
            self.assertAlmostEqual(found["nll"], -sum(golden) / len(golden), delta=2e-6)

    def test_transformer_xl_of_given_shapes(self):
        with tempfile.TemporaryDirectory() as folder:
            run("stream_transformer_xl.py", "make", "tiny", folder, "--ids", "30")
            self.assertEqual(len(os.listdir(folder)), 5)
            found = run("stream_transformer_xl.py", "run", folder, "--ids", os.path.join(folder, "tokens.txt"),
                        "--tokens", "20")
            self.assertEqual(found["scored"], 20)

    def test_lanes_run_random_weights_of_given_shapes(self):
        shapes = {"config": {"n_vocab": 70, "cutoffs": [20, 40], "n_embed": 12, "n_embeds": [12, 8, 4], "n_layers": 1,
                             "n_head": 2, "n_k": 6, "n_v": 5, "n_inner": 20, "n_seq": 9, "n_cache": 10,
                             "cache_theta": 0.02, "cache_lambda": 0.1},
                  "test_bin_counts": [5, 3, 1], "tensors": []}

        def tensor(name, *shape, sparsity=0.0):
            shapes["tensors"].append({"tensor": name, "shape": shape, "final_sparsity": sparsity})
        for i, (rows, width) in enumerate([(20, 12), (20, 8), (30, 4)]):
            tensor(f"embed.layers.{i}.weight", rows, width, sparsity=0.5)
            tensor(f"loss.layers.{i}.bias", rows)
            if i:
                tensor(f"embed.projections.{i - 1}.weight", 12, width)
                tensor(f"loss.projections.{i - 1}.weight", width, 12)
        tensor("loss.clusters.weight", 2, 12)
        tensor("loss.clusters.bias", 2)
        for name, shape in {"pos_emb": (6, 10), "qkv.weight": (34, 12), "qkv.bias": (34,), "out.weight": (12, 10),
                            "fc.0.weight": (20, 12), "fc.0.bias": (20,), "fc.3.weight": (12, 20),
                            "fc.3.bias": (12,)}.items():
            tensor(f"layers.0.{name}", *shape)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "shapes.json")
            with open(path, "w") as file:
                json.dump(shapes, file)
            run("make_micronet.py", path, folder, "--ids", "40")
            ids = os.path.join(folder, "tokens.txt")
            with open(ids) as file:
                self.assertEqual(len([i for i in map(int, file.read().split()) if 0 <= i < 70]), 40)
            self.assertEqual(run("stream_pytorch.py", folder, "--ids", ids, "--lanes", "3", "--tokens", "4")["lanes"], 3)
            self.assertEqual(run("stream_pytorch.py", folder, "--ids", ids, "--tokens", "4")["scored"], 24)

    def test_a_python_without_pytorch_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "torch.py"), "w") as file:
                file.write("raise ImportError('no torch here')\n")
            done = subprocess.run([sys.executable, "-B", os.path.join(PEERS, "compare.py"), "--kinglet", "none", "--work",
                                   folder], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env=os.environ | {"PYTHONPATH": folder})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn(sys.executable, done.stderr)
        self.assertIn("no torch here", done.stderr)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("yaml") is None:
        print("skipped: PyTorch or PyYAML is not installed for", sys.executable)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
