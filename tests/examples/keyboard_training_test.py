#!/usr/bin/env python3
"""examples/keyboard/train.py: a text becomes a model that types, by the commands of its page.

    keyboard_training_test.py EXAMPLES KINGLET

Exits with 77 (skipped) where PyTorch is not installed.
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import torch  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

EXAMPLES, KINGLET = (pathlib.Path(os.path.abspath(argument)) for argument in sys.argv[1:3])
del sys.argv[1:3]
TEXT = EXAMPLES / "wikitext2" / "calibration.txt"
MOST_WORDS = 900


def train(*arguments):
    command = [sys.executable, "-B", EXAMPLES / "keyboard" / "train.py", *arguments, "--kinglet", KINGLET]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        done = train(TEXT, "-o", cls.work / "mine", "--steps", "150", "--words", str(MOST_WORDS), "--width", "32",
                     "--batch", "8", "--threads", "1")
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.printed = done.stdout

    def test_the_vocabulary_has_the_frequent_words(self):
        words = (self.work / "mine" / "words.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(words), MOST_WORDS)
        held_out = self.lines(self.work / "mine" / "held_out.txt")
        lines = self.lines(TEXT)
        share = sum(map(len, held_out)) / sum(map(len, lines))
        self.assertTrue(0.015 < share < 0.06, share)
        counts = collections.Counter(word for line in lines for word in line)
        counts.subtract(word for line in held_out for word in line)
        self.assertGreaterEqual(min(counts.values()), 0)
        del counts["<unk>"]
        self.assertEqual(words.count("<unk>") + words.count("<eos>"), 2)
        kept = set(words) - {"<unk>", "<eos>"}
        self.assertGreaterEqual(min(counts[word] for word in kept), 2)
        self.assertLessEqual(max(count for word, count in counts.items() if word not in kept),
                             min(counts[word] for word in kept))

    @staticmethod
    def lines(path):
        return [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.split()]

    def test_the_network_has_learned(self):
        """More than the frequencies of words."""
        line = next(line for line in self.printed.splitlines() if line.startswith("perplexity"))
        network, unigram = (float(part.split(": ")[-1].split(" ")[-1]) for part in line.split("; "))
        self.assertLess(network, unigram)

    def test_the_model_types(self):
        """The page's last command."""
        done = subprocess.run([KINGLET, "type", self.work / "mine" / "model.kgl", "--simulate",
                               self.work / "mine" / "held_out.txt", "--words", "60", "--json"],
                              capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[0])
        self.assertEqual(found["words"], 60)
        self.assertGreater(found["recall_at_3"], 0.5)

    def test_what_is_wrong_is_named(self):
        short = self.work / "short.txt"
        short.write_text("a few words\n")
        for arguments, part in (([short], "at least 2000 words"), ([self.work / "missing.txt"], "no such file")):
            done = train(*arguments, "-o", self.work / "none")
            self.assertEqual(done.returncode, 1)
            self.assertIn(part, done.stderr)
            self.assertFalse((self.work / "none").exists())


if __name__ == "__main__":
    unittest.main()
