#!/usr/bin/env python3
"""The command, built with sanitizers, reads and converts files that were changed.

    hostile_command.py COMMAND COUNT [FIRST [MUTANTS]]

A number names the same change on every machine. Changed are: bytes of a checkpoint; bytes of a file
in a checkpoint's archive, whose checksum is right again; a configuration, vocabulary or recipe next
to a checkpoint that is then converted; a tokenizer's file; and model files with valid digests, which
fuzz_write_seeds wrote to MUTANTS. Each run must end within 60 seconds and 2 GiB, with status 0, 1 or
2, a refusal of one line without control characters, and without a word of a sanitizer. Prints how
many runs of each kind ended how; exits 1 after a finding, whose folder is kept.
"""

import collections
import io
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

DATA = pathlib.Path(__file__).resolve().parent.parent / "data"
LARGEST = 200_000
TELLING = [0, 1, 0x7F, 0x80, 0xFF]
CHECKPOINTS = {".pt", ".pth", ".ckpt", ".pkl", ".npz", ".safetensors", ".bin", ".mod"}
SETTINGS = {".json", ".yaml", ".txt", ".py", ".index", ".npy"}
TEXT = b"ab a</w>b the 12 \xe2\x96\x81 [UNK] \xc3\xa9\xff ||| x\nthe\n"


def field(number: int, value: bytes | int) -> bytes:
    """A field of a protocol buffer."""
    def varint(left: int) -> bytes:
        return (bytes([left & 127 | 128]) + varint(left >> 7)) if left > 127 else bytes([left])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sentence_pieces(algorithm: int) -> bytes:
    pieces = [("<unk>", 0, 2), ("<s>", 0, 3), ("</s>", 0, 3), ("\u2581", -1, 1), ("a", -2, 1),
              ("b", -3, 1), ("ab", -1.5, 5), ("\u2581a", -2.5, 1), ("the", -1, 4)]
    made = b"".join(field(1, field(1, text.encode()) + b"\x15" + struct.pack("<f", score) +
                          field(3, kind)) for text, score, kind in pieces)
    units = struct.pack("<16I", 1 << 10, *(0x161 if i == 0x60 % 15 else 0 for i in range(15)))
    map_of_characters = struct.pack("<I", len(units)) + units + b"a\0bc\0"
    return made + field(2, field(3, algorithm)) + field(3, field(2, map_of_characters) +
                                                        field(3, 1) + field(4, 1) + field(5, 1))


TOKENIZERS = {
    "unigram.model": sentence_pieces(1),
    "bpe.model": sentence_pieces(2),
    "codes": b"#version: 0.2\na b</w>\nb </w>\n< /w>\na b\nt h\nth e</w>\n",
    "codes.old": b"#version: 0.1\na b\nb </w>\nab </w>\n< /w>\n",
    "vocab.txt": b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##b\n##</w>\nthe\n\xc3\xa9\n",
}


def changed(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        if not data:
            break
        at = chance.randrange(len(data))
        kind = chance.randrange(8)
        if kind == 0:
            del data[at:at + chance.randint(1, 16)]
        elif kind == 1:
            data[at:at] = data[at:at + chance.randint(1, 16)]
        elif kind == 2 and chance.random() < 0.3:
            data = data[:at]
        elif kind == 3:
            data[at] = chance.choice(TELLING)
        elif kind == 4:
            line = bytes(data).split(b"\n")
            line.insert(chance.randrange(len(line)), chance.choice(line))
            data = bytearray(b"\n".join(line))
        elif kind == 5:
            other = chance.randrange(len(data))
            data[at:at + 8] = data[other:other + 8]
        else:
            data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def changed_member(content: bytes, chance: random.Random) -> bytes:
    """An archive with other content in one of its files; of other formats: other bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(info, archive.read(info)) for info in archive.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        members = []
    if not members:
        return changed(content, chance)
    pickles = [i for i, (info, _) in enumerate(members) if info.filename.endswith(".pkl")]
    place = chance.choice(pickles if pickles and chance.random() < 0.8 else range(len(members)))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for i, (info, data) in enumerate(members):
            archive.writestr(info.filename, changed(data, chance) if i == place else data)
    return out.getvalue()


def copy_folder(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Next to its neighbours: some families read a configuration or a vocabulary too."""
    for near in source.parent.iterdir():
        if near.is_file() and near.stat().st_size <= LARGEST:
            shutil.copyfile(near, folder / near.name)


def conversion(file: pathlib.Path, folder: pathlib.Path, chance: random.Random) -> list[str]:
    arguments = ["convert", str(file), "-o", str(folder / "out.kgl")]
    recipe = file.with_suffix("").with_suffix(".recipe.json")
    if recipe.exists() and chance.random() < 0.5:
        arguments += ["--recipe", str(recipe)]
    if chance.random() < 0.3:
        arguments += ["--bits", str(chance.choice([2, 5, 9, 16]))]
    if chance.random() < 0.2 and (folder / "vocab.txt").exists():
        arguments += ["--vocab", str(folder / "vocab.txt")]
    return arguments


def arguments_for(kind: str, paths: list[pathlib.Path], mutants: list[pathlib.Path],
                  folder: pathlib.Path, chance: random.Random) -> list[str]:
    if kind == "model":
        mutant = str(chance.choice(mutants))
        text = folder / "text.txt"
        text.write_bytes(TEXT)
        return chance.choice([
            ["verify", mutant], ["inspect", mutant], ["tokenize", mutant],
            ["tokenize", mutant, "--decode"], ["count", mutant, "--bin-counts", "1,1"],
            ["score", mutant, "--text", str(text), "--rank", "--replicas", "2"],
            ["predict", mutant], ["generate", mutant, "--tokens", "4"], ["embed", mutant],
            ["fill", mutant], ["translate", mutant], ["diff", mutant, str(chance.choice(mutants))],
            ["filter", mutant, "--max-ppl", "100"],
            ["report", mutant, str(text), "-o", str(folder / "page.html")]])
    if kind == "tokenizer":
        name = chance.choice(sorted(TOKENIZERS))
        file = folder / name
        file.write_bytes(changed(TOKENIZERS[name], chance))
        arguments = ["tokenize", str(file)]
        if name.startswith("codes") and chance.random() < 0.5:
            known = folder / "known"
            known.write_bytes(changed(b"x 1\nab@@ 3\nb 2\na@@ 9\n", chance))
            arguments += ["--subword-vocabulary", str(known), "--threshold", "2"]
        return arguments
    path = chance.choice(paths)
    copy_folder(path, folder)
    file = folder / path.name
    if kind == "settings":
        near = sorted(other for other in folder.iterdir()
                      if other.suffix in SETTINGS and other != file)
        if near:
            other = chance.choice(near)
            other.write_bytes(changed(other.read_bytes(), chance))
        return conversion(file, folder, chance)
    change = changed if kind == "bytes" else changed_member
    file.write_bytes(change(path.read_bytes(), chance))
    return chance.choice([["inspect", str(file)], ["inspect", "--recipe-skeleton", str(file)],
                          conversion(file, folder, chance), conversion(file, folder, chance)])


def complaint(status: int, error: str) -> str:
    """What is wrong with a run; empty: nothing."""
    if "Sanitizer" in error or "runtime error" in error:
        return "a sanitizer's report"
    if status not in (0, 1, 2):
        return f"status {status}"
    lines = [line for line in error.splitlines() if not line.startswith("kinglet: warning")]
    if status != 0 and len(lines) != 1:
        return f"a refusal of {len(lines)} lines"
    if any(ord(char) < 32 or 127 <= ord(char) < 160 for line in lines for char in line):
        return "control characters"
    return ""


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    command, count = str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    mutants = sorted(pathlib.Path(sys.argv[4]).resolve().iterdir()) if len(sys.argv) > 4 else []
    paths = sorted(path for path in DATA.rglob("*") if path.suffix in CHECKPOINTS
                   and path.is_file() and path.stat().st_size <= LARGEST)
    kinds = ["bytes", "member", "member", "settings", "settings", "tokenizer"]
    kinds += ["model", "model"] if mutants else []
    environment = dict(os.environ, UBSAN_OPTIONS="print_stacktrace=1", ASAN_OPTIONS=(
        "allocator_may_return_null=1:detect_leaks=1:hard_rss_limit_mb=2048"))
    ends: dict[str, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    findings = 0
    for number in range(first, first + count):
        chance = random.Random(number)
        kind = chance.choice(kinds)
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"hostile-{number}-"))
        arguments = arguments_for(kind, paths, mutants, folder, chance)
        try:
            run = subprocess.run([command, *arguments], input=TEXT, capture_output=True,
                                 timeout=60, env=environment, check=False)
            status, error = run.returncode, run.stderr.decode("utf-8", "replace")
        except subprocess.TimeoutExpired:
            status, error = -1, "expected an end within 60 seconds"
        ends[kind][status] += 1
        wrong = complaint(status, error)
        if not wrong:
            shutil.rmtree(folder)
            continue
        findings += 1
        print(f"finding {number}: {wrong}: kinglet {' '.join(arguments)}\n{error[:3000]}", flush=True)
    for kind, counts in sorted(ends.items()):
        print(f"{kind:9}", ", ".join(f"status {end}: {runs}" for end, runs in sorted(counts.items())))
    print(f"{count} runs, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
