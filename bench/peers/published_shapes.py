#!/usr/bin/env python3
"""Published networks at full size with random weights: converts, counts, weighs and scores each, and prints a table.

    bench/peers/published_shapes.py --kinglet build/release/bin/kinglet --work FOLDER [--only fairseq-wiki103]

Each checkpoint is made in FOLDER once (make_published.py, which needs PyTorch), as its framework saves it, and converted
to float32, to 9 bits, and to 9 bits calibrated on 200 tokens; `inspect` must print the published number of parameters, the
9-bit files must be below 0.30 of the checkpoint, and 200 tokens are scored with each. "peak" is the resident memory of
`convert` beyond an empty process, "bound" 1.2 times the largest tensor plus the output. Needs 2 GB of memory and 2.5 GB of disk a network. Exits with 1 if anything is
missed.
"""
import argparse
import json
import math
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MOST_OF_CHECKPOINT, MOST_MEMORY = 0.30, 1.2

# Parameters are sums over the published shapes: embeddings and softmax, then N layers. Baevski & Auli (2019) print
# 247M, Dai et al. (2019) 151M for their base.
PARAMETERS = {
    "transfo-xl-wt103": (20000 * 1024 + 20000 * 256 + 160000 * 64 + 67735 * 16 + 1024 * (1024 + 256 + 64 + 16)
                         + 1024 * 1024 + 267735 + 3 * 1025
                         + 18 * (5 * 1024 * 1024 + 2 * 1024 + 2 * 2048 + 2 * 4096 * 1024 + 4096 + 1024)),
    "wt103-base": (267735 * 411 + 3 * 411 + 2 * 410
                   + 16 * (5 * 410 * 410 + 2 * 820 + 2 * 2100 * 410 + 2100 + 410)),
    "fairseq-wiki103": 44_015_616 + 1_376_256 + 2_048 + 201_539_584,
    "micronet-teacher": (3500 * 512 + 21500 * 256 + 242735 * 16 + 2 * 512 * (256 + 16) + 2 * 513 + 267735
                         + 16 * (64 * 97 + 2 * 1024 + 1536 * 513 + 512 * 512 + 2 * 1536 * 512 + 1536 + 512)),
}
WORDS = {"transfo-xl-wt103": 267735, "wt103-base": 267735, "fairseq-wiki103": 267744, "micronet-teacher": 267735}


class Kinglet:
    def __init__(self, program: str):
        self.program = program
        self.empty = self.peak("--version")

    def run(self, *arguments: str) -> str:
        return subprocess.run([self.program, *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout

    def peak(self, *arguments: str) -> int:
        """Runs a command; returns its peak resident bytes (or those of this small process, from which it was forked)."""
        child = subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            raise subprocess.CalledProcessError(child.returncode, arguments)
        return usage.ru_maxrss * 1024

    def convert(self, checkpoint: str, model: str, *options: str) -> int:
        """Peak resident bytes beyond an empty process."""
        return self.peak("convert", checkpoint, "-o", model, *options) - self.empty


def words_and_text(folder: str, name: str, ids: str) -> list:
    """A vocabulary of made-up words, and the ids as a text: the arguments after --vocab."""
    vocabulary, text = os.path.join(folder, "words.txt"), os.path.join(folder, "text.txt")
    with open(vocabulary, "w") as file:
        file.write("\n".join(["<eos>"] + [f"w{i}" for i in range(1, WORDS[name])]) + "\n")
    with open(ids) as given, open(text, "w") as file:
        file.write(" ".join("<eos>" if word == "0" else "w" + word for word in given.read().split()) + "\n")
    return [vocabulary, "--calibrate", text]


def measure(kinglet: Kinglet, name: str, work: str) -> bool:
    folder, parameters = os.path.join(work, name), PARAMETERS[name]
    made = os.path.join(folder, "made.json")  # written last
    if not os.path.exists(made):
        subprocess.run([sys.executable, os.path.join(HERE, "make_published.py"), name, folder], check=True)
    with open(made) as file:
        facts = json.load(file)
    checkpoint, ids = os.path.join(folder, facts["checkpoint"]), os.path.join(folder, "ids.txt")
    size, good = os.path.getsize(checkpoint), True
    for title, options in (("float32", ()), ("9 bits", ("--bits", "9")),
                           ("9 bits, calibrated", ("--bits", "9", "--vocab", *words_and_text(folder, name, ids)))):
        model = os.path.join(folder, title.replace(" ", "").replace(",", "") + ".kgl")
        peak = kinglet.convert(checkpoint, model, *options)
        output = os.path.getsize(model)
        bound = MOST_MEMORY * facts["largest_tensor"] + output
        counted = json.loads(kinglet.run("inspect", model, "--json").splitlines()[0])["parameters"]
        score = dict(line.split(maxsplit=1) for line in kinglet.run("score", model, "--ids", ids).splitlines())
        loss = float(score["nll"].split()[0])
        good = good and counted == parameters and peak <= bound and math.isfinite(loss)
        good = good and (not options or output < MOST_OF_CHECKPOINT * size)
        published = "equal" if counted == parameters else f"{parameters:,}"
        print(f"| {name} | {title} | {counted:,} | {published} | {output:,} | "
              f"{output / size:.4f} | {peak / 1e6:,.0f} | {bound / 1e6:,.0f} | {loss:.4f} |", flush=True)
        os.remove(model)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinglet", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", default=",".join(PARAMETERS))
    options = parser.parse_args()
    kinglet = Kinglet(os.path.abspath(options.kinglet))
    print("| network | weights | parameters | published | file, bytes | of the checkpoint | peak, MB | bound, MB | "
          "nll |\n|---|---|--:|---|--:|--:|--:|--:|--:|")
    good = [measure(kinglet, name, options.work) for name in options.only.split(",")]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
