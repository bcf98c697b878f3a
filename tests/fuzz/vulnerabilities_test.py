#!/usr/bin/env python3
"""docs/VULNERABILITIES.md: twenty classes, and every test that it, RELIABILITY.md and lab/faults.md name exists.

    vulnerabilities_test.py ROOT
"""

import pathlib
import re
import sys

CLASSES = 20


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    page = (root / "docs" / "VULNERABILITIES.md").read_text(encoding="utf-8")
    others = [(root / "docs" / name).read_text(encoding="utf-8") for name in ("RELIABILITY.md", "lab/faults.md")]
    defined = set()
    for path in (root / "tests").rglob("*_test.cc"):
        text = path.read_text(encoding="utf-8")
        defined |= {f"{suite}.{name}" for suite, name in
                    re.findall(r"\nTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", text)}
    faults = []
    rows = re.findall(r"^\| (\d+)\. ([^|]*)\|([^|]*)\|$", page, re.MULTILINE)
    if [int(row[0]) for row in rows] != list(range(1, CLASSES + 1)):
        faults.append(f"expected rows 1 to {CLASSES}, found {[row[0] for row in rows]}")
    for number, _, tests in rows:
        if not re.findall(r"`(\w+\.\w+)`", tests):
            faults.append(f"class {number}: expected a test, found none")
    for name in re.findall(r"`([A-Z]\w+\.[A-Z]\w+)`", "".join([page, *others])):
        if name not in defined:
            faults.append(f"expected a test {name}, found none")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
