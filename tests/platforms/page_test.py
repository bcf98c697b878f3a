#!/usr/bin/env python3
"""The page that scripts/page makes, used in Chromium: its words are the native library's, and it fits a phone.

    page_test.py BUILD [--screenshots FOLDER]

BUILD is the folder of the optimised build. Makes the page first. Exits with 77 where emscripten, node 20 or Chromium is missing.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "build" / "page"
TEXT = ROOT / "examples" / "wikitext2" / "passage.txt"
MOST_BYTES = 4_000_000
BUILD, FOLDER = pathlib.Path(), []

# Words and bits as page.js asks for them, after the same keys.
NATIVE = """
import json, math, sys
import kinglet_lm
model = kinglet_lm.Model(sys.argv[1])
session, keyboard = model.session(), model.keyboard()
session.step(model.vocabulary.begin)
first = [word.text for word in keyboard.find(session, "", k=3, capitals="first")]
ids = model.tokenize("The city of New ")
bits = [-score / math.log(2) for score in session.step_many(ids)]
print(json.dumps({"first": first, "bits": bits, "after": [word.text for word in keyboard.find(session, "", k=3)]}))
"""


def run(*words, environment=None):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, **(environment or {})})
    return done.stdout


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(ROOT / "scripts" / "page")
        cls.found = json.loads(run("node", "--experimental-websocket", ROOT / "tests" / "platforms" / "page_steps.mjs",
                                   PAGE / "index.html", TEXT, *FOLDER))
        native = {"KINGLET_LIBRARY": str(BUILD / "libkinglet.so"), "PYTHONPATH": str(ROOT / "python")}
        cls.native = json.loads(run(sys.executable, "-c", NATIVE, PAGE / "9bit.kgl", environment=native))

    def test_words_are_the_native_ones(self):
        self.assertEqual(self.found["first"], self.native["first"])
        self.assertEqual(self.found["after"], self.native["after"])
        self.assertEqual(self.found["completed"][0], "York")
        self.assertEqual(self.found["mistyped"][0], "York")

    def test_a_word_is_taken_with_the_keyboard_alone(self):
        self.assertEqual(self.found["text"], "The city of New York ")
        self.assertEqual(self.found["focus"], "text")
        self.assertEqual(self.found["status"], "York added")
        self.assertEqual(self.found["unnamed"], 0)

    def test_surprise(self):
        self.assertEqual(len(self.found["bits"]), 5)
        for found, expected in zip(self.found["bits"], self.native["bits"]):
            self.assertAlmostEqual(found, expected, delta=0.051)  # one decimal place

    def test_fits_and_asks_for_nothing(self):
        for width, needed in self.found["widths"]:
            self.assertLessEqual(needed, width)
        self.assertEqual(self.found["requests"], 0)
        self.assertLess((PAGE / "index.html").stat().st_size, MOST_BYTES)

    def test_times(self):
        print(f"\nmicroseconds in Chromium, medians: {self.found['times']}")
        self.assertLess(self.found["times"]["best"], 30_000)  # a busy machine too


if __name__ == "__main__":
    missing = [name for name in ("emcmake", "node", "chromium") if not shutil.which(name)]
    if missing:
        print(f"not run: needs {', '.join(missing)}")
        sys.exit(77)
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    if "--screenshots" in sys.argv:
        at = sys.argv.index("--screenshots")
        FOLDER = [pathlib.Path(sys.argv[at + 1]).resolve()]
        del sys.argv[at:at + 2]
    unittest.main()
