#!/usr/bin/env python3
"""Filters a file of gigabytes of which 1 percent is scored, and shows the time and the largest memory.

    bench/filter_soak.py KINGLET [--bytes 2000000000] [--lanes 16]

KINGLET is the command; the model is the demo in 9 bits. One document of a hundred has a model (`--route language=..
--unrouted drop`), the others have about 1,500 bytes of another language. Among them are, once in each hundredth of the file, a
broken line, an object without the text, a member twice, NUL as a byte and as an escape, bytes that are no UTF-8, and an empty line;
once in the file a line of 100 MB that is read and one that --max-line omits. Exits with 1 if other documents are written than those
of a file of the good ones alone, if bad lines are counted wrongly, or above 1 GB.
"""
import argparse
import json
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

DEMO = pathlib.Path(__file__).resolve().parent.parent / "examples" / "wikitext2"
BAD = [b'{"text": "the cat", "langu', b'{"language": "en"}', b"", b'{"text": "a\xff", "language": "en"}', b'{"text": "a\0", "language": "en"}']
ODD = [b'{"text": 3, "language": "fi", "language": "en", "text": "the first of the two"}', b'{"text": "the \\u0000 end", "language": "en"}']
LONG, LONGEST = 100_000_000, 120_000_000


def write(path, good, size):
    """Returns the number of bad lines."""
    chance = random.Random(1)
    words = (DEMO / "passage.txt").read_text(encoding="utf-8").split()
    filler = [json.dumps({"text": "muista " * chance.randint(100, 300), "language": "fi"}).encode() for _ in range(99)]
    block = b"\n".join(filler) + b"\n"
    bad = 0
    with open(path, "wb") as file, open(good, "wb") as own:
        def add(line):
            file.write(line + b"\n")
            own.write(line + b"\n")

        step = 0
        while file.tell() < size:
            file.write(block)
            at = chance.randrange(len(words) - 40)
            add(json.dumps({"text": " ".join(words[at:at + chance.randint(20, 40)]), "language": "en"}).encode())
            if file.tell() < step * size // 100:
                continue
            if step == 50:
                file.write(b'{"text": "%s", "language": "fi"}\n' % (b"x" * LONG))
                file.write(b'{"text": "%s", "language": "en"}\n' % (b"x" * LONGEST))
                bad += 1
            step += 1
            file.write(b"\n".join(BAD) + b"\n")
            bad += len(BAD)
            for line in ODD:
                add(line)
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet", type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--bytes", type=int, default=2_000_000_000)
    parser.add_argument("--lanes", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([options.kinglet, "convert", str(DEMO), "--vocab", str(DEMO / "vocab.txt"), "--tokenizer", "wikitext", "--bits", "9",
                        "--cache", "0", "-o", str(folder / "m.kgl")], check=True, stdout=subprocess.DEVNULL)
        (folder / "models.json").write_text('{"en":"m.kgl"}', encoding="utf-8")
        bad = write(folder / "all.jsonl", folder / "good.jsonl", options.bytes)
        run = [options.kinglet, "filter", "--field", "text", "--route", "language=models.json", "--max-ppl", "2000", "--unrouted", "drop",
               "--skip-bad", "--max-line", "110000000", "--lanes", str(options.lanes), "--json"]
        begin = time.monotonic()
        with open(folder / "kept.jsonl", "wb") as kept:
            done = subprocess.run([*run, "all.jsonl"], cwd=folder, check=True, stdout=kept, stderr=subprocess.PIPE)
        seconds = time.monotonic() - begin
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        summary = json.loads(re.sub(rb"^.*\n(?=.)", b"", done.stderr))
        alone = subprocess.run([*run, "good.jsonl"], cwd=folder, check=True, capture_output=True).stdout
        same = alone == (folder / "kept.jsonl").read_bytes()
        scored = summary["documents"] - summary["unrouted"]
        print(f"{(folder / 'all.jsonl').stat().st_size:,} bytes, {summary['documents']:,} documents, {scored:,} scored, {summary['kept']:,} "
              f"written, {summary['bad_lines']:,} bad lines: {seconds:.1f} s, {memory:.0f} MB")
        print("the documents written are " + ("those of the good lines alone" if same else "others"))
    sys.exit(0 if same and summary["bad_lines"] == bad and 0 < summary["kept"] < scored and memory < 1024 else 1)


if __name__ == "__main__":
    main()
