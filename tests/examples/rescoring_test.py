#!/usr/bin/env python3
"""The bundled lists are rescored as their README says, and the n-gram trainer's probabilities are what they should be.

    rescoring_test.py KINGLET EXAMPLES
"""
import gzip
import io
import itertools
import json
import math
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

KINGLET, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:3])
LISTS = os.path.join(EXAMPLES, "rescoring")
sys.path.insert(0, LISTS)
import ngram  # pylint: disable=wrong-import-position


with open(os.path.join(LISTS, "README.md"), encoding="utf-8") as readme:
    PAGE = readme.read()


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.symlink(EXAMPLES, os.path.join(self.folder.name, "examples"))
        self.model = os.path.join(self.folder.name, "m.kgl")
        self.blocks = re.findall(r"^```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    def run_block(self, block):
        """What the commands of the page print, run as they are printed."""
        path = os.path.dirname(KINGLET) + os.pathsep + os.environ["PATH"]
        return subprocess.run(["bash", "-e", "-c", block], cwd=self.folder.name, env={**os.environ, "PATH": path}, check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout

    def test_lists_are_made_as_printed(self):
        with open(os.path.join(EXAMPLES, "wikitext2", "calibration.txt"), encoding="utf-8") as file:
            lines = file.readlines()
        for part, count in (("train", len(lines)), ("valid", 30), ("test", 30)):
            with open(os.path.join(self.folder.name, f"wiki.{part}.tokens"), "w", encoding="utf-8") as file:
                file.writelines(lines[:count])
        self.run_block(self.blocks[1])
        for name in ("test", "valid"):
            with gzip.open(os.path.join(self.folder.name, name + ".tsv.gz"), "rt", encoding="utf-8") as file:
                self.assertGreater(len(file.readlines()), 50)

    def rescore(self, name, *options):
        with gzip.open(os.path.join(LISTS, name + ".tsv.gz")) as file:
            lists = file.read()
        out = subprocess.run([KINGLET, "rescore", self.model, "--json", "--lanes", "16", *options], input=lists, check=True,
                             stdout=subprocess.PIPE).stdout
        return [json.loads(line) for line in out.splitlines()]

    def test_weights_of_the_validation_lists_are_better_than_the_3_gram(self):
        printed = self.run_block(self.blocks[0])
        tuned = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        for name in ("weight", "length_weight"):
            stated = float(re.search(rf"--{name.replace('_', '-')} ([0-9.]+)", self.blocks[0])[1])
            self.assertAlmostEqual(tuned[name], stated, places=3)
        best = re.search(r"word error rate ([0-9.]+) \(given score alone ([0-9.]+), model alone ([0-9.]+), best possible ([0-9.]+)\)",
                         printed)
        tokens, stepped = re.search(r"([0-9,]+) tokens, of which ([0-9,]+)", printed).groups()
        self.assertGreater(int(tokens.replace(",", "")), 2 * int(stepped.replace(",", "")))
        both = self.rescore("test", "--references", os.path.join(LISTS, "test.ref.tsv"))[-1]
        self.assertEqual(both["utterances"], 300)
        wer, given, model, oracle = (float(rate) for rate in best.groups())
        self.assertEqual(sorted([given, model, both["wer"], wer, oracle], reverse=True), [given, model, both["wer"], wer, oracle])
        for rate in (wer, given, model, both["wer"], oracle):
            self.assertIn(f"{100 * rate:.2f} %", PAGE)
        # With a second n-gram model, better than each alone and than both without it.
        printed = self.run_block(self.blocks[2])
        tuned = json.loads(next(line for line in printed.splitlines() if line.startswith("{")))
        for name, value in (("weight", tuned["weight"]), ("length-weight", tuned["length_weight"]), ("ngram-weight", tuned["ngram_weights"][0])):
            self.assertAlmostEqual(value, float(re.search(rf" --{name} ([0-9.]+)", self.blocks[2])[1]), places=3)
        mixed, ngrams = map(float, re.search(r"word error rate ([0-9.]+) .* n-grams alone ([0-9.]+)", printed).groups())
        self.assertLess(mixed, min(wer, given, model, ngrams))
        for rate in (mixed, ngrams):
            self.assertIn(f"{100 * rate:.2f} %", PAGE)
        # Without the given score too, weights that are tuned on the validation lists make the mixture better than either alone.
        both = self.tuned_wer("--ngram", os.path.join(self.folder.name, "small.kng"))
        self.assertLess(both["wer"], min(self.tuned_wer()["wer"], both["wer_model"], *both["wer_ngrams"]))

    def tuned_wer(self, *options):
        """The rates of the test lists without given scores, with weights that are tuned on the validation lists."""
        for name in ("valid", "test"):
            with gzip.open(os.path.join(LISTS, name + ".tsv.gz"), "rt", encoding="utf-8") as file:
                rows = [line.rstrip("\n").split("\t") for line in file]
            with open(os.path.join(self.folder.name, name + ".txt"), "w", encoding="utf-8") as file:
                file.writelines(f"{utterance}-{at} {text}\n" for at, (utterance, _, text) in enumerate(rows, 1))
        run = lambda command: json.loads(subprocess.run(
            command, cwd=self.folder.name, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])
        tuned = run([KINGLET, "rescore", self.model, "valid.txt", "--format", "kaldi", "--lanes", "16", *options,
                     "--tune", os.path.join(LISTS, "valid.ref.tsv")])
        command = [word.replace("valid.txt", "test.txt") for word in shlex.split(tuned["command"])]
        return run([KINGLET, *command[1:], "--lanes", "16", "--json", "--references", os.path.join(LISTS, "test.ref.tsv")])


class NGram(unittest.TestCase):
    TEXT = ["a b c", "a b d", "b c", "a", "c c c a", "d a b e", "b b", "a b c d e", "c d", "e e a b"]

    def test_probabilities_sum_to_one(self):
        words = ["a", "b", "c", "d", "e", "unseen"]
        for order in (1, 2, 3):
            model = ngram.Trained((line.split() for line in self.TEXT), words, order)
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "m.arpa")
                with open(path, "w", encoding="utf-8") as file:
                    model.write(file)
                read = ngram.Arpa(path)
            self.assertEqual(read.order, order)
            contexts = itertools.chain.from_iterable(
                itertools.product(["<s>", *words], repeat=n) for n in range(order))
            for context in contexts:
                total = sum(10 ** read.log10_of((*context, word)) for word in [*words, "<unk>", "</s>"])
                self.assertAlmostEqual(total, 1, places=5, msg=str(context))
            likely, unlikely = read.score(["a", "b", "c"]), read.score(["d", "d", "d"])
            self.assertGreater(likely, unlikely)
            self.assertTrue(math.isfinite(read.score(["never"])))

    def test_a_bigram_by_hand(self):
        # Discounts of a small text are 0.5, 0.75 and 0.9. Bigrams: <s> a twice, a b, b </s>, a </s>; after different words
        # stand: a after 1, b after 1, </s> after 2.
        out = io.StringIO()
        model = ngram.Trained([["a", "b"], ["a"]], ["a", "b"], 2)
        model.write(out)
        unigram = (1 - 0.5 + (0.5 + 0.5 + 0.75) * 1 / 4) / 4  # of a: 4 words with </s> and <unk>
        bigram = (1 - 0.5 + (0.5 + 0.5) * unigram) / 2         # of b after a: b has the same unigram
        self.assertAlmostEqual(model.probabilities[1][("b",)], math.log10(unigram))
        self.assertAlmostEqual(model.probabilities[2][("a", "b")], math.log10(bigram))
        self.assertIn("ngram 2=4", out.getvalue())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
