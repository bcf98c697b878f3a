"""What the tests of platforms share."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "wikitext2"
SAME_BITS = re.compile(r"\n(\d+) rows, 0 scores with another bit\n$")


def run(*words, text=True, status=0, timeout=None, **options):
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=text, check=False, timeout=timeout, **options)
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"").decode(errors="replace")
        raise AssertionError(f"{' '.join(words)}\nhung: expected its end within {timeout} s, found it waiting\n{printed}") from None
    if done.returncode != status:
        raise AssertionError(f"{' '.join(words)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def without_times(report):
    """A command's report without what differs between two runs."""
    return re.sub(r"(, )?[0-9.]+ us per token|\"(us_per_token|seconds)\":[0-9.e+-]+", "", report)


def need(*programs):
    """Ends a test where a program is missing."""
    for program in programs:
        if not shutil.which(program):
            print(f"not run: needs {program}")
            sys.exit(77)


def build_folder():
    """The folder of the optimised build, the first argument."""
    return pathlib.Path(sys.argv.pop(1)).resolve()


def convert_demo(build, model):
    run(build / "bin" / "kinglet", "convert", DEMO, "--vocab", DEMO / "vocab.txt", "--tokenizer", "wikitext", "--bits", "9",
        "--calibrate", DEMO / "calibration.txt", "-o", model)


def build_preset(preset, *options):
    """The preset's programs, configured with these options; returns their folder."""
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", str(os.cpu_count()))
    run("cmake", "--preset", preset, *options, cwd=ROOT)
    run("cmake", "--build", "--preset", preset, "--parallel", jobs, cwd=ROOT)
    return ROOT / "build" / preset


def check_same_bits(case, build, rows, *options):
    """bench/same_bits_check makes as many rows, more where the processor has more, and finds no score with another bit."""
    done = run(ROOT / "bench" / "same_bits_check", build, "--tokens", "200", *options)
    case.assertRegex(done, SAME_BITS)
    case.assertGreaterEqual(int(SAME_BITS.search(done)[1]), rows, done)
    print(f"\n{done}")
