#!/usr/bin/env python3
"""Every command that writes a file, on a full disk, without the right to write, or without threads.

    full_disk_test.py ROOT KINGLET FAULTS

A full disk: each write in turn, and all after it, fails with ENOSPC (the library FAULTS). A folder
that may not be written to: every file that is to be created is refused with EROFS. Threads: the
n-th and all later ones are refused with EAGAIN. Each run either reports the failure in one line and
leaves no file, or succeeds. `sensitivity` and `filter -o` can continue an output: they may leave
the beginning of it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

MOST = 25  # places of one command that are tried, evenly spread


class Command:
    def __init__(self, name: str, arguments: list[str], goes_on: bool = False):
        self.name, self.arguments, self.goes_on = name, arguments, goes_on


def commands(root: pathlib.Path, folder: pathlib.Path, out: pathlib.Path) -> list[Command]:
    small = root / "tests" / "data" / "micronet-variants" / "one-bin"
    source = [str(small), "--vocab", str(folder / "words")]
    ids = str(small / "tokens.txt")
    model, text = str(folder / "m.kgl"), str(folder / "text")
    shape = ["--bits", "3", "--sparsities", "0.5"]
    made = str(out / "made")
    return [
        Command("convert", ["convert", *source, "-o", made]),
        Command("convert, calibrated",
                ["convert", *source, "--bits", "8", "--calibrate", text, "-o", made]),
        Command("tune-cache", ["tune-cache", model, "--ids", ids, "--cache", "20", "-o", made]),
        Command("report", ["report", model, "--text", text, "--tokens", "5", "-o", made]),
        Command("filter", ["filter", model, text, "--max-ppl", "1e9", "-o", made], goes_on=True),
        Command("filter, scores", ["filter", model, text, "--scores-out", made], goes_on=True),
        Command("sensitivity", ["sensitivity", *source, "--ids", ids, *shape, "-o", made],
                goes_on=True),
        Command("compress", ["compress", model, text, "--block", "1024", "-o", made]),
        Command("decompress", ["decompress", model, text + ".kz", "-o", made]),
        Command("ngram", ["ngram", str(folder / "m.arpa"), "-o", made]),
        Command("plan", ["plan", str(folder / "s.json"), "--size", "40000", "-o", made]),
    ]


class Sweep:
    def __init__(self, kinglet: str, library: str, folder: pathlib.Path, out: pathlib.Path):
        self.kinglet, self.library, self.folder, self.out = kinglet, library, folder, out
        self.faults: list[str] = []

    def run(self, command: Command, kind: str, at: int) -> tuple[int, bytes, int]:
        counter = self.folder / "calls"
        counter.unlink(missing_ok=True)
        environment = dict(os.environ, LD_PRELOAD=self.library, FAULT_KIND=kind, FAULT_AT=str(at),
                           FAULT_CALLS=str(counter))
        arguments = [self.kinglet, *command.arguments]
        if kind == "eagain" and "convert" not in command.name:
            arguments += ["--threads", "4"]
        done = subprocess.run(arguments, env=environment, capture_output=True, check=False,
                              timeout=120, cwd=self.folder)
        calls = int(counter.read_text()) if counter.exists() else 0
        return done.returncode, done.stderr, calls

    def written(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.out)): path.read_bytes()
                for path in sorted(self.out.rglob("*")) if path.is_file()}

    def clear(self) -> None:
        for path in sorted(self.out.rglob("*"), reverse=True):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()

    def check(self, command: Command, kind: str, at: int) -> bool:
        """Whether the run was refused."""
        self.clear()
        code, error, _ = self.run(command, kind, at)
        where = f"{command.name}, {kind} at {at}"
        if code == 0:
            return False
        lines = error.count(b"\n")
        if code not in (1, 2) or lines != 1:
            self.faults.append(f"{where}: expected one line, found {code}, {error!r}")
        left = self.written()
        if left and not command.goes_on:
            self.faults.append(f"{where}: expected nothing left, found {sorted(left)}")
        return True

    def sweep(self, command: Command) -> None:
        self.clear()
        code, error, calls = self.run(command, "none", 1)
        if code != 0 or calls == 0 or not self.written():
            self.faults.append(f"{command.name}: expected success, found {code}, {error!r}")
            return
        step = max(1, calls // MOST)
        places = range(1, calls + 1, step)
        full = sum(self.check(command, "enospc", at) for at in places)
        read_only = self.check(command, "erofs", 1)
        if not read_only:
            self.faults.append(f"{command.name}: expected a refusal of a folder without rights")
        report = f"{command.name}: {full} of {len(places)} full disks and a read-only one refused"
        if command.name not in ("ngram", "plan"):  # those have no threads
            few = sum(self.check(command, "eagain", at) for at in range(1, 5))
            report += f", {few} of 4 runs without threads"
        print(report)


def main() -> int:
    root, kinglet, library = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        out = folder / "out"
        out.mkdir()
        small = root / "tests" / "data" / "micronet-variants" / "one-bin"
        words = (small / "vocab.txt").read_text(encoding="utf-8").split()
        words[1] = "<eos>"  # lines end with it
        (folder / "words").write_text("\n".join(words) + "\n", encoding="utf-8")
        (folder / "text").write_text(" ".join(words[3:23]) + "\n" + " ".join(words[5:9]) + "\n",
                                     encoding="utf-8")
        (folder / "m.arpa").write_text("\\data\\\nngram 1=3\n\\1-grams:\n-1 <s>\n-1 </s>\n-1 a\n"
                                       "\\end\\\n", encoding="utf-8")
        for arguments in (["convert", str(small), "--vocab", str(folder / "words"), "-o",
                           str(folder / "m.kgl")],
                          ["sensitivity", str(small), "--ids", str(small / "tokens.txt"), "--bits",
                           "3", "--sparsities", "0.5", "-o", str(folder / "s.json")],
                          ["compress", str(folder / "m.kgl"), str(folder / "text"), "--block",
                           "1024"]):
            subprocess.run([kinglet, *arguments], check=True, stdout=subprocess.DEVNULL)
        before = sorted(path.name for path in folder.iterdir())
        sweep = Sweep(kinglet, library, folder, out)
        for command in commands(root, folder, out):
            sweep.sweep(command)
        left = sorted(path.name for path in folder.iterdir() if path.name != "calls")
        if left != before:
            sweep.faults.append(f"expected no other files, found {left}")
    print("\n".join(sweep.faults[:20]))
    return 1 if sweep.faults else 0


if __name__ == "__main__":
    sys.exit(main())
