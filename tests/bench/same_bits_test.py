#!/usr/bin/env python3
"""bench/same_bits_check finds no number with another bit, and counts those that a damaged program writes.

    same_bits_test.py BUILD
"""
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "bench" / "same_bits_check"
BUILD = pathlib.Path(sys.argv[1])
SMALL = ["--tokens", "40", "--few", "20"]
FAMILIES = 6

# Runs the program; with two threads the lowest bit of the fifth number becomes another.
DAMAGED = """#!/bin/sh
{program} "$@" || exit $?
case "$*" in *threads=2*)
  {python} -c 'import sys; f = open(sys.argv[1], "r+b"); f.seek(32); b = f.read(1)[0]; f.seek(32); f.write(bytes([b ^ 1]))' "$2";;
esac
"""


def check(build):
    done = subprocess.run([sys.executable, "-B", CHECK, build, *SMALL], capture_output=True, text=True, check=False)
    rows = {cells[1].strip(): cells[4:-1] for cells in (line.split("|") for line in done.stdout.splitlines()) if len(cells) > 4}
    return done, rows


class SameBits(unittest.TestCase):
    def test_no_bit_differs(self):
        done, rows = check(BUILD)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout, r"\n\d+ rows, 0 scores with another bit\n$")
        for name in ("`ref`, the readable code", "KINGLET_CPU=scalar", "7 threads", "3 lanes", "64 lanes", "emulated device"):
            self.assertIn(name, rows)
            cells = [cell.strip() for cell in rows[name]]
            self.assertEqual(len(cells), FAMILIES)
            # The emulated device has no masked models.
            self.assertGreaterEqual(cells.count("0"), FAMILIES - ("device" in name), name)
        # A row is in the table or among what was not run.
        for name in ("avx2", "avx512", "avx512vnni", "AArch64 in qemu, KINGLET_CPU=neon"):
            in_table = any(name in row for row in rows)
            self.assertTrue(in_table or re.search(rf"not run here .*{name}: ", done.stdout), name)

    def test_a_bit_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "bin").symlink_to((BUILD / "bin").resolve())
            (build / "bench").mkdir()
            program = build / "bench" / "same_bits"
            program.write_text(DAMAGED.format(program=shlex.quote(str((BUILD / "bench" / "same_bits").resolve())),
                                              python=shlex.quote(sys.executable)))
            program.chmod(0o755)
            done, rows = check(build)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([cell.strip() for cell in rows["2 threads"]], ["1"] * FAMILIES)
        self.assertTrue(done.stdout.endswith(f" {FAMILIES} scores with another bit\n"), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
