#!/usr/bin/env python3
"""Reads and writes that are short, interrupted, or fail (EIO, ENOSPC) at each call in turn.

    io_faults_test.py ROOT KINGLET FAULTS

Short and interrupted calls change nothing: the output has the same bytes. After a failing call the
command reports it in one line and leaves either no file or the complete file under the final name.
"""

import os
import pathlib
import subprocess
import sys
import tempfile


class Run:
    def __init__(self, faults: str, folder: pathlib.Path, arguments: list[str]):
        self.faults, self.folder, self.arguments = faults, folder, arguments

    def __call__(self, kind: str, at: int) -> tuple[subprocess.CompletedProcess[bytes], int]:
        counter = self.folder / "calls"
        counter.unlink(missing_ok=True)
        environment = dict(os.environ, LD_PRELOAD=self.faults, FAULT_KIND=kind, FAULT_AT=str(at),
                           FAULT_CALLS=str(counter))
        done = subprocess.run(self.arguments, env=environment, capture_output=True, check=False,
                              timeout=120)
        return done, int(counter.read_text()) if counter.exists() else 0


def sweep(name: str, run: Run, output: pathlib.Path | None) -> list[str]:
    def result(done: subprocess.CompletedProcess[bytes]) -> bytes:
        return output.read_bytes() if output is not None and output.exists() else done.stdout

    faults = []
    good, calls = run("none", 1)
    expected = result(good)
    if good.returncode != 0 or calls == 0:
        return [f"{name}: expected success and some calls, found {good} and {calls}"]
    for kind in ("short", "eintr"):
        if output is not None:
            output.unlink()
        done, _ = run(kind, 1)
        if done.returncode != 0 or result(done) != expected:
            faults.append(f"{name}, {kind}: expected the same bytes, found {done}")
    failed = 0
    for kind in ("eio", "enospc"):
        for at in range(1, calls + 1):
            if output is not None:
                output.unlink(missing_ok=True)
            done, _ = run(kind, at)
            if done.returncode == 0:
                if result(done) != expected:
                    faults.append(f"{name}, {kind} at {at}: expected the same bytes")
                continue
            failed += 1
            if done.returncode not in (1, 2) or done.stderr.count(b"\n") != 1:
                faults.append(f"{name}, {kind} at {at}: expected one line, found {done}")
            if output is not None and output.exists() and output.read_bytes() != expected:
                faults.append(f"{name}, {kind} at {at}: expected no partial file")
    print(f"{name}: {calls} calls, {failed} of {2 * calls} runs refused")
    return faults


def main() -> int:
    root, kinglet, library = sys.argv[1:]
    checkpoint = f"{root}/tests/data/kinglet-torch/full/model.pt"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "m.kgl"
        convert = [kinglet, "convert", checkpoint, "-o", str(model)]
        faults = sweep("convert", Run(library, folder, convert), model)
        subprocess.run(convert, check=True, stdout=subprocess.DEVNULL)
        ids = folder / "ids"
        ids.write_text("1 2 3 4 5\n", encoding="ascii")
        score = [kinglet, "score", str(model), "--ids", str(ids)]
        faults += sweep("score", Run(library, folder, score), None)
        left = sorted(path.name for path in folder.iterdir())
        if left != ["calls", "ids", "m.kgl"]:
            faults.append(f"expected no other files, found {left}")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
