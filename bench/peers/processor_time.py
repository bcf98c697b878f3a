"""Programs that the comparisons call, and their processor time, which other work on the machine disturbs less than the wall clock."""
import resource
import subprocess


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
