#!/usr/bin/env python3
"""Reading a text with BERT-base (Devlin et al. 2019: 12 layers of 768, 12 heads, 3,072; random weights, a word table
coded as DPQ's): PyTorch in float32, ONNX Runtime in float32 and with dynamic int8 (if it is installed: onnxruntime and
onnx from PyPI), and `kinglet bench` in float32 (`cpu` and `onednn`) and with weights and activations of 9 and of 8 bits, one thread.

    bert.py KINGLET [--tokens 128] [--rounds 5] [--folder DIR]

The programs run alternately; the medians of the rounds and their ratios are printed. The times exclude reading the model.
PyTorch's vectors and kinglet's pooled vector are compared. Needs PyTorch (Debian: python3-torch), which takes
whichever BLAS the system has: install libopenblas0-pthread for the quicker one.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy  # noqa: E402
import torch  # noqa: E402

WORDS, WIDTH, LAYERS, HEADS, INNER, POSITIONS, EPSILON = 30522, 768, 12, 12, 3072, 512, 1e-12
PARTS, CHOICES = 128, 32  # of the word table: DPQ's (Chen, Li & Sun 2020) for BERT
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.inner, self.outer = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)
        self.norm1, self.norm2 = (nn.LayerNorm(WIDTH, EPSILON) for _ in range(2))

    def forward(self, x):
        def by_head(y):
            return y.view(-1, HEADS, WIDTH // HEADS).transpose(0, 1)

        query, key, value = by_head(self.query(x)), by_head(self.key(x)), by_head(self.value(x))
        weights = torch.softmax(query @ key.transpose(1, 2) / (WIDTH // HEADS) ** 0.5, -1)
        attended = (weights @ value).transpose(0, 1).reshape(-1, WIDTH)
        x = self.norm1(x + self.out(attended))
        return self.norm2(x + self.outer(torch.nn.functional.gelu(self.inner(x))))


class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        nn = torch.nn
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(POSITIONS, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, EPSILON)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.pooler = nn.Linear(WIDTH, WIDTH)
        self.values = 0.02 * torch.randn(PARTS, CHOICES, WIDTH // PARTS)
        self.codes = torch.randint(CHOICES, (WORDS, PARTS))
        self.words.weight.data = self.values[torch.arange(PARTS), self.codes].reshape(WORDS, WIDTH)
        for table in (self.positions, self.segments):
            table.weight.data *= 0.02

    def forward(self, ids):
        x = self.words(ids) + self.positions.weight[:len(ids)] + self.segments.weight[0]
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x

    def state(self):
        """The tensors under the names of Hugging Face's BertModel, without the word table."""
        names = {"query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
                 "out": "attention.output.dense", "norm1": "attention.output.LayerNorm", "inner": "intermediate.dense",
                 "outer": "output.dense", "norm2": "output.LayerNorm"}
        state = {"embeddings.position_embeddings.weight": self.positions.weight,
                 "embeddings.token_type_embeddings.weight": self.segments.weight}
        parts = [("embeddings.LayerNorm", self.norm), ("pooler.dense", self.pooler)]
        for i, layer in enumerate(self.layers):
            parts += [(f"encoder.layer.{i}.{full}", getattr(layer, short)) for short, full in names.items()]
        for name, part in parts:
            state[name + ".weight"], state[name + ".bias"] = part.weight, part.bias
        return {name: tensor.data for name, tensor in state.items()}


def prepare(kinglet, bert, folder):
    """Writes the checkpoint and both model files."""
    torch.save(bert.state(), folder / "pytorch_model.bin")
    numpy.save(folder / "values.npy", bert.values.reshape(PARTS * CHOICES, -1).numpy())
    numpy.save(folder / "codes.npy", bert.codes.numpy().astype(numpy.int32))
    (folder / "recipe.json").write_text(json.dumps({
        "family": "bert", "sources": {"codes": "codes.npy", "values": "values.npy"},
        "tables": {"embeddings.word_embeddings.weight": {"codes": {
            "combine": "concatenate", "pools": "each", "indices": "pool", "codebook": "values", "codes": "codes"}}}}))
    vocabulary = SPECIAL + [f"w{i}" for i in range(len(SPECIAL), WORDS)]
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["BertModel"], "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu", "layer_norm_eps": EPSILON,
        "vocab_size": WORDS, "max_position_embeddings": POSITIONS, "type_vocab_size": 2}))
    text = " ".join(vocabulary[5 + 97 * i % 30000] for i in range(POSITIONS - 2))
    (folder / "text.txt").write_text(text + "\n")
    common = [kinglet, "convert", folder, "--recipe", folder / "recipe.json", "--vocab", folder / "vocab.txt",
              "--tokenizer", folder / "vocab.txt"]
    for name, options in (("float", []), ("nine", ["--bits", "9", "--calibrate", folder / "text.txt"]),
                          ("eight", ["--bits", "8", "--activation-bits", "8", "--calibrate", folder / "text.txt"])):
        run([*common, *options, "-o", folder / (name + ".kgl")])


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def kinglet_seconds(kinglet, model, backend, tokens):
    line = json.loads(run([kinglet, "bench", model, "--backend", backend, "--source-length", tokens, "--rounds", "5",
                           "--json"]))
    return line["us_per_token"]["p50"] * tokens / 1e6


def seconds_of(call):
    times = []
    for _ in range(6):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def onnx_peers(bert, ids, folder):
    """ONNX Runtime's rows: name and a function that reads the text."""
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnx") is None:
        print("ONNX Runtime is omitted: pip install onnxruntime onnx")
        return {}
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic
    whole, int8 = str(folder / "bert.onnx"), str(folder / "bert.int8.onnx")
    if not os.path.exists(int8):
        old = {} if torch.__version__.startswith("1.") else {"dynamo": False}
        torch.onnx.export(bert, (ids,), whole, input_names=["ids"], output_names=["x"], opset_version=17, **old)
        quantize_dynamic(whole, int8, weight_type=QuantType.QInt8)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    peers = {}
    for form, path in (("float32", whole), ("int8", int8)):
        session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
        peers[f"ONNX Runtime {onnxruntime.__version__}, {form}"] = lambda session=session: session.run(None, {"ids": ids.numpy()})[0]
    difference = abs(next(iter(peers.values()))() - bert(ids).numpy()).max()
    print(f"ONNX Runtime in float32: largest difference from PyTorch's {difference:.2g}")
    return peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, help="keep the models here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made, torch.no_grad():
        folder = options.folder or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        bert = Bert().eval()
        if not (folder / "eight.kgl").exists():
            prepare(options.kinglet, bert, folder)
        ids = torch.tensor([2] + [5 + 97 * i % 30000 for i in range(options.tokens - 2)] + [3])
        (folder / "ids.txt").write_text(" ".join(map(str, ids.tolist())) + "\n")
        pooled = torch.tanh(bert.pooler(bert(ids)[0])).tolist()
        found = json.loads(run([options.kinglet, "embed", folder / "float.kgl", "--ids", folder / "ids.txt",
                                "--json"]))["vector"]
        print("pooled vector in float32: largest difference from PyTorch's "
              f"{max(abs(a - b) for a, b in zip(pooled, found, strict=True)):.2g}")
        rows = [("kinglet, float32, onednn", "float.kgl", "onednn"), ("kinglet, float32, cpu", "float.kgl", "cpu"),
                ("kinglet, 9 bits, cpu", "nine.kgl", "cpu"), ("kinglet, 8 bits, cpu", "eight.kgl", "cpu")]
        peers = {"PyTorch " + torch.__version__: lambda: bert(ids), **onnx_peers(bert, ids, folder)}
        times = {name: [] for name in [*peers, *(name for name, _, _ in rows)]}
        for _ in range(options.rounds):
            for name, call in peers.items():
                times[name].append(seconds_of(call))
            for name, model, backend in rows:
                times[name].append(kinglet_seconds(options.kinglet, folder / model, backend, options.tokens))
    for name, found in times.items():
        pairs = statistics.median(a / b for a, b in zip(next(iter(times.values())), found, strict=True))
        print(f"{name:28} {1e3 * statistics.median(found):8.1f} ms a text of {options.tokens} tokens  {pairs:5.2f} x PyTorch's speed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
