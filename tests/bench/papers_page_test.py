"""docs/PAPERS.md: each row's commands run on the stand-in that the row names, and print the keys that it names.

    papers_page_test.py ROOT KINGLET PAPERS
"""

import functools
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

DEFAULT = "kinglet convert M -o m.kgl --json && kinglet score m.kgl --ids IDS --json"
NOTHING_RUNS = ("training", "not run")
PIECES = ["the", "t@@", "h@@", *(f"{letter}@@" for letter in "abcdefg"), *"abcdefg"]
POSITIONS = {"3072": "24", "2560": "20", "512": "24"}  # the stand-in has 24
# Words of a row, and the passes that stand in for PASSES.json.
PASSES = {
    "`low_rank`": {"pass": "low_rank", "tensors": ["embedding.table"], "rank": 4},
    "`sum`": {"pass": "code", "tensors": ["embedding.table"], "combine": "sum", "positions": 2, "sub_vectors": 16},
    "`shuffled`": {"pass": "code", "tensors": ["embedding.table"], "mapping": "shuffled", "positions": 4,
                   "pools": "one", "sub_vectors": 30},
}


def rows(page):
    """(number, cells) of each row of the page's tables whose last column is "stand-in"."""
    found, inside = [], False
    for number, line in enumerate(page.splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else None
        if cells is None:
            inside = False
        elif cells[-1] == "stand-in":
            inside = True
        elif inside and not line.startswith("|---"):
            found.append((number, cells))
    return found


def keys_of(value):
    """All names of objects in `value`."""
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")
    return name


class StandIn:
    """The files that a page's words name: a checkpoint of tests/data, and texts for it."""

    def __init__(self, source, folder, answer):
        self.source, self.folder, self.answer = source, folder, answer

    def of(self, word):
        return {"M": self.checkpoint, "IDS": self.ids, "VOCAB": self.vocabulary, "TEXT": self.text,
                "CODES": self.codes, "SOURCE": self.sentences, "TARGET": self.targets, "LABELS": self.labels, "WORDS": self.counts, "PAIRS": lambda: self.source / "pairs.txt",
                "RECIPE": lambda: self.source / "recipe.json", "PASSES.json": self.passes, "LISTS": self.lists,
                "REFERENCES": self.references}.get(word, lambda: POSITIONS.get(word, word))()

    def checkpoint(self):
        if (self.source / "models").is_dir() or (self.source / "config.json").is_file():
            return self.source
        return next(path for path in sorted(self.source.glob("model*")) if not path.name.endswith(".json"))

    def ids(self):
        return next(path for name in ("tokens.txt", "lists.txt") if (path := self.source / name).is_file())

    @functools.cached_property
    def words(self):
        """The words that may stand in a text: those of the vocabulary, in its order."""
        if "CODES" in self.answer:
            return PIECES
        path = self.source / ("dict.txt" if (self.source / "dict.txt").is_file() else "vocab.txt")
        return [line.split()[0] for line in path.read_text(encoding="utf-8").splitlines()]

    def vocabulary(self):
        if "CODES" in self.answer:
            lines = sum(1 for _ in (self.source / "dict.txt").open(encoding="utf-8"))
            names = PIECES + [f"other{i}" for i in range(lines - len(PIECES))]
            return write(self.folder, "dict.txt", "".join(f"{name} {99 - i}\n" for i, name in enumerate(names)))
        path = self.source / "dict.txt"
        return path if path.is_file() else self.source / "vocab.txt"

    def text(self):
        if "CODES" in self.answer:
            return write(self.folder, "text.txt", "the bad cab\nadd the bag\n" * 10)
        lines = [" ".join(self.words[(7 * i + j * j) % len(self.words)] for j in range(8)) for i in range(20)]
        return write(self.folder, "text.txt", "".join(line + "\n" for line in lines))

    def codes(self):
        return write(self.folder, "codes", "#version: 0.2\nt h\nth e</w>\n")

    def sentences(self):
        lines = (self.source / "pairs.txt").read_text(encoding="utf-8").splitlines()
        return write(self.folder, "source.txt", "".join(line.split(" ||| ")[0] + "\n" for line in lines))

    def targets(self):
        lines = (self.source / "pairs.txt").read_text(encoding="utf-8").splitlines()
        return write(self.folder, "target.txt", "".join(line.split(" ||| ")[1] + "\n" for line in lines))

    def labels(self):
        return write(self.folder, "labels.txt", "0\n" * len(self.ids().read_text(encoding="utf-8").splitlines()))

    def counts(self):
        return write(self.folder, "counts.txt", "the 200\nbad 20\nbag 1\n")

    def passes(self):
        chosen = next(value for word, value in PASSES.items() if word in self.answer)
        return write(self.folder, "passes.json", json.dumps({"passes": [chosen]}))

    def lists(self):
        lines = [f"u{i}\t{-j}\t{' '.join(self.words[i + j:i + j + 3])}\n" for i in range(4) for j in range(3)]
        return write(self.folder, "lists.tsv", "".join(lines))

    def references(self):
        return write(self.folder, "references.tsv",
                     "".join(f"u{i}\t{' '.join(self.words[i + 1:i + 4])}\n" for i in range(4)))


def run(command, programs, stand_in):
    """The result of one command of the page, in the stand-in's folder."""
    words = shlex.split(command)
    assert words[0] in programs, f"no program {words[0]}"
    words = [programs[words[0]], *(str(stand_in.of(word)) for word in words[1:])]
    return subprocess.run(words, cwd=stand_in.folder, capture_output=True, text=True, timeout=120)


def check(cells, data, programs):
    """What is wrong with a row, or None."""
    _, answer, source = cells
    spans = re.findall(r"`([^`]+)`(?:, keys ((?:`\w+`(?:, )?)+))?", answer)
    commands = [(span, re.findall(r"\w+", keys)) for span, keys in spans if span.split()[0] in programs]
    if not commands:
        test = re.match(r"tested by `(\w+)\.(\w+)`", answer)
        if test and not (data.parent / test[1] / f"{test[2]}_test.cc").is_file():
            return f"no test {test[1]}.{test[2]}"
        if test or answer.startswith(NOTHING_RUNS):
            return None
        commands = [(DEFAULT, ["ppl"])]
    for line, keys in commands:
        if "m.kgl" in line and not source:
            return "expected a stand-in, found none"
        place = data / source.strip("`")
        if source and not place.is_dir():
            return f"{source} does not exist"
        with tempfile.TemporaryDirectory() as name:
            stand_in = StandIn(place, pathlib.Path(name), answer)
            parts = line.split(" && ")
            for i, part in enumerate(parts):
                result = run(part, programs, stand_in)
                if result.returncode != 0:
                    return f"{part}: status {result.returncode}, expected 0: {result.stderr.strip()}"
                family = re.match(r"family `([\w-]+)`", answer)
                if line == DEFAULT and i == 0 and family and f'"family":"{family[1]}"' not in result.stdout:
                    return f"expected {family[0]}, found {result.stdout[:60]}"
            if keys:
                printed = set().union(*(keys_of(json.loads(text)) for text in result.stdout.splitlines()))
                if not printed.issuperset(keys):
                    return f"{parts[-1]}: expected keys {keys}, found {sorted(printed)}"
    return None


def main():
    root, kinglet, papers = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    programs = {"kinglet": kinglet, "build/release/bench/papers": papers}
    table = rows((root / "docs" / "PAPERS.md").read_text(encoding="utf-8"))
    faults = [f"docs/PAPERS.md:{number}: {cells[0]}: {fault}" for number, cells in table
              if (fault := check(cells, root / "tests" / "data", programs))]
    print("\n".join(faults) or f"{len(table)} rows")
    return 1 if faults or len(table) < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
