#!/usr/bin/env python3
"""AArch64 in an emulator: tests of the runtime, the rows of AArch64 of bench/same_bits_check, and a keyboard with the small
library, which finds the words that it finds on this machine.

    aarch64_test.py BUILD

BUILD is the folder of the optimised build: bin/kinglet and bench/same_bits. Builds the presets `neon`, `keyboard` and
`aarch64` first. Exits with 77 where the cross compiler or the emulator is missing.
"""
import os
import pathlib
import tempfile
import unittest

from platform_steps import ROOT, build_folder, build_preset, check_same_bits, convert_demo, need, run

# The emulator with the C library of the cross compiler, as the preset has it.
EMULATOR = ["qemu-aarch64", "-E", "LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib", "-L", "/usr/aarch64-linux-gnu"]
TOOLS = {"keyboard": ("gcc", []), "aarch64": ("aarch64-linux-gnu-gcc", EMULATOR)}
# More than the preset's own, which scripts/test runs; not tests that measure time, which an emulator takes.
FILES = ("^(kernels/(cpu/(panels|vector)|(portable_)?functions|sinusoids|conformance)|runtime/(beam|generator|model|session"
         "|session_draw|session_queries|state|stream|(compress|ngrams|text|typing)/.*))_test")
SENTENCE = "the president of the United States saw zyxwvly - in 1999"
BUILD = pathlib.Path()


class AArch64(unittest.TestCase):
    def test_runtime(self):
        build_preset("neon", f"-DKINGLET_TEST_FILES={FILES}")
        run("ctest", "--preset", "neon", "--parallel", str(os.cpu_count()), cwd=ROOT)

    def test_same_bits(self):
        check_same_bits(self, BUILD, 5, "--neon", build_preset("neon"), "--only", "AArch64")

    def test_words_are_those_of_this_machine(self):
        work = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        convert_demo(BUILD, work / "m.kgl")
        # An emulated search would end at the example's deadline.
        source = (ROOT / "examples" / "keyboard.c").read_text()
        self.assertIn("input.deadline = 50000;", source)
        (work / "keyboard.c").write_text(source.replace("input.deadline = 50000;", "input.deadline = 0;"))
        found = {}
        for preset, (compiler, emulator) in TOOLS.items():
            build = build_preset(preset)
            program = work / preset
            run(compiler, "-std=c11", work / "keyboard.c", "-I", "include", build / "libkinglet.so",
                f"-Wl,-rpath,{build}", "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-o", program, cwd=ROOT)
            found[preset] = [run(*emulator, program, work / "m.kgl", work / f"{preset}.words", SENTENCE)
                             for _ in range(2)]
        self.assertEqual(found["aarch64"], found["keyboard"])
        self.assertRegex(found["keyboard"][1], r"\nzyx +zyxwvly")


if __name__ == "__main__":
    need("aarch64-linux-gnu-g++", "qemu-aarch64")
    BUILD = build_folder()
    unittest.main()
