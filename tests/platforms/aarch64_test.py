#!/usr/bin/env python3
"""kinglet for Linux on AArch64: every test of the runtime, and scores of six models, in qemu.

    aarch64_test.py BUILD

BUILD is the folder of the optimised build: bin/kinglet and bench/same_bits. Exits with 77 where the cross compiler or the
emulator is missing.
"""
import os
import pathlib
import unittest

from platform_steps import ROOT, build_folder, build_preset, check_same_bits, need, run

BUILD = pathlib.Path()


class AArch64(unittest.TestCase):
    def test_runtime(self):
        build_preset("aarch64")
        run("ctest", "--preset", "aarch64", "--parallel", str(os.cpu_count()), cwd=ROOT)

    def test_same_bits(self):
        check_same_bits(self, BUILD, 5, "--neon", build_preset("aarch64"), "--only", "AArch64")


if __name__ == "__main__":
    need("aarch64-linux-gnu-g++", "qemu-aarch64")
    BUILD = build_folder()
    unittest.main()
