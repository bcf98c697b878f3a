#!/usr/bin/env python3
"""How much faster `kinglet score --lines` is with many lanes than in one, where the words of each line go together.

    bench/lines_in_lanes.py KINGLET MODEL.kgl TEXT [--lanes 64] [--lines 2000] [--pairs 5]

Takes TEXT's first lines that are not empty. In each pair both score them once, in an order that changes from pair to pair; the figure is
the median over the pairs of the ratio of their times. Exits with 1 if the two print different texts.
"""
import argparse
import statistics
import subprocess
import sys
import tempfile
import time


def score(kinglet: str, model: str, text: str, lanes: int) -> tuple:
    begin = time.perf_counter()
    out = subprocess.run([kinglet, "score", model, "--lines", "--text", text, "--lanes", str(lanes), "--json"], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return time.perf_counter() - begin, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("kinglet", "model", "text"):
        parser.add_argument(name)
    for name, value in (("--lanes", 64), ("--lines", 2000), ("--pairs", 5)):
        parser.add_argument(name, type=int, default=value)
    options = parser.parse_args()
    with open(options.text, "rb") as file:
        lines = [line for line in file if line.strip()][:options.lines]
    seconds: dict[int, list] = {1: [], options.lanes: []}
    with tempfile.NamedTemporaryFile() as text:
        text.write(b"".join(lines))
        text.flush()
        for pair in range(options.pairs):
            outputs = set()
            for lanes in list(seconds)[::1 if pair % 2 else -1]:
                took, out = score(options.kinglet, options.model, text.name, lanes)
                seconds[lanes].append(took)
                outputs.add(out)
            if len(outputs) != 1:
                sys.exit(f"{options.lanes} lanes print something else than one")
    ratios = [one / many for one, many in zip(seconds[1], seconds[options.lanes])]
    print(f"{len(lines)} lines: {options.lanes} lanes {statistics.median(ratios):.3f} times as many lines per second as one (from"
          f" {min(ratios):.3f} to {max(ratios):.3f}, {options.pairs} pairs); median seconds: {statistics.median(seconds[1]):.2f} and"
          f" {statistics.median(seconds[options.lanes]):.2f}")


if __name__ == "__main__":
    main()
