"""The command from Python: names that look like options, and output that is read line by line.

    commands_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import json
import os
import pathlib
import sys
import tempfile

import kinglet_lm
from support import DATA, refused

CHECKPOINT = DATA / "micronet-small-fp32"
MARKS = "a\u2028b\u2029c\x85d\x1ce\x0bf\x0cg"  # where str.splitlines splits, unlike JSON Lines


def names(folder):
    """A file may have any name; an option's value too."""
    os.chdir(folder)
    pathlib.Path("-vocab.txt").write_text((CHECKPOINT / "vocab.txt").read_text())
    pathlib.Path("-ids.txt").write_text("1 2 3 4 5\n")
    os.symlink(CHECKPOINT, "--checkpoint")
    expected = kinglet_lm.convert(CHECKPOINT, "m.kgl", vocab=CHECKPOINT / "vocab.txt")
    for name in ("--help", "-x.kgl", "--json", "-h", "--"):
        made = kinglet_lm.convert("--checkpoint", name, vocab="-vocab.txt")
        assert made["digest"] == expected["digest"], made
        assert pathlib.Path(name).read_bytes() == pathlib.Path("m.kgl").read_bytes(), name
        counted = kinglet_lm.count("m.kgl", ids="-ids.txt")
        assert kinglet_lm.count(name, ids="-ids.txt") == counted, name
        assert kinglet_lm.count(os.fsencode(name), ids=pathlib.Path("-ids.txt")) == counted, name
        assert kinglet_lm.Model(name).digest == kinglet_lm.Model("m.kgl").digest
        refused(kinglet_lm.CommandFailed, lambda name=name: kinglet_lm.translate(name, ["the"]),
                name)
    for name in ("--none", "-n"):
        refused(kinglet_lm.CommandFailed, lambda name=name: kinglet_lm.count(name), name)


def lines(folder):
    """Only a newline ends a line of the command's output, and of its messages."""
    command = pathlib.Path(folder) / "command"
    answer = json.dumps({"token": MARKS}, ensure_ascii=False)
    command.write_text(f"#!{sys.executable}\nimport sys\n"
                       f"open({folder!r} + '/words', 'w').write(repr(sys.argv[1:]))\n"
                       f"sys.stdout.reconfigure(encoding='utf-8')\n"
                       f"sys.stderr.reconfigure(encoding='utf-8')\n"
                       f"print({answer!r})\nprint({answer!r})\n"
                       "if 'fail' in sys.argv:\n"
                       f"    sys.exit('first\\nkinglet: ' + {MARKS!r})\n")
    command.chmod(0o755)
    before = os.environ.get("KINGLET_COMMAND")
    os.environ["KINGLET_COMMAND"] = str(command)
    try:
        # The control characters below 0x20 are escapes in JSON; the others are not escaped.
        found = kinglet_lm.run_json("tokenize", "m.kgl", "--", "-")
        words = (pathlib.Path(folder) / "words").read_text()
        assert found == [{"token": MARKS}] * 2, found
        assert words == "['tokenize', '--json', 'm.kgl', '--', '-']", words
        error = refused(kinglet_lm.CommandFailed, lambda: kinglet_lm.run("fail"))
        assert str(error) == "kinglet: " + MARKS, str(error)
        assert kinglet_lm.count("m", max_tokens=[3, -4], text="-t", fast=True) == {"token": MARKS}
        words = (pathlib.Path(folder) / "words").read_text()
        assert words == ("['count', '--json', '--progress=json', '--max-tokens=3', "
                         "'--max-tokens=-4', '--text=-t', '--fast', '--', 'm']"), words
    finally:
        if before is None:
            del os.environ["KINGLET_COMMAND"]
        else:
            os.environ["KINGLET_COMMAND"] = before


def main():
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        try:
            lines(folder)
            names(folder)
        finally:
            os.chdir(before)
    print("any name is a name")


if __name__ == "__main__":
    sys.exit(main())
