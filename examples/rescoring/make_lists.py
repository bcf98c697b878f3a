#!/usr/bin/env python3
"""Makes the N-best lists of this folder: sentences of a text, confused at random, scored by an n-gram model.

    make_lists.py sentences TEXT > sentences.txt                          paragraphs as sentences, a line each
    make_lists.py lists sentences.txt ARPA VOCABULARY OUT [--count 300] [--seed 1]

writes OUT.tsv.gz ("utt<tab>score<tab>text", the score being the natural log-probability of the n-gram model, best first) and
OUT.ref.tsv. In each list some words have other ones of the vocabulary that are spelt alike, short words are missing or doubled, and up
to 100 of the combinations are in the list. In one list of ten the spoken sentence is not.
"""
import argparse
import gzip
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ngram import Arpa  # pylint: disable=wrong-import-position

LARGEST_LIST = 100
WORDS = range(6, 15)  # of a sentence


def sentences_of(path: str):
    with open(path, encoding="utf-8", newline="\n") as file:
        for line in file:
            if not line.strip() or line.strip().startswith("="):
                continue
            sentence = []
            for word in line.split():
                sentence.append(word)
                if word in (".", "?", "!"):
                    yield sentence
                    sentence = []
            if sentence:
                yield sentence


def differences(a: str, b: str, most: int) -> int:
    """Letters to insert, delete or replace; more than `most` is as good as `most` + 1."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            diagonal, row[j] = row[j], min(diagonal + (letter != other), row[j] + 1, row[j - 1] + 1)
        if min(row) > most:
            return most + 1
    return row[-1]


class Confusions:
    """Words that are spelt alike."""

    def __init__(self, vocabulary: list):
        self.of_length = {}
        for word in vocabulary:
            if word.isalpha() and word.isascii() and word.islower():
                self.of_length.setdefault(len(word), []).append(word)
        self.known = {}

    def of(self, word: str) -> list:
        if word not in self.known:
            most = 1 if len(word) < 5 else 2
            near = [other for length in range(len(word) - most, len(word) + most + 1) for other in self.of_length.get(length, [])
                    if other != word and other[0] == word[0] and differences(word, other, most) <= most]
            self.known[word] = near
        return self.known[word]


def make_list(words: list, confusions: Confusions, draw: random.Random) -> list:
    """Distinct hypotheses, tuples of words."""
    choices = []
    for word in words:
        options = [(word,)]
        if word.isalpha() and word.isascii() and word.islower() and draw.random() < 0.45:
            near = confusions.of(word)
            options += [(other,) for other in draw.sample(near, min(len(near), draw.randint(1, 2)))]
            if len(word) < 4 and draw.random() < 0.3:
                options.append(() if draw.random() < 0.7 else (word, word))
        choices.append(options)
    wanted, found = draw.randint(20, LARGEST_LIST), {}
    if draw.random() < 0.9:
        found[tuple(words)] = True
    for _ in range(5 * wanted):
        if len(found) >= wanted:
            break
        hypothesis = tuple(word for options in choices
                           for word in (options[0] if draw.random() < 0.5 else draw.choice(options)))
        if hypothesis != tuple(words) or tuple(words) in found:
            found[hypothesis] = True
    return list(found)


def write_lists(options):
    with open(options.vocabulary, encoding="utf-8", newline="\n") as file:
        vocabulary = [line.rstrip("\n") for line in file]
    known = set(vocabulary)
    with open(options.sentences, encoding="utf-8", newline="\n") as file:
        sentences = [line.split() for line in file]
    sentences = [words for words in sentences if len(words) in WORDS and "<unk>" not in words and known.issuperset(words)]
    draw, model, confusions = random.Random(options.seed), Arpa(options.arpa), Confusions(vocabulary)
    draw.shuffle(sentences)
    lists, references = [], []
    for words in sentences:
        hypotheses = make_list(words, confusions, draw)
        if len(hypotheses) < 10:
            continue
        name = f"u{len(references) + 1:03}"
        scored = sorted(((round(model.score(list(text)), 3), " ".join(text)) for text in hypotheses), key=lambda one: (-one[0], one[1]))
        lists += [f"{name}\t{score:.3f}\t{text}\n" for score, text in scored]
        references.append(f"{name}\t{' '.join(words)}\n")
        if len(references) == options.count:
            break
    with gzip.GzipFile(options.out + ".tsv.gz", "wb", mtime=0) as file:
        file.write("".join(lists).encode())
    with open(options.out + ".ref.tsv", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(references)
    print(f"{len(references)} lists, {len(lists)} hypotheses", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("sentences").add_argument("text")
    lists = commands.add_parser("lists")
    for name in ("sentences", "arpa", "vocabulary", "out"):
        lists.add_argument(name)
    lists.add_argument("--count", type=int, default=300)
    lists.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "lists":
        write_lists(options)
        return
    for sentence in sentences_of(options.text):
        print(" ".join(sentence))


if __name__ == "__main__":
    main()
