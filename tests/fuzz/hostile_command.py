#!/usr/bin/env python3
"""The command, built with sanitizers, reads and converts files of which a few bytes were changed.

    hostile_command.py COMMAND [COUNT [FIRST]]

Takes small files of tests/data: checkpoints, tokenizers, vocabularies, recipes, model files. A
number names the same change on every machine. Each run must end within 60 seconds, with status 0,
1 or 2, a refusal of one line, and without a word of a sanitizer. Prints how many runs ended how;
exits 1 after a finding, whose file is kept.
"""

import collections
import os
import pathlib
import random
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
LARGEST = 200_000
TELLING = [0, 1, 0x7F, 0x80, 0xFF]
CHECKPOINTS = {".pt", ".pth", ".ckpt", ".pkl", ".npz", ".safetensors", ".bin", ".mod"}


def changed(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(6)
        if kind == 0:
            del data[at:at + chance.randint(1, 16)]
        elif kind == 1:
            data[at:at] = data[at:at + chance.randint(1, 16)]
        elif kind == 2:
            data = data[:at]
        elif kind == 3:
            data[at] = chance.choice(TELLING)
        else:
            data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def command_for(path: pathlib.Path, file: str, out: str, chance: random.Random) -> list[str]:
    if path.suffix in CHECKPOINTS:
        return chance.choice([["inspect", file], ["inspect", "--recipe-skeleton", file],
                              ["convert", file, "-o", out]])
    if path.parent.name == "model_file":
        return chance.choice([["verify", file], ["inspect", file], ["count", file]])
    return ["tokenize", file]


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    command = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    paths = sorted(path for path in DATA.rglob("*")
                   if path.is_file() and path.stat().st_size <= LARGEST)
    checkpoints = [path for path in paths if path.suffix in CHECKPOINTS]
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=1")
    ends: collections.Counter[str] = collections.Counter()
    findings = 0
    for number in range(first, first + count):
        chance = random.Random(number)
        path = chance.choice(checkpoints if chance.random() < 0.7 else paths)
        with tempfile.TemporaryDirectory() as folder:
            # Next to its neighbours: some families read a configuration or a vocabulary too.
            for near in path.parent.iterdir():
                if near.is_file() and near.stat().st_size <= LARGEST:
                    (pathlib.Path(folder) / near.name).write_bytes(near.read_bytes())
            file = pathlib.Path(folder) / path.name
            file.write_bytes(changed(path.read_bytes(), chance))
            arguments = command_for(path, str(file), str(pathlib.Path(folder) / "out.kgl"), chance)
            try:
                run = subprocess.run([command, *arguments], input=b"ab a</w>b the\n",
                                     capture_output=True, timeout=60, env=environment, check=False)
                status, error = run.returncode, run.stderr.decode("utf-8", "replace")
            except subprocess.TimeoutExpired:
                status, error = -1, "expected an end within 60 seconds"
            refusal = [line for line in error.splitlines() if not line.startswith("kinglet: warning")]
            good = (status in (0, 1, 2) and "Sanitizer" not in error
                    and "runtime error" not in error and (status == 0 or len(refusal) >= 1))
            ends[f"status {status}"] += 1
            if not good:
                findings += 1
                kept = pathlib.Path(tempfile.gettempdir()) / f"finding-{number}{path.suffix}"
                kept.write_bytes(file.read_bytes())
                print(f"finding {number}: {' '.join(arguments[:1])} {path}: {status}\n{error[:2000]}\n"
                      f"kept as {kept}")
    print(f"{count} runs, {findings} findings: " +
          ", ".join(f"{end}: {runs}" for end, runs in sorted(ends.items())))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
