#!/usr/bin/env python3
"""Writes lattices.txt and nbest.tsv next to this file: random lattices, and their best paths by kaldifst.

    pip install kaldifst==1.8.3; python3 make.py

Labels are numbers of words.txt. nbest.tsv has for each lattice the texts of the best paths, each once, and the cost of
the best path of each, 1 x graph + 0.125 x acoustic.
"""

import pathlib
import random

import kaldifst

FOLDER = pathlib.Path(__file__).resolve().parent
WORDS = ["<eps>", "the", "of", "and", "to", "in", "a", "was", "<sil>"]
SCALE, PATHS = 0.125, 400


def lattice(rng):
    fst = kaldifst.Lattice()
    states = rng.randint(2, 9)
    for _ in range(states):
        fst.add_state()
    fst.start = 0
    for state in range(states - 1):
        for _ in range(rng.randint(1, 3)):
            to = min(state + rng.choice([1, 1, 1, 2, 3]), states - 1)
            word = rng.randrange(len(WORDS))
            cost = kaldifst.LatticeWeight(rng.randint(-8, 64) / 16, rng.randint(0, 640) / 16)
            fst.add_arc(state, kaldifst.LatticeArc(rng.randint(1, 9), word, cost, to))
    fst.set_final(states - 1, kaldifst.LatticeWeight(rng.randint(0, 16) / 16, rng.randint(0, 64) / 16))
    if states > 4 and rng.random() < 0.5:
        fst.set_final(states - 2, kaldifst.LatticeWeight(1.5, 2.25))
    return fst


def nbest(fst):
    best = {}
    for path in kaldifst.lattice_to_nbest(fst, acoustic_scale=SCALE, lm_scale=1, n=PATHS):
        found, _, words, weight = kaldifst.get_linear_symbol_sequence(path)
        assert found
        cost = weight.value1 + weight.value2  # scaled already
        text = " ".join(WORDS[word] for word in words if WORDS[word] != "<sil>")
        best[text] = min(cost, best.get(text, cost))
    return sorted(best.items(), key=lambda item: item[1])


def main():
    rng = random.Random(7)
    archive, texts = [], []
    for number in range(40):
        fst = lattice(rng)
        archive.append(f"utt{number} \n{fst.to_str()}\n")
        texts.extend(f"utt{number}\t{cost!r}\t{text}" for text, cost in nbest(fst))
    (FOLDER / "lattices.txt").write_text("".join(archive))
    (FOLDER / "nbest.tsv").write_text("\n".join(texts) + "\n")
    (FOLDER / "words.txt").write_text("".join(f"{word} {number}\n" for number, word in enumerate(WORDS)))


main()
