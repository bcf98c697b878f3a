#!/usr/bin/env python3
"""The totals of `kinglet score`, compared with the same figures computed here from the tokens that it prints and from the text.

    score_figures_test.py KINGLET EXAMPLE [--model M.kgl] [--text FILE] [--single-runs N [--only]]

EXAMPLE is examples/wikitext2. It is converted and its passage scored, unless a model (which has a tokenizer) and a text are named.
--single-runs: the first N lines are also scored by a command each, and `--lines` must give the same bits for any lanes and threads;
--only: runs that comparison alone.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter

TOLERANCE = 1e-7  # of nine printed digits, summed


class Failed(Exception):
    pass


def require(condition, what):
    if not condition:
        raise Failed(what)


def near(found, expected, what):
    require(found is not None and abs(found - expected) <= TOLERANCE * max(1, abs(expected)), f"{what}: found {found}, expected {expected}")


class Command:
    def __init__(self, kinglet, model):
        self.kinglet, self.model = kinglet, model

    def score(self, *arguments):
        done = subprocess.run([self.kinglet, "score", self.model, "--json", *arguments], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        require(done.returncode == 0, f"score {' '.join(arguments)}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.split("\n") if line], done.stderr


class Text:
    """The text's words, bytes and characters, counted here. Each of `texts` has a fresh state."""

    def __init__(self, path, by_line):
        with open(path, encoding="utf-8", newline="\n") as file:
            content = file.read()
        self.lines = content.removesuffix("\n").split("\n")
        self.texts = [[line] for line in self.lines] if by_line else [self.lines]

    def size(self, lines, ends):
        words, characters = sum(len(line.split()) for line in lines), "".join(lines)
        return [words + ends, len(characters.encode()) + ends, len(characters) + ends]


def frequency_bins(tokens, rank_of, ranks):
    """Ten bins by rank: all tokens are sorted by rank, and a word is in the bin where its tokens begin."""
    count, loss = Counter(), Counter()
    for token in tokens:
        rank = rank_of(token)
        count[rank] += 1
        loss[rank] -= token["logprob"]
    bins, before = {}, 0
    for rank in sorted(count):
        entry = bins.setdefault(10 * before // len(tokens), [rank, rank, 0, 0.0])
        entry[1], entry[2], entry[3] = rank, entry[2] + count[rank], entry[3] + loss[rank]
        before += count[rank]
    rows, end = list(bins.values()), -1
    for row in rows:
        row[0], end = end + 1, row[1]
    rows[-1][1] = ranks - 1
    return rows


def gap_bins(texts):
    """Bins of 1, 2-3, 4-7, ... tokens since the word's last occurrence, and of words without one: `texts` are lists of (id, logprob or None)."""
    bins, never = {}, [0, 0.0]
    for text in texts:
        last = {}
        for at, (token, logprob) in enumerate(text):
            if logprob is not None:
                octave = int(math.log2(at - last[token])) if token in last else None
                entry = never if octave is None else bins.setdefault(octave, [0, 0.0])
                entry[0], entry[1] = entry[0] + 1, entry[1] - logprob
            last[token] = at
    rows = [[2**octave, 2 ** (octave + 1) - 1, *bins[octave]] for octave in sorted(bins)]
    if never[0]:
        rows.append([rows[-1][1] + 1 if rows else 1, None, *never])
    return rows


def compare_bins(found, expected, name):
    require(len(found) == len(expected), f"{name}: found {len(found)} bins, expected {len(expected)}")
    for line, (first, last, tokens, loss) in zip(found, expected):
        require((line["by"], line["from"], line["to"], line["tokens"]) == (name, first, last, tokens),
                f"{name}: found {line}, expected {(first, last, tokens)}")
        near(line["nll"], loss / tokens, f"{name}, bin from {first}")


def check_count_bins(found, tokens, count_of, unknown, name):
    """Bins of counts 0, 1, 2 to 4, 5 and more, and the unknown word."""
    bins = {}
    for token in tokens:
        count = count_of(token["id"])
        key = None if token["id"] == unknown else max(begin for begin in (0, 1, 2, 5) if begin <= count)
        entry = bins.setdefault(key, [0, 0.0])
        entry[0], entry[1] = entry[0] + 1, entry[1] - token["logprob"]
    require([line.get("from") for line in found] == [begin for begin in (0, 1, 2, 5, None) if begin in bins], f"{name}: bins of counts {found}")
    for line in found:
        expected, last = bins[line.get("from")], {0: 0, 1: 1, 2: 4}.get(line.get("from"))
        require((line["by"], line["tokens"], line.get("to"), line.get("unknown", False))
                == (name, expected[0], last, "from" not in line), f"{name}: {line}")
        near(line["nll"], expected[1] / expected[0], f"{name}: {line}")


def check_way(command, vocabulary, path, options, counts_path):
    """One way of scoring: the totals and every kind of bins."""
    by_line, first_scored = "--lines" in options, "--lines" in options and "--no-bos" not in options
    text = Text(path, by_line)
    lines, warning = command.score("--text", path, "--tokens", *options)
    tokens, summary = [line for line in lines if "pos" in line], lines[-1]
    words_only = vocabulary is not None
    losses = [-token["logprob"] for token in tokens]
    unknown = [token for token in tokens if token["token"] == "<unk>"]
    known = [-token["logprob"] for token in tokens if token["token"] != "<unk>"]
    of_line = {}
    for token in tokens:
        of_line.setdefault(token.get("line", 1), []).append(token)
    what = " ".join(options) or "stream"

    # Perplexities, unknown words, words, bytes, characters.
    require(summary["scored"] == len(tokens), f"{what}: scored")
    require(summary["oov"] == len(unknown), f"{what}: oov {summary['oov']}, expected {len(unknown)}")
    near(summary["oov_share"], len(unknown) / len(tokens), f"{what}: oov_share")
    near(summary["nll"], sum(losses) / len(tokens), f"{what}: nll")
    near(summary["ppl"], math.exp(sum(losses) / len(tokens)), f"{what}: ppl")
    near(summary["ppl_without_oov"], math.exp(sum(known) / len(known)), f"{what}: ppl_without_oov")
    ends = 0
    for one in text.texts:
        scored_end = "--no-eos" not in options and (first_scored or not by_line or one[0].split())
        ends += len(one) if scored_end else 0
    size = text.size(text.lines, ends)
    for one in text.texts:  # tokens that are fed without being scored are not counted
        if not first_scored and (one[0].split() or not by_line):
            first = text.size(one[0].split()[:1], 0) if one[0].split() else [1, 1, 1]
            size = [a - b for a, b in zip(size, first)]
    words, size_bytes, characters = size
    require(summary["words"] == words, f"{what}: words {summary['words']}, expected {words}")
    near(summary["ppl_per_word"], math.exp(sum(losses) / words), f"{what}: ppl_per_word")
    near(summary["bits_per_byte"], sum(losses) / math.log(2) / size_bytes, f"{what}: bits_per_byte")
    near(summary["bits_per_character"], sum(losses) / math.log(2) / characters, f"{what}: bits_per_character")
    require((": " in warning and "unknown words" in warning) == (len(unknown) > 0.05 * len(tokens)), f"{what}: warning {warning!r}")

    # Lines.
    if by_line:
        per_line = [line for line in lines if "logprob_without_oov" in line]
        require(len(per_line) == len(text.lines), f"{what}: lines")
        for number, line in enumerate(per_line, 1):
            mine = of_line.get(number, [])
            require((line["line"], line["tokens"]) == (number, len(mine)), f"{what}: line {number}")
            near(line["logprob"], sum(token["logprob"] for token in mine), f"{what}: line {number}")
            near(line["logprob_without_oov"], sum(token["logprob"] for token in mine if token["token"] != "<unk>"),
                 f"{what}: line {number} without unknown words")

    # Bins.
    by = [line for line in command.score("--text", path, "--by", "frequency", *options)[0] if "by" in line]
    ranks = by[-1]["to"] + 1
    compare_bins(by, frequency_bins(tokens, lambda token: token["id"], ranks), "frequency")
    if words_only:
        require(ranks == len(vocabulary), f"{what}: ranks")
        text_counts = Counter(word for line in text.lines for word in line.split() if word in vocabulary)
        with open(counts_path, "w", encoding="utf-8") as file:
            file.writelines(f"{word} {count}\n" for word, count in text_counts.items())
        order = sorted(range(ranks), key=lambda id: (-text_counts[vocabulary[id]], id))
        rank_of = {id: rank for rank, id in enumerate(order)}
        by = [line for line in command.score("--text", path, "--by", "frequency", "--counts", counts_path, *options)[0] if "by" in line]
        compare_bins(by, frequency_bins(tokens, lambda token: rank_of[token["id"]], ranks), "frequency")
    by = [line for line in command.score("--text", path, "--by", "gap", *options)[0] if "by" in line]
    texts, at = [], 0
    for number, one in enumerate(text.texts, 1):
        mine = of_line.get(number, [])
        fed = []
        if not first_scored and words_only:
            first = (one[0].split() or ["<eos>"])[0]
            fed = [(vocabulary.index(first if first in vocabulary else "<unk>"), None)]
        texts.append(fed + [(token["id"], token["logprob"]) for token in mine])
        at += len(mine)
    require(at == len(tokens), f"{what}: tokens of the texts")
    if first_scored or words_only:
        compare_bins(by, gap_bins(texts), "gap")
    if words_only:
        # Tokens by the word before; <eos> is before a line.
        previous = [{"id": before, "logprob": logprob} for one in texts
                    for (before, _), (_, logprob) in zip([(vocabulary.index("<eos>"), None), *one], one) if logprob is not None]
        found = [line for line in command.score("--text", path, "--by", "previous", *options)[0] if "by" in line]
        compare_bins(found, frequency_bins(previous, lambda token: token["id"], ranks), "previous")
        for name, scored in (("frequency", tokens), ("previous", previous)):
            found = [line for line in command.score("--text", path, "--by", name, "--counts", counts_path, "--bins", "1,2,5", *options)[0]
                     if "by" in line]
            check_count_bins(found, scored, lambda id: text_counts[vocabulary[id]], vocabulary.index("<unk>"), name)
    near(sum(line["nll"] * line["tokens"] for line in by), sum(losses), f"{what}: the bins' sum")
    require(sum(line["tokens"] for line in by) == len(tokens), f"{what}: the bins' tokens")
    print(f"{what}: {len(tokens)} tokens, {len(unknown)} unknown, {words} words, {size_bytes} bytes: ppl {summary['ppl']},"
          f" without unknown words {summary['ppl_without_oov']}, per word {summary['ppl_per_word']}")


def check_single_runs(command, path, count, folder):
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().removesuffix("\n").split("\n")[:count]
    one, many = os.path.join(folder, "one.txt"), os.path.join(folder, "many.txt")
    with open(many, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(line + "\n" for line in lines)
    alone = []
    for line in lines:
        with open(one, "w", encoding="utf-8", newline="\n") as file:
            file.write(line + "\n")
        answer, _ = command.score("--lines", "--text", one, "--hex")
        alone.append(([token["hex"] for token in answer[:-2]], {**answer[-2], "line": 0}))
    for lanes in ("1", "7", "64"):
        for threads in ("1", "2"):
            answer, _ = command.score("--lines", "--text", many, "--hex", "--lanes", lanes, "--threads", threads)
            together, bits = [], []
            for entry in answer[:-1]:
                if "hex" in entry:
                    bits.append(entry["hex"])
                else:
                    together.append((bits, {**entry, "line": 0}))
                    bits = []
            require(together == alone, f"lanes {lanes}, threads {threads}: another result than {len(lines)} runs of one line each")
            print(f"lanes {lanes}, threads {threads}: {len(lines)} lines as alone")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet")
    parser.add_argument("example")
    parser.add_argument("--model")
    parser.add_argument("--text")
    parser.add_argument("--single-runs", type=int, default=15)
    parser.add_argument("--only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        vocabulary, model, text = None, options.model, options.text or os.path.join(options.example, "passage.txt")
        if not model:
            model = os.path.join(folder, "m.kgl")
            words = os.path.join(options.example, "vocab.txt")
            subprocess.run([options.kinglet, "convert", options.example, "-o", model, "--vocab", words, "--bits", "9"], check=True,
                           stdout=subprocess.DEVNULL)
            with open(words, encoding="utf-8") as file:
                vocabulary = file.read().removesuffix("\n").split("\n")
        command, counts = Command(options.kinglet, model), os.path.join(folder, "counts.txt")
        ways = [["--lines"], ["--lines", "--no-eos"]]
        if vocabulary is not None:
            ways += [[], ["--block", "100", "--context", "20"], ["--lines", "--no-bos"], ["--lines", "--no-bos", "--no-eos"]]
        for way in [] if options.only else ways:
            check_way(command, vocabulary, text, way, counts)
        if options.single_runs > 0:
            check_single_runs(command, text, options.single_runs, folder)


if __name__ == "__main__":
    try:
        main()
    except Failed as failed:
        sys.exit(f"score_figures: {failed}")
