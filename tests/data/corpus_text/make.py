"""Writes lines at random and what datatrove 0.10.1 (KenlmModel.normalize) and CCNet's rules make of them.

    PYTHONPATH=WHERE_DATATROVE_AND_REGEX_ARE python3 tests/data/corpus_text/make.py [LINES FILE]

writes lines.jsonl, 300 of [line, ccnet, datatrove]; or LINES into FILE, which KINGLET_CORPUS_TEXT names for the test. CCNet's
rules are those of cc_net/text_normalizer.py, normalize, written anew over datatrove's table of punctuation.
"""

import json
import pathlib
import random
import sys
import unicodedata

from datatrove.utils.perplexity import KenlmModel

ALPHABETS = [range(0x20, 0x7F), range(0x20, 0x7F), range(0xA0, 0x250), range(0x370, 0x400), range(0x400, 0x530),
             range(0x590, 0x700), range(0x900, 0xE00), range(0x1E00, 0x2070), range(0x2190, 0x2600), range(0x3000, 0x3100),
             range(0x4E00, 0x4F00), range(0xAC00, 0xAD00), range(0xFF00, 0xFFF0), range(0x1D400, 0x1D800), range(0, 0xA0)]
WORDS = ["Ελλάς", "ΟΔΟΣ", "ΑΣ", "Σ", "İstanbul", "Straße", "1,234.5", "٣٫١٤", "１２", "2019", "3.", ".5", "—", "„so“", "a\u0301"]
SPACES = [" ", " ", " ", "\t", "\u00a0", "\u2003", "\u3000", "\x1f", "\x85"]


def ccnet(line):
    line = line.strip().lower()
    line = "".join(c for c in unicodedata.normalize("NFD", line) if unicodedata.category(c) != "Mn")
    line = "".join("0" if c.isdecimal() else KenlmModel.unicode_punct.get(c, c) for c in line)
    return "".join(c for c in line if ord(c) >= 32 and not 127 <= ord(c) < 160)


def lines(count):
    chance = random.Random(1)
    for _ in range(count):
        made = ""
        for _ in range(chance.randint(0, 12)):
            alphabet = chance.choice(ALPHABETS)
            made += chance.choice(WORDS) if chance.random() < 0.3 else "".join(
                chr(chance.choice(alphabet)) for _ in range(chance.randint(1, 8)))
            made += chance.choice(SPACES) if chance.random() < 0.8 else ""
        yield made.replace("\n", "")


def main():
    count, path = (int(sys.argv[1]), sys.argv[2]) if len(sys.argv) > 1 else (300, pathlib.Path(__file__).with_name("lines.jsonl"))
    model = KenlmModel("", "")
    with open(path, "w", encoding="utf-8") as file:
        for line in lines(count):
            file.write(json.dumps([line, ccnet(line), model.normalize(line)]) + "\n")


if __name__ == "__main__":
    main()
