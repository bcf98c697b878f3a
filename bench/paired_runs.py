"""What `kinglet bench` prints, and interleaved measurements of two programs, for the scripts in this folder."""
import json
import statistics
import subprocess
from collections.abc import Callable


def measured(command: str, model: str, options: list, environment: dict | None = None) -> dict:
    """The first line of `COMMAND bench MODEL --json OPTIONS..`."""
    out = subprocess.run([command, "bench", model, "--json", *options], check=True, text=True, env=environment,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out.splitlines()[0])


def interleaved(old: Callable[[], dict], new: Callable[[], dict], pairs: int) -> tuple[list, list]:
    """What each side returned in each pair. The order changes from pair to pair, so that the machine's speed affects both alike."""
    found: tuple[list, list] = ([], [])
    for pair in range(pairs):
        for side, ask in list(enumerate((old, new)))[::1 if pair % 2 else -1]:
            found[side].append(ask())
    return found


def times(found: list) -> list:
    """The median microseconds of a token, of each measurement."""
    return [one["us_per_token"]["p50"] for one in found]


def ratios(old: list, new: list) -> str:
    """The median of the ratios new / old of two lists of times, the least and the largest."""
    found = [after / before for before, after in zip(old, new)]
    return f"{statistics.median(found):.4f} (from {min(found):.3f} to {max(found):.3f})"
