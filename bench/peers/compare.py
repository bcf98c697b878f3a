#!/usr/bin/env python3
"""kinglet and each installed peer on the same network, weights and tokens, interleaved; prints a table.

    bench/peers/compare.py --kinglet build/release/bin/kinglet --work FOLDER [--rounds 5] [--only best,demo]
    bench/peers/compare.py --kinglet build/release/bin/kinglet --work FOLDER --only demo,best --figures docs/figures.json

Needs PyTorch. ONNX Runtime (pip install onnxruntime onnx) and LiteRT (pip install tensorflow-cpu) take part where they are
installed, each in float32 and with int8 weights; --litert-python names another Python for LiteRT, because TensorFlow and PyTorch
often want different ones. Checkpoints with random weights are made in FOLDER once, the demo model is examples/wikitext2. Each
figure is the median over the rounds of the median time of a token. Rows say what the weights are; kinglet's activations have 9
bits (of GPT-2 with 8-bit weights: 8), PyTorch's and those of float32 rows are float32. "nll" is the mean negative log-probability that each gave to the same
tokens. --figures writes what the picture in README.md is drawn from; bench/peers/draw.py draws it.

PyTorch as Debian packages it multiplies with the system's libblas.so.3. The reference BLAS takes 3 to 16 times as long as OpenBLAS
(package libopenblas0), so compare.py refuses it unless --reference-blas is given. --blas names a folder with another libblas.so.3.
"""
import argparse
import datetime
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
DEMO = os.path.join(ROOT, "examples", "wikitext2")


class Bench:
    def __init__(self, kinglet: str, work: str, blas: str, recomputed: int, litert_python: str):
        self.kinglet, self.work, self.recomputed = kinglet, work, recomputed
        self.litert_python = litert_python
        self.environment = dict(os.environ)
        if blas:
            self.environment["LD_LIBRARY_PATH"] = os.pathsep.join([blas, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(os.pathsep)
        self.has_onnx = importlib.util.find_spec("onnxruntime") is not None
        finds = "import importlib.util, sys; sys.exit(importlib.util.find_spec('tensorflow') is None)"
        self.has_litert = subprocess.run([litert_python, "-c", finds], check=False).returncode == 0

    def path(self, *names: str) -> str:
        return os.path.join(self.work, *names)

    def python(self, script: str, *arguments: str, python: str = sys.executable) -> str:
        # A BLAS with threads of its own ignores torch.set_num_threads.
        threads = arguments[arguments.index("--threads") + 1] if "--threads" in arguments else "1"
        return subprocess.run([python, os.path.join(HERE, script), *arguments], check=True, text=True,
                              env=self.environment | {"OPENBLAS_NUM_THREADS": threads},
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def blas(self) -> str:
        """The file that PyTorch takes its products from; empty if that is PyTorch's own."""
        say = ("import torch\nprint(*{line.split()[-1] for line in open('/proc/self/maps')"
               " if 'blas' in line.split()[-1].rsplit('/', 1)[-1]})")
        found = subprocess.run([sys.executable, "-c", say], check=False, text=True, env=self.environment,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if found.returncode != 0:
            last = found.stderr.strip().rpartition("\n")[2] or f"exit status {found.returncode}"
            sys.exit(f"compare: {sys.executable}: expected a Python that can import torch, found: {last}")
        return found.stdout.strip()

    def convert(self, checkpoint: str, output: str, *options: str) -> str:
        if not os.path.exists(output):
            subprocess.run([self.kinglet, "convert", checkpoint, "-o", output, *options], check=True,
                           stdout=subprocess.DEVNULL)
        return output

    def quantised(self, checkpoint: str, stem: str, vocabulary: str, text: str, bits: int) -> str:
        """The file with calibrated weights of `bits` bits, and activations of 9."""
        return self.convert(checkpoint, self.path(f"{stem}.{bits}bit.kgl"), "--vocab", vocabulary, "--bits", str(bits),
                            "--activation-bits", "9", "--calibrate", text)

    def models(self, checkpoint: str, stem: str, vocabulary: str, text: str) -> tuple:
        """The float32 and the calibrated 9-bit file."""
        return (self.convert(checkpoint, self.path(stem + ".float32.kgl")),
                self.quantised(checkpoint, stem, vocabulary, text, 9))

    def ours(self, name: str, model: str, ids: str, mode="full", threads=1, lanes=1, skip=False, tokens=300, rounds=20,
             nll=None):
        arguments = ["bench", model, "--ids", ids, "--json", "--mode", mode, "--threads", str(threads), "--lanes", str(lanes),
                     "--tokens", str(tokens), "--rounds", str(rounds)] + ([] if skip else ["--no-skip"])

        def run() -> dict:
            out = subprocess.run([self.kinglet, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout
            found = json.loads(out.splitlines()[0])
            return {"us": found["us_per_token"]["p50"], "roofline": found["roofline_us"] / lanes, "model": model, "ids": ids,
                    "nll": nll}
        return name, run

    def nll(self, model: str, ids: str, scored: int, *options: str) -> float:
        """The mean negative log-probability that kinglet's file gives to the tokens that the peers scored."""
        with open(ids) as whole, open(self.path("scored.txt"), "w") as part:
            part.write(" ".join(whole.read().split()[:scored + (not options)]))
        out = subprocess.run([self.kinglet, "score", model, "--ids", part.name, "--json", *options], check=True, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return json.loads(out.splitlines()[-1])["nll"]

    def peer(self, name: str, script: str, *arguments: str, python: str = sys.executable):
        def run() -> dict:
            found = json.loads(self.python(script, *arguments, python=python))
            return {"us": found["us_per_token"]["p50"], "nll": found["nll"], "scored": found["scored"], "peer": found["peer"]}
        return name, run

    def litert(self, name: str, form: str, folder: str, stem: str, ids: str, threads: int):
        weights = self.path(stem + ".weights.npz")
        if not os.path.exists(weights):
            self.python("stream_litert.py", "export", folder, weights)
        return self.peer(name, "stream_litert.py", "run", weights, "--ids", ids, "--threads", str(threads), "--weights", form,
                         python=self.litert_python)

    def micronet_peers(self, folder: str, stem: str, ids: str, threads: int) -> list:
        arguments = (folder, "--ids", ids, "--threads", str(threads))
        peers = [self.peer("PyTorch, float32", "stream_pytorch.py", *arguments)]
        if self.has_onnx:
            peers += [self.peer(name, "stream_onnxruntime.py", *arguments, "--weights", form) for name, form in
                      (("ONNX Runtime, float32", "float32"), ("ONNX Runtime, int8 weights", "int8"),
                       ("ONNX Runtime, int8 by row", "int8-rows"))]
        if self.has_litert:
            peers += [self.litert(name, form, folder, stem, ids, threads) for name, form in
                      (("LiteRT, float32", "float32"), ("LiteRT, int8 weights", "int8"))]
        return peers

    def best(self) -> str:
        folder = self.path("best")
        if not os.path.exists(os.path.join(folder, "text.txt")):
            self.python("make_micronet.py", os.path.join(ROOT, "tests", "data", "micronet-best-shapes.json"), folder)
        return folder

    def best_model(self, bits: int) -> str:
        folder = self.best()
        return self.quantised(folder, "best", os.path.join(folder, "vocab.txt"), os.path.join(folder, "text.txt"), bits)

    def best_rows(self, threads: int) -> list:
        ids = os.path.join(self.best(), "tokens.txt")
        float32 = self.convert(self.best(), self.path("best.float32.kgl"))
        return [self.ours("kinglet, 9 bits", self.best_model(9), ids, threads=threads),
                self.ours("kinglet, 5 bits", self.best_model(5), ids, threads=threads),
                self.ours("kinglet, float32", float32, ids, threads=threads),
                *self.micronet_peers(self.best(), "best", ids, threads)]

    def best_score_rows(self) -> list:
        return [self.ours("kinglet, 9 bits", self.best_model(9), os.path.join(self.best(), "tokens.txt"), "score")]

    def lanes_rows(self) -> list:
        folder = self.best()
        ids = os.path.join(folder, "tokens.txt")
        return [self.ours("kinglet, 9 bits", self.best_model(9), ids, "topk", 2, 64, tokens=20),
                self.peer("PyTorch, float32", "stream_pytorch.py", folder, "--ids", ids, "--threads", "2", "--lanes", "64",
                          "--tokens", "15")]

    def demo_rows(self) -> list:
        ids = self.path("demo.tokens.txt")  # its real text twice: timing starts when the cache is full
        with open(os.path.join(DEMO, "tokens.txt")) as text, open(ids, "w") as twice:
            twice.write(" ".join(2 * text.read().split()))
        texts = (os.path.join(DEMO, "vocab.txt"), os.path.join(DEMO, "calibration.txt"))
        float32, nine = self.models(DEMO, "demo", *texts)
        few = [self.ours(f"kinglet, {bits} bits", self.quantised(DEMO, "demo", *texts, bits), ids, skip=True) for bits in (5, 4)]
        return [self.ours("kinglet, 9 bits", nine, ids, skip=True), *few, self.ours("kinglet, float32", float32, ids, skip=True),
                *self.micronet_peers(DEMO, "demo", ids, 1)]

    def lstm_rows(self) -> list:
        checkpoint, ids = self.path("lstm.pt"), self.path("lstm.tokens.txt")
        if not os.path.exists(ids):
            self.python("stream_lstm.py", "make", checkpoint, "--ids-out", ids)
        float32, nine = self.models(checkpoint, "lstm", checkpoint + ".vocab.txt", checkpoint + ".text.txt")
        return [self.ours("kinglet, 9 bits", nine, ids), self.ours("kinglet, float32", float32, ids),
                self.peer("PyTorch, float32", "stream_lstm.py", "run", checkpoint, "--ids", ids)]

    def gpt2_rows(self, folder: str, mode: str) -> list:
        """A GPT-2 in the form of Hugging Face, in kinglet and in llama.cpp."""
        stem, ids, blocks = os.path.basename(folder), os.path.join(folder, "ids.txt"), 32
        if stem == "gpt2-random":
            blocks = 1
            if not os.path.exists(ids):
                self.python("stream_llama_cpp.py", "random", folder)
        elif not os.path.exists(ids):
            sys.exit(f"compare: {folder}: expected what train_gpt2.py writes, found nothing: run bench/peers/train_gpt2.py {folder}")
        rows = []
        for name, options in GPT2_FORMS.items():
            if blocks == 1:  # feedback takes minutes, and random weights gain nothing by it
                options = tuple("nearest" if option == "feedback" else option for option in options)
            if "--calibrate" in options:
                options = (*options, os.path.join(folder, "calibration.txt"))
            model = self.convert(folder, self.path(f"{stem}.{name.replace(' ', '')}.kgl"), *options)
            loss = self.nll(model, ids, 256 * blocks, "--block", "256")
            rows.append(self.ours(f"kinglet, {name}", model, ids, mode, tokens=100 if mode == "full" else 512, rounds=2, nll=loss))
        if importlib.util.find_spec("llama_cpp") is None:
            print("llama.cpp is omitted: pip install llama-cpp-python gguf")
            return rows
        for weights, options in (("float32", ()), ("Q8_0", ()), ("Q4_0", ()), ("Q4_0 throughout", ("--pure",))):
            model = self.path(f"{stem}.{weights.replace(' ', '')}.gguf")
            if not os.path.exists(model):
                self.python("stream_llama_cpp.py", "write", folder, model, "--weights", weights.split()[0], *options)
            rows.append(self.peer(f"llama.cpp, {weights}", "stream_llama_cpp.py", "run", model, "--ids", ids, "--mode", mode,
                                  "--blocks", str(blocks)))
        return rows

    def transformer_xl_rows(self) -> list:
        folder = self.path("transfo-xl-wt103")
        ids, text = os.path.join(folder, "tokens.txt"), os.path.join(folder, "text.txt")
        if not os.path.exists(text):
            # kinglet's memory is full before its tokens are timed.
            self.python("stream_transformer_xl.py", "make", "transfo-xl-wt103", folder, "--ids", "2000")
        float32, nine = self.models(folder, "transfo-xl-wt103", os.path.join(folder, "vocab.txt"), text)
        return [self.ours("kinglet, 9 bits", nine, ids, tokens=60), self.ours("kinglet, float32", float32, ids, tokens=60),
                self.peer("PyTorch, float32", "stream_transformer_xl.py", "run", folder, "--ids", ids, "--tokens", "100"),
                *([self.peer("PyTorch as the framework streams", "stream_transformer_xl.py", "run", folder, "--ids", ids,
                             "--recompute", "--tokens", str(self.recomputed))] if self.recomputed else [])]


FEW_BITS = ("--activation-bits", "9", "--scale-by", "mse", "--round-by", "feedback", "--calibrate")
GPT2_FORMS = {
    "float32": (),
    "9 bits": ("--bits", "9", "--activation-bits", "9", "--calibrate"),
    "8 bits": ("--bits", "8", "--activation-bits", "8", "--calibrate"),
    "5 bits": ("--bits", "5", *FEW_BITS),
    "4 bits": ("--bits", "4", *FEW_BITS),
}

# name: (what is asked, rows)
CASES = {
    "best": ("best MicroNet, full distribution, 1 thread", lambda bench: bench.best_rows(1)),
    "best2": ("best MicroNet, full distribution, 2 threads", lambda bench: bench.best_rows(2)),
    "score": ("best MicroNet, the next word alone, 1 thread", Bench.best_score_rows),
    "lanes": ("best MicroNet, 64 lanes, ten best words, 2 threads", Bench.lanes_rows),
    "demo": ("demo model on real text, full distribution, 1 thread", Bench.demo_rows),
    "transformer-xl": ("Transformer-XL, transfo-xl-wt103's shapes, full distribution, 1 thread", Bench.transformer_xl_rows),
    "gpt2": ("a small trained GPT-2, full distribution, 1 thread", lambda bench: bench.gpt2_rows(bench.path("gpt2-small"), "full")),
    "gpt2-text": ("a small trained GPT-2, a given text, 1 thread", lambda bench: bench.gpt2_rows(bench.path("gpt2-small"), "text")),
    "gpt2-random": ("GPT-2 small's shape, full distribution, 1 thread", lambda bench: bench.gpt2_rows(bench.path("gpt2-random"), "full")),
    "gpt2-random-text": ("GPT-2 small's shape, a given text, 1 thread",
                         lambda bench: bench.gpt2_rows(bench.path("gpt2-random"), "text")),
    "lstm": ("LSTM 2 x 1500, 10,000 words, DPQ input, full distribution, 1 thread", Bench.lstm_rows),
}


def compare(bench: Bench, title: str, rows: list, rounds: int) -> list:
    """Prints a case's table; returns its rows as docs/figures.json keeps them."""
    found = {name: [] for name, _ in rows}
    for number in range(rounds):
        for name, run in rows if number % 2 == 0 else rows[::-1]:
            found[name].append(run())
    first = statistics.median(one["us"] for one in found[rows[0][0]])
    scored = {one[0]["scored"] for one in found.values() if one[0].get("scored")}
    print(f"\n{title}\n\n| | us per token | times the first | roofline, us | times its roofline | nll |\n|---|--:|--:|--:|--:|--:|")
    for name, results in found.items():
        us = statistics.median(one["us"] for one in results)
        rooflines = [one["roofline"] for one in results if "roofline" in one]
        roofline = statistics.median(rooflines) if rooflines else None
        nll = results[0].get("nll")
        if nll is None and len(scored) == 1:
            nll = bench.nll(results[0]["model"], results[0]["ids"], next(iter(scored)))
        print(f"| {name} | {us:,.1f} | {us / first:.2f} | " + (f"{roofline:,.1f} | {us / roofline:.2f}" if roofline else "- | -") +
              " | " + (f"{nll:.6f}" if nll else "-") + " |", flush=True)
    return [{"name": name, "us": round(statistics.median(one["us"] for one in results), 1),
             "rounds": [round(one["us"], 1) for one in results], "version": results[0].get("peer")}
            for name, results in found.items()]


def machine() -> str:
    with open("/proc/cpuinfo") as file:
        models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {os.cpu_count()} processors"


def write_figures(path: str, cases: dict, options: argparse.Namespace):
    figures = {"source": f"bench/peers/compare.py --only {options.only} --rounds {options.rounds}",
               "machine": machine(), "date": datetime.date.today().isoformat(), "cases": cases}
    with open(path, "w") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinglet", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--blas", default="", help="folder of the libblas.so.3 that PyTorch shall use")
    parser.add_argument("--litert-python", default=sys.executable, help="the Python that has TensorFlow; default: this one")
    parser.add_argument("--figures", help="also write the medians to this file; for docs/figures.json with --only demo,best")
    parser.add_argument("--reference-blas", action="store_true", help="compare even if that is the slow reference BLAS")
    parser.add_argument("--recomputed-tokens", type=int, default=4,
                        help="tokens of Transformer-XL as its framework streams, seconds each; 0 omits the row")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    bench = Bench(os.path.abspath(options.kinglet), options.work, options.blas, options.recomputed_tokens,
                  options.litert_python)
    blas = bench.blas() if set(options.only.split(",")) - {name for name in CASES if name.startswith("gpt2")} else ""
    print(f"PyTorch's products: {blas or 'its own'}")
    if "/blas/libblas" in blas and not options.reference_blas:
        sys.exit("compare: PyTorch uses the reference BLAS: install libopenblas0 or name one by --blas (or --reference-blas)")
    cases = {}
    for name in options.only.split(","):
        title, rows = CASES[name]
        cases[name] = {"title": title, "rows": compare(bench, title, rows(bench), options.rounds)}
    if options.figures:
        write_figures(options.figures, cases, options)


if __name__ == "__main__":
    main()
