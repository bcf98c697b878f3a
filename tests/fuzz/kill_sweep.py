#!/usr/bin/env python3
"""Ends commands that write a file at random moments (kill -9): under the final name there is either
nothing or the whole file.

    kill_sweep.py KINGLET [KILLS]

Prints a line for each command: kills, runs that ended before, whole files seen, partial ones.
"""

import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIANT = ROOT / "tests" / "data" / "kinglet-torch"


def commands(kinglet: str, folder: pathlib.Path) -> dict[str, tuple[list[str], str]]:
    """The arguments, and the file that they write."""
    def convert(name: str) -> tuple[list[str], str]:
        checkpoint = str(VARIANT / name / "model.pt")
        return [kinglet, "convert", checkpoint, "-o", str(folder / f"{name}.kgl")], f"{name}.kgl"

    return {f"convert {name}": convert(name) for name in ("full", "everything")}


def sweep(arguments: list[str], output: pathlib.Path, kills: int) -> tuple[int, int, int]:
    generator = random.Random(1)
    begin = time.monotonic()
    subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL)
    length = time.monotonic() - begin
    whole = output.read_bytes()
    ended = complete = partial = 0
    for _ in range(kills):
        output.unlink(missing_ok=True)
        child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(generator.random() * length * 1.05)
        ended += child.poll() is not None
        child.send_signal(signal.SIGKILL)
        child.wait()
        if output.exists():
            same = output.read_bytes() == whole
            complete += same
            partial += not same
    return ended, complete, partial


def main() -> int:
    kinglet = sys.argv[1]
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for command, (arguments, output) in commands(kinglet, folder).items():
            ended, complete, partial = sweep(arguments, folder / output, kills)
            print(f"{command}: {kills} kills, {ended} after its end, {complete} whole files, "
                  f"{partial} partial ones")
            failed |= partial > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
