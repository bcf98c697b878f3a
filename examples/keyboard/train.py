#!/usr/bin/env python3
"""Makes a keyboard's model of a text: vocabulary, checkpoint and model file.

    train.py TEXT -o FOLDER [--minutes 60] [--words 20000]

TEXT is a file of UTF-8 in one language, ordinary text as people write it. README.md explains each step. Needs the
command `kinglet` and PyTorch.
"""
import argparse
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import types

try:
    import torch
except ImportError:
    sys.exit("train.py: needs PyTorch: apt install python3-torch, or pip install torch numpy")

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))

from kinglet_torch import LanguageModel, export  # noqa: E402
from kinglet_torch.plan import plan_of  # noqa: E402
from kinglet_torch.presets import adaptive  # noqa: E402
from kinglet_torch.train import ids_of, perplexity, train  # noqa: E402

FEWEST_WORDS = 2000  # of a text
HELD_OUT = 0.02  # of the words, in whole lines: not trained on, but measured
MEASURED_STEPS = 10  # to learn how long a step takes
SHARE_OF_TRAINING = 0.9  # of the time; the rest is for reading, measuring and converting


def stop(where, expected, found):
    sys.exit(f"train.py: {where}: expected {expected}, found {found}")


def lines_of(kinglet, text):
    """The words of each line that is not empty, as the keyboard will split them."""
    try:
        with open(text, "rb") as file, subprocess.Popen([kinglet, "tokenize", "wikitext"], stdin=file,
                                                        stdout=subprocess.PIPE) as process:
            lines = [json.loads(line)["pieces"] for line in process.stdout]
    except FileNotFoundError as missing:
        stop(missing.filename, "a text, or the command kinglet (--kinglet)", "no such file")
    if process.returncode != 0:
        sys.exit(1)  # the command has printed why
    return [line for line in lines if line]


def split(lines):
    """The lines to learn from, and those that are held out."""
    learned, held_out, seen, held = [], [], 0, 0
    for line in lines:
        is_held_out = held < HELD_OUT * seen
        (held_out if is_held_out else learned).append(line)
        seen += len(line)
        held += len(line) if is_held_out else 0
    return learned, held_out or lines[-1:]


def vocabulary_of(lines, most):
    """The most frequent words that occur at least twice, then the others' word <unk>, most frequent first."""
    counts = collections.Counter(word for line in lines for word in line)
    counts.pop("<unk>", None)
    kept = [pair for pair in counts.most_common(most - 2) if pair[1] > 1]
    unknown = sum(counts.values()) - sum(count for _, count in kept)
    order = sorted([*kept, ("<unk>", unknown), ("<eos>", len(lines))], key=lambda pair: (-pair[1], pair[0]))
    return [word for word, _ in order]


def network_of(words, width):
    """A network that a phone runs within a millisecond: adaptive tables, which input and output share, and two LSTM
    layers."""
    input_ = adaptive(words, width)
    output = {key: value for key, value in input_.items() if key != "width"}
    return LanguageModel({"vocabulary": words, "scale": 1.0, "tied": ["tables", "projections"], "input": input_,
                          "output": {**output, "kind": "adaptive", "bias": True, "cluster_bias": True,
                                     "cluster_order": "forward"},
                          "lstm": {"units": [2 * width, width]},
                          "cache": {"capacity": 500, "theta": 0.3, "lambda": 0.1}}, dropout=0.2)


def trained(ids, words, options):
    """A network trained for about the minutes that were asked for."""
    run = types.SimpleNamespace(batch=options.batch, bptt=35, learning_rate=0.01, weight_decay=0.01,
                                teacher_weight=0.0, steps=MEASURED_STEPS)
    if len(ids) < 2 * run.batch:
        run.batch = 1
    nothing = plan_of(network_of(words, options.width), [])
    if not options.steps:
        started = time.time()
        train(network_of(words, options.width), ids, nothing, run)
        seconds = (time.time() - started) / MEASURED_STEPS
        options.steps = max(MEASURED_STEPS, int(60 * options.minutes * SHARE_OF_TRAINING / seconds))
    run.steps = options.steps
    print(f"training: {run.steps} steps of {run.batch * run.bptt} words", flush=True)
    torch.manual_seed(options.seed)
    return train(network_of(words, options.width), ids, nothing, run)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", help="to learn from")
    parser.add_argument("-o", "--folder", required=True, help="for what is made")
    parser.add_argument("--minutes", type=float, default=60, help="of training")
    parser.add_argument("--steps", type=int, help="of training, instead of minutes")
    parser.add_argument("--words", type=int, default=20000, help="the most words of the vocabulary")
    parser.add_argument("--width", type=int, default=128, help="of the network; twice the width, four times the work")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--kinglet", default="kinglet", help="the command, if it is not on the path")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    folder = pathlib.Path(options.folder)
    lines = lines_of(options.kinglet, options.text)
    found = sum(map(len, lines))
    if found < FEWEST_WORDS:
        stop(options.text, f"at least {FEWEST_WORDS} words, better a million", found)
    folder.mkdir(parents=True, exist_ok=True)
    learned, held_out = split(lines)
    vocabulary = vocabulary_of(learned, options.words)
    known = set(vocabulary)
    missing = sum(word not in known for line in held_out for word in line)
    print(f"{found} words and marks, {len(vocabulary)} of them different and kept; of the words that were held out "
          f"{100 * missing / sum(map(len, held_out)):.1f} % are not in the vocabulary", flush=True)

    def numbers(some):
        return ids_of([word for line in some for word in line + ["<eos>"]], vocabulary)

    model = trained(numbers(learned), len(vocabulary), options)
    print(f"perplexity of the lines that were held out: {perplexity(model, numbers(held_out)):.1f}; of a list of "
          f"words: {unigram_perplexity(learned, held_out, vocabulary):.1f}", flush=True)

    checkpoint, words, sample = folder / "model.pt", folder / "words.txt", folder / "held_out.txt"
    export(model, checkpoint)
    words.write_text("".join(word + "\n" for word in vocabulary), encoding="utf-8")
    sample.write_text("".join(" ".join(line) + "\n" for line in held_out), encoding="utf-8")
    made = folder / "model.kgl"
    subprocess.run([options.kinglet, "convert", checkpoint, "-o", made, "--vocab", words, "--tokenizer", "wikitext",
                    "--bits", "9", "--calibrate", sample], check=True)
    print(f"{made}: {made.stat().st_size} bytes. Try it: {options.kinglet} type {made} --user my-words")


def unigram_perplexity(learned, held_out, vocabulary):
    """What the words' frequencies alone reach."""
    known = set(vocabulary)
    counts = collections.Counter(word if word in known else "<unk>" for line in learned for word in line + ["<eos>"])
    total = sum(counts.values()) + len(vocabulary)
    words = [word if word in known else "<unk>" for line in held_out for word in line + ["<eos>"]]
    return math.exp(-sum(math.log((counts[word] + 1) / total) for word in words) / len(words))


if __name__ == "__main__":
    main()
