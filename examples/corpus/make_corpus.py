#!/usr/bin/env python3
"""Makes a corpus to be scored: shards of documents of 20 to 40 words, the same ones every time.

    make_corpus.py FOLDER [--shards 64] [--documents 20000]

writes FOLDER/00000.jsonl.gz, .., {"id", "text"} a line. Documents are runs of words of the demo
model's calibration text; every fourth has its words shuffled, so that a filter has what to drop.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import random
from collections.abc import Iterator

TEXT = pathlib.Path(__file__).resolve().parents[1] / "wikitext2" / "calibration.txt"


def documents(count: int, seed: int = 1) -> Iterator[dict[str, str]]:
    words = TEXT.read_text(encoding="utf-8").split()
    chance = random.Random(seed)
    for number in range(count):
        length = chance.randint(20, 40)
        at = chance.randrange(len(words) - length)
        text = words[at : at + length]
        if number % 4 == 3:
            chance.shuffle(text)
        yield {"id": f"{number:06d}{'-shuffled' if number % 4 == 3 else ''}",
               "text": " ".join(text)}


def write(folder: pathlib.Path, shards: int, count: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = list(documents(count))
    for shard in range(shards):
        path = folder / f"{shard:05d}.jsonl.gz"
        with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
            for row in rows[shard * count // shards : (shard + 1) * count // shards]:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--documents", type=int, default=20000)
    options = parser.parse_args()
    write(options.folder, options.shards, options.documents)


if __name__ == "__main__":
    main()
