#!/usr/bin/env python3
"""A keyboard on AArch64: the small library with typing, built by the cross compiler, finds in an emulator the words
that it finds on this machine.

    aarch64_test.py BUILD

BUILD is the folder of the optimised build. Builds the presets `keyboard` and `aarch64` first. Exits with 77 where the
cross compiler, the emulator or Highway for AArch64 is missing.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "wikitext2"
HIGHWAY = pathlib.Path("/usr/lib/aarch64-linux-gnu/libhwy.so")
TOOLS = {"keyboard": ("gcc", []),
         "aarch64": ("aarch64-linux-gnu-gcc",
                     ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E",
                      "LD_LIBRARY_PATH=/usr/lib/aarch64-linux-gnu"])}
SENTENCE = "the president of the United States saw zyxwvly - in 1999"
BUILD = pathlib.Path()


def run(*words):
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT).stdout


class AArch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.work = pathlib.Path(folder.name)
        for preset in TOOLS:
            run("cmake", "--preset", preset)
            run("cmake", "--build", "--preset", preset)
        run(BUILD / "bin" / "kinglet", "convert", DEMO, "--vocab", DEMO / "vocab.txt", "--tokenizer", "wikitext",
            "--bits", "9", "--calibrate", DEMO / "calibration.txt", "-o", cls.work / "m.kgl")

    def test_words_are_those_of_this_machine(self):
        found = {}
        for preset, (compiler, emulator) in TOOLS.items():
            program = self.work / preset
            build = ROOT / "build" / preset
            run(compiler, "-std=c11", "examples/keyboard.c", "-I", "include", build / "libkinglet.so",
                f"-Wl,-rpath,{build}", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-o", program)
            found[preset] = [run(*emulator, program, self.work / "m.kgl", self.work / f"{preset}.words", SENTENCE)
                             for _ in range(2)]
        self.assertEqual(found["aarch64"], found["keyboard"])
        self.assertRegex(found["keyboard"][1], r"\nzyx +zyxwvly")


if __name__ == "__main__":
    missing = [name for name in ("aarch64-linux-gnu-g++", "qemu-aarch64") if not shutil.which(name)]
    missing += [] if HIGHWAY.exists() else ["libhwy-dev:arm64"]
    if missing:
        print(f"not run: needs {', '.join(missing)}")
        sys.exit(77)
    BUILD = pathlib.Path(os.path.abspath(sys.argv.pop(1)))
    unittest.main()
