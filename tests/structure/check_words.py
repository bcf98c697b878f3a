"""Checks that code and pages use the field's words, each with one meaning.

    check_words.py ROOT [PATH...]

Prints a line for each banned word, with a better one, and exits 1 if there is any. PATHs, files or
folders below ROOT, limit what is read. docs/GLOSSARY.md has the words to use.
"""

import fnmatch
import pathlib
import re
import subprocess
import sys

# A word, as a regular expression, and a better one. Small letters stand for capitals too.
WORDS = [
    (r"\b(company|companies)\b", "batch"),
    (r"\bgifts?\b", "contribution"),
    (r"\bplugs?\b(?!-in)", "integration, adapter"),
    (r"\breals\b", "floats"),
    (r"\bbeside\b", "next to, with, compared with, in addition to"),
    (r"\bin turns\b", "interleaved, alternating"),
    (r"\btraining codes?\b", "framework"),
    (r"\bleft out\b", "omitted, excluded"),
    (r"\bgo(es|ing)? on\b", "continue"),
    (r"(?<![\w:.])floors?\b(?![(_])", "roofline, lower bound"),
    (r"\bso many\b", "that many, N"),
    (r"\bcut(s|ting)?\b(?![-_])", "tokenize, split, truncate, threshold"),
    (r"\bbehind\b", "after"),
    (r"\b(say so|said)\b", "print, report, document"),
    (r"\b(nobody|whoever|wherever)\b", "no caller, the caller, where"),
    (r"\bputs? aside\b", "mark as unused, ignore"),
    (r"\btwins?\b", "counterpart, duplicate"),
    (r"\bworth\b", "cost, value, weight"),
    (r"\bmend(s|ed|ing)?\b", "fix, repair"),
    (r"\b(house|rooms)\b", "codebase, modules"),
    (r"\bplant(s|ed)\b", "seed"),
    (r"\bknown answers\b", "golden values"),
    (r"(?-i:[;:,] none\b(?=[.;)]|$)|\bNone: |\b(0|null): none\b)", "returns nullopt if .., 0 means .."),
]
WORDS = [(re.compile(word, re.IGNORECASE), better) for word, better in WORDS]
ANY_WORD = re.compile("|".join(word.pattern for word, _ in WORDS), re.IGNORECASE)
OPENINGS = re.compile(r"(It|This|That|These|Those|They|Such|There|None|The same)\b")
# What others wrote, and what quotes them.
UNREAD = ["tests/data/*", "examples/wikitext2/*", "examples/corpus/*", "examples/rescoring/*", "examples/tensorflow/*",
          "format/generated/*", "docs/lab/*", "CHANGELOG.md", "LICENSE", "docs/GLOSSARY.md",
          "tests/structure/check_words*.py", "scripts/pins/*"]
# Lines that need the word: a path, and a part of the line.
QUOTED = [
    ("bench/peers/translate_brnn.py", 'rounding_mode="floor"'),
    ("tools/filter.cc", 'Key("cut")'),
    ("tests/tools/filter_test.cc", '["cut"]'),
    ("docs/ORDINARY_TEXT.md", "said"),  # what was typed
    ("tests/runtime/text/word_rules_test.cc", "said"),
]
COMMENT = {".h": "//", ".hpp": "//", ".c": "//", ".cc": "//", ".cu": "//", ".cuh": "//", ".fbs": "//", ".js": "//",
           ".py": "#", ".txt": "#", ".cmake": "#", "": "#", ".toml": "#", ".yaml": "#", ".yml": "#"}
READ = {*COMMENT, ".md", ".html", ".json", ".patch", ".in"}
DOCSTRING = re.compile(r'^\s*(?:[rf]?""")(.*)')


def openings(lines, mark):
    """The number and text of each comment that begins with a pronoun."""
    inside = False
    for number, line in enumerate(lines, 1):
        code, found, text = line.partition(mark)
        docstring = DOCSTRING.match(line) if mark == "#" else None
        if docstring:
            found, text, code, inside = True, docstring[1], "", False
        if found and not (inside and not code.strip()) and OPENINGS.match(text.lstrip("/!<- ")):
            if not code.strip().endswith(("'", '"', ":")):  # an address or a text, not a comment
                yield number, text.strip()
        inside = bool(found) and not code.strip()


def faults(path, text):
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if any(fnmatch.fnmatch(path, name) and part in line for name, part in QUOTED):
            continue
        if not ANY_WORD.search(line):
            continue
        for word, better in WORDS:
            for found in word.finditer(line):
                yield f"{path}:{number}: \"{found[0].strip()}\": better: {better}"
    mark = COMMENT.get(pathlib.PurePath(path).suffix)
    if mark:
        for number, comment in openings(lines, mark):
            yield f"{path}:{number}: a comment begins with \"{comment[:40]}\": begin with a noun"


def main(root, *only):
    names = subprocess.run(["git", "-C", root, "ls-files", "-z", *only], check=True, capture_output=True,
                           text=True).stdout.split("\0")
    found = []
    for name in filter(None, names):
        path = pathlib.Path(root, name)
        if path.suffix not in READ or path.is_symlink() or not path.is_file():
            continue
        if any(fnmatch.fnmatch(name, pattern) for pattern in UNREAD):
            continue
        found += faults(name, path.read_text(encoding="utf-8", errors="replace"))
    print("\n".join(found) if found else "no banned word")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
