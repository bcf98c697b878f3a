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
import subprocess
import sys
import tempfile
import unittest

KINGLET, EXAMPLES = (os.path.abspath(path) for path in sys.argv[1:3])
LISTS = os.path.join(EXAMPLES, "rescoring")
sys.path.insert(0, LISTS)
import ngram  # pylint: disable=wrong-import-position


class Lists(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.model = os.path.join(self.folder.name, "m.kgl")
        demo = os.path.join(EXAMPLES, "wikitext2")
        subprocess.run([KINGLET, "convert", demo, "-o", self.model, "--vocab", os.path.join(demo, "vocab.txt"), "--bits", "9", "--calibrate",
                        os.path.join(demo, "calibration.txt")], check=True, stdout=subprocess.DEVNULL)

    def rescore(self, name, *options):
        with gzip.open(os.path.join(LISTS, name + ".tsv.gz")) as file:
            lists = file.read()
        out = subprocess.run([KINGLET, "rescore", self.model, "--json", "--lanes", "16", *options], input=lists, check=True,
                             stdout=subprocess.PIPE).stdout
        return [json.loads(line) for line in out.splitlines()]

    def test_weights_of_the_validation_lists_are_better_than_the_3_gram(self):
        tuned = self.rescore("valid", "--tune", os.path.join(LISTS, "valid.ref.tsv"))[0]
        weights = [f"--{name.replace('_', '-')}={tuned[name]}" for name in ("given_weight", "weight", "length_weight")]
        references = ["--references", os.path.join(LISTS, "test.ref.tsv")]
        both = self.rescore("test", *references)[-1]
        best = self.rescore("test", *references, *weights)[-1]
        self.assertEqual(best["utterances"], 300)
        self.assertLess(best["wer"], both["wer"])
        self.assertLess(both["wer"], best["wer_model"])
        self.assertLess(best["wer_model"], best["wer_given"])
        self.assertLess(best["wer_oracle"], best["wer"])
        self.assertGreater(best["tokens"], 2 * best["tokens_stepped"])
        with open(os.path.join(LISTS, "README.md"), encoding="utf-8") as file:
            page = file.read()
        for rate in (best["wer_given"], best["wer_model"], both["wer"], best["wer"], best["wer_oracle"]):
            self.assertIn(f"{100 * rate:.2f} %", page)


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
