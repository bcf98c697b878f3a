"""Programs that the comparisons call, and their processor time, which other work on the machine disturbs less than the wall clock."""
import importlib
import resource
import subprocess
import sys


def needed(*names: str) -> list:
    """The modules of these names; ends the program with status 77 (skipped) where one is missing."""
    try:
        return [importlib.import_module(name) for name in names]
    except ImportError as missing:
        print(f"skipped: {missing}", file=sys.stderr)
        sys.exit(77)


def run(arguments: list) -> str:
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def timed(arguments: list) -> tuple:
    """The seconds of processor time that a program took, and what it printed."""
    def so_far() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = so_far()
    out = run(arguments)
    return so_far() - before, out
