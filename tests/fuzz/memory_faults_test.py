#!/usr/bin/env python3
"""Commands for which memory runs out, in any allocator: operator new, malloc, calloc or mmap.

    memory_faults_test.py ROOT KINGLET FAULTS

The n-th allocation after main began fails (the library FAULTS), alone or with all later ones. Each
run succeeds, or reports the failure in one line and leaves no output file or, of `sensitivity`, an
output that it can continue. About 30 allocations of a command are tried, or as many as
KINGLET_FAULT_PLACES gives ("all": each).
"""

import os
import pathlib
import subprocess
import sys
import tempfile


class Sweep:
    def __init__(self, kinglet: str, library: str, folder: pathlib.Path):
        self.kinglet, self.library, self.folder = kinglet, library, folder
        self.output = folder / "out"
        self.faults: list[str] = []
        places = os.environ.get("KINGLET_FAULT_PLACES", "30")
        self.places = 10**9 if places == "all" else int(places)

    def run(self, arguments: list[str], kind: str, at: int) -> tuple[int, bytes, bytes, int]:
        counter = self.folder / "calls"
        counter.unlink(missing_ok=True)
        self.output.unlink(missing_ok=True)
        environment = dict(os.environ, LD_PRELOAD=self.library, FAULT_KIND=kind, FAULT_AT=str(at),
                           FAULT_CALLS=str(counter))
        done = subprocess.run([self.kinglet, *arguments], env=environment, capture_output=True,
                              check=False, timeout=120, cwd=self.folder)
        calls = int(counter.read_text()) if counter.exists() else 0
        result = self.output.read_bytes() if self.output.exists() else done.stdout
        return done.returncode, result, done.stderr, calls

    def sweep(self, name: str, arguments: list[str], goes_on: bool = False) -> None:
        code, expected, error, allocations = self.run(arguments, "enomem", 10**9)
        if code != 0 or allocations == 0 or not expected:
            self.faults.append(f"{name}: expected success, found {code}, {error!r}")
            return
        refused = tried = 0
        for kind in ("enomem", "enomem1"):
            for at in range(1, allocations + 1, max(1, allocations // self.places)):
                code, result, error, _ = self.run(arguments, kind, at)
                where = f"{name}, {kind} at {at} of {allocations}"
                tried += 1
                if code == 0:
                    if result != expected:
                        self.faults.append(f"{where}: expected the same answer")
                    continue
                refused += 1
                if code != 1 or error.count(b"\n") != 1 or b"memory" not in error:
                    self.faults.append(f"{where}: expected a line about memory, found {code}, "
                                       f"{error!r}")
                if self.output.exists() and not goes_on and self.output.read_bytes() != expected:
                    self.faults.append(f"{where}: expected no partial file")
        print(f"{name}: {allocations} allocations, {refused} of {tried} runs refused")


def main() -> int:
    data, kinglet, library = pathlib.Path(sys.argv[1]) / "tests" / "data", sys.argv[2], sys.argv[3]
    small = data / "micronet-variants" / "one-bin"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        words = (small / "vocab.txt").read_text(encoding="utf-8").split()
        words[1] = "<eos>"  # lines end with it
        (folder / "words").write_text("\n".join(words) + "\n", encoding="utf-8")
        (folder / "text").write_text(" ".join(words[3:9]) + "\n", encoding="utf-8")
        pairs = (data / "opennmt" / "plain" / "pairs.txt").read_text(encoding="utf-8")
        (folder / "source").write_text(pairs.split(" ||| ", 1)[0] + "\n", encoding="utf-8")
        ids = str(small / "tokens.txt")
        source = [str(small), "--vocab", "words"]
        measure = ["sensitivity", *source, "--ids", ids, "--bits", "3", "--sparsities", "0.5", "-o"]
        for arguments in (["convert", *source, "-o", "m.kgl"],
                          ["convert", str(data / "opennmt" / "plain"), "-o", "t.kgl"],
                          [*measure, "s.json"]):
            subprocess.run([kinglet, *arguments], check=True, stdout=subprocess.DEVNULL, cwd=folder)
        sweep = Sweep(kinglet, library, folder)
        sweep.sweep("convert", ["convert", *source, "--bits", "8", "--calibrate", "text", "-o",
                                "out"])
        sweep.sweep("inspect --recipe-skeleton",
                    ["inspect", str(data / "kinglet-torch" / "dpq-sx" / "model.pt"),
                     "--recipe-skeleton"])
        sweep.sweep("sensitivity", [*measure, "out"], goes_on=True)
        sweep.sweep("plan", ["plan", "s.json", "--size", "40000", "-o", "out"])
        sweep.sweep("score", ["score", "m.kgl", "--text", "text", "--json"])
        sweep.sweep("translate", ["translate", "t.kgl", "--ids", "source", "--max-length", "9"])
        sweep.sweep("verify", ["verify", "m.kgl"])
    print("\n".join(fault[:300] for fault in sweep.faults[:20]))
    return 1 if sweep.faults else 0


if __name__ == "__main__":
    sys.exit(main())
