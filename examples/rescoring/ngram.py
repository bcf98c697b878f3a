#!/usr/bin/env python3
"""A small n-gram language model: modified Kneser-Ney (Chen and Goodman 1998), interpolated, written and read as an ARPA file.

    ngram.py train TEXT --vocabulary WORDS -o OUT.arpa [--order 3]      a sentence a line, words between spaces
    ngram.py score ARPA < sentences                                     natural log p(words </s> | <s>) of each

It needs Python alone and is meant for examples: WikiText-2's training text takes a minute and a gigabyte.
"""
import argparse
import math
import sys
from collections import defaultdict

BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
NEVER = -99.0  # log10 p of <s>, which is not predicted


def discounts(counts) -> tuple:
    """The discounts of n-grams that occurred once, twice, and more often."""
    of = [0] * 5
    for count in counts:
        if count <= 4:
            of[count] += 1
    if not all(of[1:]):
        return (0.0, 0.5, 0.75, 0.9)  # too little text for an estimate
    y = of[1] / (of[1] + 2 * of[2])
    return (0.0, *(n - (n + 1) * y * of[n + 1] / of[n] for n in (1, 2, 3)))


class Trained:
    """`probabilities[n]` and `backoffs[n]` by tuples of n words: log10."""

    def __init__(self, sentences, vocabulary, order: int):
        words = set(vocabulary) | {END, UNKNOWN}
        words.discard(BEGIN)
        counts = [defaultdict(int) for _ in range(order + 1)]
        for sentence in sentences:
            tokens = (BEGIN, *(word if word in words else UNKNOWN for word in sentence), END)
            for at in range(1, len(tokens)):
                counts[order if at + 1 >= order else at + 1][tokens[max(0, at + 1 - order):at + 1]] += 1
        # A shorter n-gram counts the words it was found after; n-grams that begin a sentence count their occurrences.
        for n in range(order, 1, -1):
            for gram in counts[n]:
                counts[n - 1][gram[1:]] += 1
        self.order, self.probabilities, self.backoffs = order, [{} for _ in range(order + 1)], [{} for _ in range(order + 1)]
        lower = {(): 1 / len(words)}
        for n in range(1, order + 1):
            lower = self.estimate(n, counts[n], lower, words)

    def estimate(self, n: int, counts: dict, lower: dict, words: set) -> dict:
        discount = discounts(counts.values())
        total, reserved = defaultdict(int), defaultdict(float)
        for gram, count in counts.items():
            total[gram[:-1]] += count
            reserved[gram[:-1]] += discount[min(count, 3)]
        found = {}
        for gram, count in counts.items():
            context = gram[:-1]
            shorter = lower[gram[1:]] if n > 1 else lower[()]
            found[gram] = (count - discount[min(count, 3)] + reserved[context] * shorter) / total[context]
        if n == 1:
            for word in words - {gram[0] for gram in counts}:
                found[(word,)] = reserved[()] / total[()] * lower[()]
        for context in total:
            if context:
                self.backoffs[n - 1][context] = math.log10(reserved[context] / total[context])
        self.probabilities[n] = {gram: math.log10(p) for gram, p in found.items()}
        return found

    def write(self, file):
        self.probabilities[1].setdefault((BEGIN,), NEVER)
        file.write("\\data\\\n")
        for n in range(1, self.order + 1):
            file.write(f"ngram {n}={len(self.probabilities[n])}\n")
        for n in range(1, self.order + 1):
            file.write(f"\n\\{n}-grams:\n")
            for gram in sorted(self.probabilities[n]):
                backoff = self.backoffs[n].get(gram)
                file.write(f"{self.probabilities[n][gram]:.7g}\t{' '.join(gram)}" + ("\n" if backoff is None else f"\t{backoff:.7g}\n"))
        file.write("\n\\end\\\n")


class Arpa:
    def __init__(self, path: str):
        self.entries, n = {}, 0
        with open(path, encoding="utf-8", newline="\n") as file:
            for line in file:
                line = line.rstrip("\n")
                if line.startswith("\\") and line.endswith("-grams:"):
                    n = int(line[1:line.index("-")])
                elif n and line and not line.startswith("\\"):
                    fields = line.split("\t")
                    self.entries[tuple(fields[1].split(" "))] = (float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0)
        self.order = n

    def log10_of(self, gram: tuple) -> float:
        """log10 p of the last word after the others."""
        found = self.entries.get(gram)
        if found is not None:
            return found[0]
        backoff = self.entries.get(gram[:-1])
        return (backoff[1] if backoff else 0.0) + self.log10_of(gram[1:])

    def score(self, words: list) -> float:
        """Natural log p(words </s> | <s>)."""
        tokens = [BEGIN, *(word if (word,) in self.entries else UNKNOWN for word in words), END]
        return math.log(10) * sum(self.log10_of(tuple(tokens[max(0, at + 1 - self.order):at + 1])) for at in range(1, len(tokens)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    train = commands.add_parser("train")
    train.add_argument("text")
    train.add_argument("--vocabulary", required=True)
    train.add_argument("-o", "--output", required=True)
    train.add_argument("--order", type=int, default=3)
    commands.add_parser("score").add_argument("arpa")
    options = parser.parse_args()
    if options.command == "score":
        model = Arpa(options.arpa)
        for line in sys.stdin:
            print(f"{model.score(line.split()):.6f}")
        return
    with open(options.vocabulary, encoding="utf-8", newline="\n") as file:
        vocabulary = [line.rstrip("\n") for line in file]
    with open(options.text, encoding="utf-8", newline="\n") as file:
        model = Trained((line.split() for line in file if line.strip()), vocabulary, options.order)
    with open(options.output, "w", encoding="utf-8", newline="\n") as file:
        model.write(file)


if __name__ == "__main__":
    main()
