#!/usr/bin/env python3
"""One number for all scores of a job: SHA-256 of "id hexadecimal-score" lines, sorted by id.

    digest_of_scores.py OUT..        of score_corpus.py; equal scores have equal digests

Prints the digest, the documents, and how many of them were kept. Refuses ids that occur twice.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import json
import sys


def scores(folder: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(glob.glob(f"{folder}/*/*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if row["id"] in found:
                    sys.exit(f"{path}: expected each id once, found {row['id']} again")
                found[row["id"]] = row["metadata"]["kinglet_hex"]
    return found


def digest(found: dict[str, str]) -> str:
    lines = "".join(f"{id} {value}\n" for id, value in sorted(found.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def main() -> None:
    for folder in sys.argv[1:]:
        found = scores(folder)
        print(digest(found), len(found), folder)


if __name__ == "__main__":
    main()
