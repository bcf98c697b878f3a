#!/usr/bin/env python3
"""Compares how quickly two builds of the command filter documents: runs each alternately, and prints tokens a second of processor time.

    bench/filter_turns.py OLD NEW [--rounds 5] [--lanes 16]

OLD and NEW are two commands. Each converts the demo, calibrated, without its neural cache, to 9 and to 5 bits (activations 9), and filters
4,000 of the documents of filter_trial.py, of 20 to 40 words, and 129 documents of 400 words. Medians of the rounds; the ratio is that of
the medians. Processor time includes opening the model.
"""
import argparse
import json
import pathlib
import random
import resource
import statistics
import subprocess
import tempfile

from filter_trial import convert_demo, demo_words, documents


def long_documents(chance):
    words = demo_words()
    for _ in range(129):
        at = chance.randrange(len(words) - 400)
        yield {"text": " ".join(words[at:at + 400])}


def seconds(words):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lanes", default="16")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for bits in ("9", "5"):
            for side, command in (("old", options.old), ("new", options.new)):
                convert_demo(command, folder / f"{side}{bits}.kgl", "--bits", bits, "--activation-bits", "9", "--cache", "0")
        for kind, rows in (("20 to 40 words", documents(4000, random.Random(1))), ("400 words", long_documents(random.Random(2)))):
            rows = list(rows)
            tokens = sum(len(row["text"].split()) + 1 for row in rows)
            (folder / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
            for bits in ("9", "5"):
                found = {"old": [], "new": []}
                for turn in range(options.rounds):
                    for side in ("old", "new") if turn % 2 else ("new", "old"):
                        found[side].append(seconds([getattr(options, side), "filter", str(folder / f"{side}{bits}.kgl"),
                                                    str(folder / "docs.jsonl"), "--field", "text", "--max-ppl", "600",
                                                    "--lanes", options.lanes]))
                old, new = (tokens / statistics.median(found[side]) for side in ("old", "new"))
                print(f"{kind}, {bits} bits: old {old:,.0f}, new {new:,.0f} tokens a second, ratio {new / old:.2f}", flush=True)


if __name__ == "__main__":
    main()
