"""A program that opens the demo model, types 300 words, learns and forgets them has little memory of its own.

    typing_memory_test.py LIBRARY SOURCE_DIR COMMAND C_COMPILER
"""

import os
import pathlib
import re
import sys
import tempfile

from install_test import STRICT_C, expect, run

MOST_MEMORY = 7_000_000  # bytes, as docs/TYPING.md has them


def main() -> int:
    library, source, command, compiler = sys.argv[1:]
    os.sync()  # pages of a library that is not on the disk yet would count as the program's
    root = pathlib.Path(source)
    demo = root / "examples" / "wikitext2"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        run(command, "convert", demo, "--vocab", demo / "vocab.txt", "--tokenizer", "wikitext", "--bits", "9",
            "--calibrate", demo / "calibration.txt", "-o", work / "m.kgl")
        run(compiler, *STRICT_C, root / "tests" / "install" / "typing_memory.c", "-I", root / "include", library,
            f"-Wl,-rpath,{pathlib.Path(library).parent}", "-o", work / "typing_memory")
        printed = run(work / "typing_memory", work / "m.kgl", demo / "passage.txt", work / "words")
    print(printed, end="")
    expect("300 words" in printed, f"expected 300 words, found {printed}")
    grown = int(re.search(r"grown (-?\d+) bytes", printed).group(1))
    expect(grown <= MOST_MEMORY, f"expected at most {MOST_MEMORY} bytes, found {grown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
