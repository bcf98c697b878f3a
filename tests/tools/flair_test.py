"""Texts of flair's models: `score` gives the perplexity and `embed --spans` the vectors that flair computed (tests/data/flair),
also for models that read a text from its end.

    flair_test.py COMMAND DATA

COMMAND is the built kinglet, DATA the folder tests/data.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COMMAND, DATA = sys.argv[1], pathlib.Path(sys.argv[2], "flair")
FOLDER = tempfile.TemporaryDirectory(prefix="kinglet-flair-")
PASSAGE, SPANS = DATA / "passage.txt", DATA / "spans.txt"
VARIANTS = dict(line.split("\t") for line in (DATA / "perplexity.tsv").read_text().splitlines())


def run(*arguments, text=None):
    return subprocess.run([COMMAND, *map(str, arguments)], input=text, capture_output=True, encoding="utf-8", check=False)


def answers(*arguments, text=None):
    done = run(*arguments, "--json", text=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def model_of(variant, *options):
    path = pathlib.Path(FOLDER.name, "-".join([variant, *options]).replace("/", "_") + ".kgl")
    if not path.exists():
        done = run("convert", DATA / variant / "model.pt", "-o", path, *options)
        assert done.returncode == 0, done.stderr
    return path


def vectors_of(variant, *options):
    """(line, word, vector) of each word of spans.txt."""
    return [(row["line"], row["word"], row["vector"])
            for row in answers("embed", model_of(variant), "--spans", SPANS, *options)]


class FlairTest(unittest.TestCase):
    def test_score_is_the_perplexity_of_flair(self):
        for variant, expected in VARIANTS.items():
            summary = answers("score", model_of(variant), "--text", PASSAGE, "--backend", "ref64")[-1]
            self.assertAlmostEqual(summary["ppl"] / float(expected), 1, delta=1e-12, msg=variant)

    def test_spans_are_the_vectors_of_flair(self):
        for variant in VARIANTS:
            lines = [line.split("\t") for line in (DATA / variant / "spans.tsv").read_text().splitlines()]
            for backend, most in (("ref64", 1e-12), ("cpu", 1e-5)):
                found = vectors_of(variant, "--backend", backend)
                self.assertEqual([(str(line), word) for line, word, _ in found],
                                 [(line, word) for line, word, _ in lines])
                for (_, _, vector), (_, _, expected) in zip(found, lines):
                    expected = [float(number) for number in expected.split()]
                    self.assertLess(max(map(lambda a, b: abs(a - b), vector, expected)), most, variant)
                    self.assertEqual(len(vector), len(expected))

    def test_spans_of_fewer_bits_stay_near(self):
        exact = vectors_of("backward", "--backend", "ref64")
        lines = answers("embed", model_of("backward", "--bits", "8"), "--spans", SPANS)
        for (_, _, vector), row in zip(exact, lines):
            self.assertLess(max(map(lambda a, b: abs(a - b), vector, row["vector"])), 0.05)

    def test_spaces_between_words_count_once(self):
        once, twice = (answers("embed", model_of("backward"), "--spans", "-", text=text)
                       for text in ("nie ein\n", "  nie   ein "))
        self.assertEqual([row["vector"] for row in once], [row["vector"] for row in twice])
        done = run("embed", model_of("forward"), "--spans", "-", text="\nnie\n")
        self.assertTrue(done.stdout.startswith("2\tnie\t"), done.stdout)

    def test_lines_are_read_from_their_ends(self):
        """A line read backward is its mirror image read forward."""
        backward = model_of("backward")
        lines = ["nie ein", "Bär"]
        options = ("--lines", "--no-bos", "--no-eos", "--text", "-", "--backend", "ref64")
        found = answers("score", backward, *options, text="".join(line + "\n" for line in lines))
        for line, row in zip(lines, found):
            (tokens,) = answers("tokenize", backward, text=line)
            self.assertEqual(tokens["pieces"], list(line[::-1]))
            path = pathlib.Path(FOLDER.name, "ids.txt")
            path.write_text(" ".join(map(str, tokens["ids"])))
            summary = answers("score", backward, "--ids", path, "--backend", "ref64")[-1]
            self.assertAlmostEqual(row["logprob"], -summary["nll"] * summary["scored"], delta=1e-12)

    def test_a_document_is_read_from_its_end(self):
        kept = run("filter", model_of("backward"), "--field", "text", "--max-ppl", "1e9", "--annotate", "--backend", "ref64",
                   text=json.dumps({"text": PASSAGE.read_text()}) + "\n")
        self.assertAlmostEqual(json.loads(kept.stdout)["kinglet"]["ppl"] / float(VARIANTS["backward"]), 1, delta=1e-12)

    def test_another_tokenizer_keeps_the_direction(self):
        model = model_of("backward", "--tokenizer", "characters", "--lowercase")
        (facts,) = answers("inspect", model)
        self.assertEqual(facts["tokenizer"], {"kind": "characters", "lower_case": True, "reads_backward": True})

    def test_what_follows_a_text_is_refused(self):
        backward = model_of("backward")
        for command in (("generate",), ("predict",), ("type", "--tune", PASSAGE), ("score", "--text", PASSAGE, "--surprisal")):
            done = run(command[0], backward, *command[1:], text="ein\n")
            self.assertEqual(done.returncode, 1, command)
            self.assertRegex(done.stderr, r"expected a model that reads forward, found one that reads a text from its end")

    def test_spans_need_a_model_of_characters(self):
        other = pathlib.Path(FOLDER.name, "ids.kgl")
        run("convert", DATA.parent / "fastai" / "untied", "-o", other)
        done = run("embed", other, "--spans", SPANS)
        self.assertIn("embed: --spans: expected a model of characters, a newline among them, found another", done.stderr)
        done = run("embed", model_of("forward"), "--spans", SPANS, "--classify")
        self.assertIn("usage: --spans: expected no --classify with it, found both", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
