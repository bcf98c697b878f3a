#!/usr/bin/env python3
"""`kinglet ngram`: files, their sizes, and scores that equal the definition's and KenLM's.

    ngram_test.py KINGLET EXAMPLES DATA [--write]

Models of examples/rescoring/ngram.py, with <unk> and without, are compared with the definition on thousands of sentences;
with KenLM's Python module (0.3.0) where it is installed, and with scores that it gave (DATA/ngrams/kenlm_scores.json, which
--write makes). KINGLET_NGRAM_SENTENCES=100000 compares more of them, for example

    KINGLET_NGRAM_SENTENCES=100000 python3 tests/tools/ngram_test.py build/release/bin/kinglet examples tests/data Scores.test_equal_kenlms
"""
import gzip
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

KINGLET, EXAMPLES, DATA = (os.path.abspath(path) for path in sys.argv[1:4])
sys.path.insert(0, os.path.join(EXAMPLES, "rescoring"))
import ngram  # pylint: disable=wrong-import-position

try:
    import kenlm
except ImportError:
    kenlm = None

STORED = os.path.join(DATA, "ngrams", "kenlm_scores.json")
STORED_SENTENCES = 25
ORDERS = (1, 2, 3, 5)
SENTENCES = int(os.environ.get("KINGLET_NGRAM_SENTENCES", "1000"))
MISSING = -100.0  # KenLM's log10 p of an unknown word, for a model without <unk>


def run(*arguments, text=None, status=0):
    done = subprocess.run([KINGLET, "ngram", *arguments], input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout.decode() if status == 0 else done.stderr.decode()


def scores(model, text):
    lines = run(model, "--text", "-", "--log10", "--json", text="\n".join(text).encode()).splitlines()
    return [json.loads(line) for line in lines]


class Texts:
    """Sentences to train on, and sentences to score: of the same text, of its words at random, with unknown words."""

    def __init__(self):
        with open(os.path.join(EXAMPLES, "wikitext2", "calibration.txt"), encoding="utf-8") as file:
            sentences = [line.strip() for line in file if len(line.split()) > 3]
        self.train, rest = sentences[:-30], sentences[-30:]
        draw, words = random.Random(1), sorted({word for line in sentences for word in line.split()}) + ["<unk>"]
        made = [" ".join(draw.choice(words) for _ in range(draw.randrange(12))) for _ in range(SENTENCES - len(rest))]
        self.score = rest + ["", *made]

    def write(self, folder, order, has_unknown):
        """Writes a model; without <unk> its n-grams with that word are missing, as if the text had no other words."""
        model = ngram.Trained([line.split() for line in self.train], {word for line in self.train for word in line.split()}, order)
        if not has_unknown:
            for n in range(1, order + 1):
                for table in (model.probabilities[n], model.backoffs[n]):
                    for gram in [gram for gram in table if ngram.UNKNOWN in gram]:
                        del table[gram]
        path = os.path.join(folder, f"{order}{'' if has_unknown else '-without'}.arpa")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            model.write(file)
        return path


def definition(arpa, line):
    """log10 p(words </s> | <s>), as an ARPA file defines it."""
    entries, total = arpa.entries, 0.0
    known = [word if (word,) in entries else ngram.UNKNOWN for word in line.split()]
    tokens = [ngram.BEGIN, *known, ngram.END]
    for at in range(1, len(tokens)):
        for begin in range(max(0, at + 1 - arpa.order), at + 1):
            gram = tuple(tokens[begin:at + 1])
            if gram in entries:
                total += entries[gram][0]
                break
            if begin < at:
                total += entries.get(gram[:-1], (0, 0))[1]
        else:
            total += MISSING
    return total


class Scores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.texts = Texts()
        cls.models = {}
        for order in ORDERS:
            for has_unknown in (True, False):
                arpa = cls.texts.write(cls.folder.name, order, has_unknown)
                cls.models[arpa] = arpa[:-len("arpa")] + "kng"
                run(arpa, "-o", cls.models[arpa])

    def test_equal_the_definition(self):
        for arpa, file in self.models.items():
            read, found = ngram.Arpa(arpa), scores(file, self.texts.score)
            self.assertEqual(len(found), len(self.texts.score) + 1)
            total = 0.0
            for line, score in zip(self.texts.score, found):
                self.assertEqual(score["tokens"], len(line.split()) + 1)
                expected = definition(read, line)
                self.assertLess(abs(score["logprob"] - expected), 1e-6 * score["tokens"], (arpa, line))
                total += expected
            self.assertTrue(math.isclose(found[-1]["nll"], -total * math.log(10) / found[-1]["scored"], rel_tol=1e-6))

    def test_equal_those_that_kenlm_gave(self):
        with open(STORED, encoding="utf-8") as file:
            stored = json.load(file)
        for arpa, file in self.models.items():
            found = scores(file, self.texts.score[-STORED_SENTENCES:])
            for score, expected in zip(found, stored.get(os.path.basename(arpa), [])):
                bound = 1e-6 * score["tokens"] + (7.6e-6 * score["oov"] if "without" in arpa else 0)
                self.assertLess(abs(score["logprob"] - expected), bound, arpa)

    @unittest.skipIf(kenlm is None, "kenlm is not installed")
    def test_equal_kenlms(self):
        for arpa, file in self.models.items():
            if arpa.endswith(("1.arpa", "1-without.arpa")):
                continue  # KenLM reads orders of 2 and more
            model, most = kenlm.Model(arpa), 0
            for line, score in zip(self.texts.score, scores(file, self.texts.score)):
                parts = list(model.full_scores(line))
                # KenLM adds floats of 32 bits, whose last bit is 7.6e-6 near -100.
                bound = 1e-6 * score["tokens"] + (7.6e-6 * score["oov"] if "without" in arpa else 0)
                difference = abs(score["logprob"] - sum(part[0] for part in parts))
                self.assertLess(difference, bound, (arpa, line))
                self.assertEqual(score["oov"], sum(part[2] for part in parts))
                most = max(most, difference / score["tokens"])
            print(f"{os.path.basename(arpa)}: {len(self.texts.score)} sentences, log10 differs by {most:.1e} a word at most")

    def test_quantised_scores_are_near(self):
        arpa = os.path.join(self.folder.name, "3.arpa")
        file = os.path.join(self.folder.name, "8.kng")
        made = json.loads(run(arpa, "-o", file, "--bits", "8", "--json"))
        exact = json.loads(run(self.models[arpa], "--json"))
        self.assertEqual((made["order"], made["counts"], made["unk"]), (3, exact["counts"], True))
        self.assertEqual((made["bits"], exact["bits"]), (8, 32))
        self.assertEqual(made["file_size"], os.path.getsize(file))
        self.assertLess(made["file_size"], self.trie_bytes(made["counts"], 8))
        ppl = [scores(path, self.texts.score)[-1]["ppl"] for path in (file, self.models[arpa])]
        self.assertTrue(math.isclose(*ppl, rel_tol=2e-3), ppl)

    @staticmethod
    def trie_bytes(counts, bits):
        """What `build_binary -q BITS -b BITS trie` of KenLM takes without its list of words: lm/trie.hh, lm/quantize.hh."""
        word = (counts[0] - 1).bit_length()
        size = 8 * counts[0] + 16 * (counts[0] + 2) + (2 * (len(counts) - 2) + 1) * 4 * 2 ** bits
        for n in range(1, len(counts) - 1):
            size += (1 + counts[n]) * (word + 2 * bits + counts[n + 1].bit_length()) // 8
        return size + (1 + counts[-1]) * (word + bits) // 8

    def test_packed_and_carriage_returns(self):
        arpa = os.path.join(self.folder.name, "2.arpa")
        with open(arpa, "rb") as file:
            text = file.read()
        expected = json.loads(run(arpa, "--json"))["digest"]
        for name, changed in (("a.arpa.gz", gzip.compress(text)), ("b.arpa", text.replace(b"\n", b"\r\n"))):
            path = os.path.join(self.folder.name, name)
            with open(path, "wb") as file:
                file.write(changed)
            self.assertEqual(json.loads(run(path, "--json"))["digest"], expected)
        self.assertEqual(json.loads(run("-", "--json", text=text))["digest"], expected)

    def test_people_read_tables(self):
        arpa = os.path.join(self.folder.name, "2.arpa")
        self.assertRegex(run(arpa), r"2\.arpa: [\d,]+ words, [\d,]+ 2-grams; [\d,]+ bytes, values of 32 bits\n")
        without = os.path.join(self.folder.name, "2-without.arpa")
        self.assertIn("; no <unk>: an unknown word has 10^-100\n", run(without))
        lines = run(arpa, "--text", "-", text=b"the film\n").splitlines()
        self.assertEqual(lines[0].split(), ["line", "logprob", "tokens", "oov"])
        self.assertEqual(lines[1].split()[2], "3")
        self.assertRegex(lines[2], r"^1 lines, 3 tokens with ends, \d unknown; perplexity ")

    def test_refusals(self):
        arpa, file = os.path.join(self.folder.name, "2.arpa"), os.path.join(self.folder.name, "made.kng")
        for arguments, status, message in (
                ((self.models[arpa], "-o", file), 1, "an n-gram file that is converted already (`kinglet ngram` shows it)"),
                ((arpa, "-o", arpa), 1, "kinglet: ngram: "),
                ((arpa, "--bits", "8"), 2, "--bits"),
                ((arpa, "-o", file, "--bits", "1"), 2, "--bits"),
                (("-", "--text", "-"), 2, "expected standard input once"),
                ((arpa, "--text", os.devnull), 1, "expected at least one line, found none"),
                ((os.path.join(EXAMPLES, "rescoring", "README.md"),), 1, "expected \\data\\, with which n-grams begin")):
            error = run(*arguments, text=b"", status=status)
            self.assertIn(message, error)
            self.assertTrue(error.startswith("kinglet: ") and error.count("\n") == 1, error)
        self.assertFalse(os.path.exists(file))


def write():
    texts, stored = Texts(), {}
    with tempfile.TemporaryDirectory() as folder:
        for order in ORDERS[1:]:
            for has_unknown in (True, False):
                arpa = texts.write(folder, order, has_unknown)
                model = kenlm.Model(arpa)
                lines = texts.score[-STORED_SENTENCES:]
                stored[os.path.basename(arpa)] = [round(sum(part[0] for part in model.full_scores(line)), 7) for line in lines]
    with open(STORED, "w", encoding="utf-8") as file:
        file.write(json.dumps(stored, indent=0).replace(",\n", ", ").replace("[\n", "[").replace("\n]", "]").replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        unittest.main(argv=[sys.argv[0], "-v", *sys.argv[4:]])
