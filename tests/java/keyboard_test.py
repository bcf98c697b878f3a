#!/usr/bin/env python3
"""The Java binding against the Python package: each answer with the same words and the same bits.

    keyboard_test.py JNI_LIBRARY SOURCE_DIR COMMAND

Exits with 77 (skipped) where javac is not installed. The package and its library are found by PYTHONPATH and
KINGLET_LIBRARY.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import kinglet_lm

JNI, SOURCE, COMMAND = (pathlib.Path(argument) for argument in sys.argv[1:4])
MODEL_OF = SOURCE / "examples" / "wikitext2"
FACE = "caf\u00e9\U0001F600"


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False)
    if done.returncode != 0:
        output = done.stdout.decode() + done.stderr.decode()
        sys.exit(f"{' '.join(map(str, words))}\nended with {done.returncode}\n{output}")
    return done.stdout.decode()


class Keyboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        work = pathlib.Path(folder.name)
        cls.model = work / "m.kgl"
        run(COMMAND, "convert", MODEL_OF, "-o", cls.model, "--vocab", MODEL_OF / "vocab.txt", "--tokenizer", "wikitext",
            "--bits", "9", "--calibrate", MODEL_OF / "calibration.txt")
        sources = [*(SOURCE / "java" / "kinglet").glob("*.java"), SOURCE / "tests" / "java" / "KeyboardTest.java"]
        run("javac", "-encoding", "UTF-8", "--release", "11", "-Xlint:all,-try", "-Werror", "-d", work / "classes",
            *sources)
        cls.printed = run("java", "-Xcheck:jni", "-Dfile.encoding=UTF-8", f"-Djava.library.path={JNI.parent}", "-cp",
                          work / "classes", "KeyboardTest", cls.model, work / "words").splitlines()
        cls.found = {}
        for line in cls.printed:
            name, *cells = line.split("\t")
            cls.found.setdefault(name, []).append(cells)

    def check(self, name, words):
        expected = [[word.text, word.log_probability, word.cost, word.kind] for word in words]
        found = [[text, float(log), float(cost), kind] for text, log, cost, kind in self.found[name]]
        self.assertEqual(found, expected, name)
        self.assertTrue(found, name)

    def test_answers_are_those_of_python(self):
        model = kinglet_lm.Model(self.model)
        session, keyboard = model.session(), model.keyboard()

        def check(name, touches, k, **options):
            self.check(name, keyboard.find(session, touches, k, **options))

        session.step(model.vocabulary.begin)
        check("start", "", 3)
        check("bytes", "", 3)
        session.step_many(model.tokenize("the president of the "))
        check("letters", "unit", 5)
        check("again", "unit", 5)
        touches = [[("u", 0.5), ("y", 1), ("i", 2)], [("m", 0.25), ("n", 0.5)], [("i", 0), ("\u00e9", 4)]]
        check("touches", touches, 4, capitals="first", before="the", deletion=2)
        check("finished", touches, 4, capitals="all", before="the", deletion=2, finished=True)
        check("many", "", 1000)
        here = session.save()
        session.step_many(model.tokenize("United States of America"))
        check("later", "an", 2)
        session.restore(here)
        for _ in range(2):
            keyboard.learn(FACE, "the")
        keyboard.learn("zyxwvly")
        self.assertEqual(self.found["words"], [["{" + f"{FACE}=2, zyxwvly=1" + "}"]])
        check("own", "cafe", 2, before="the")
        keyboard.unlearn("zyxwvly")
        keyboard.block(["united", FACE])
        check("blocked", "unit", 3, before="the")
        keyboard.block([])
        keyboard.allow(["unity"])
        check("allowed", "unit", 3, before="the")
        keyboard.allow([])
        keyboard.set_weights(0.2, 0.001)
        check("weights", "cafe", 2, before="the")
        keyboard.forget()
        session.reset()
        session.step(model.vocabulary.begin)
        check("reset", "", 3)

    def test_nothing_else_is_printed(self):
        """Neither a word of -Xcheck:jni nor an exception."""
        self.assertEqual([line for line in self.printed if "\t" not in line], [])


if __name__ == "__main__":
    if not shutil.which("javac"):
        print("skipped: needs javac")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
