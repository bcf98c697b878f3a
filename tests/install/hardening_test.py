#!/usr/bin/env python3
"""What is built cannot be bent as easily: relocations are read-only once it runs (RELRO, bind now),
the stack is not executable and watched (stack protector), the command is independent of its address
(PIE). No folder's name is in the files, so that builds in two folders are the same bytes.

    hardening_test.py READELF SOURCE_DIR FILE...
"""

import pathlib
import re
import subprocess
import sys


def main() -> int:
    readelf, source, *files = sys.argv[1:]
    faults = []
    for path in files:
        listing = subprocess.run([readelf, "-W", "-h", "-l", "-d", "--dyn-syms", path], capture_output=True,
                                 check=True, text=True).stdout
        if "GNU_RELRO" not in listing:
            faults.append(f"{path}: expected a segment GNU_RELRO, found none")
        if not re.search(r"\(FLAGS(?:_1)?\).*\bNOW\b", listing):
            faults.append(f"{path}: expected the flag NOW, found none")
        stack = re.search(r"GNU_STACK +(?:0x\w+ +){5}([RWE]+)", listing)
        if stack is None or "E" in stack.group(1):
            faults.append(f"{path}: expected a stack that is not executable")
        if not re.search(r"Type: +DYN", listing):
            faults.append(f"{path}: expected a file of type DYN")
        if re.search(r"\((?:RPATH|TEXTREL)\)", listing):
            faults.append(f"{path}: expected neither RPATH nor TEXTREL")
        if re.search(r"LOAD .* RWE ", listing):
            faults.append(f"{path}: expected no segment that is written and executed")
        if not re.search(r"\bUND __stack_chk_fail\b", listing):
            faults.append(f"{path}: expected the stack protector's __stack_chk_fail, found none")
        if f"{source}/".encode() in pathlib.Path(path).read_bytes():
            faults.append(f"{path}: expected no name of a folder, found {source}")
    print("\n".join(faults))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
