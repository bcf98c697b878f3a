#!/usr/bin/env python3
"""The built files are hardened: relocations are read-only once it runs (RELRO, bind now),
the stack is not executable and is checked (stack protector, stack clash), the command is independent of
its address (PIE), and optimised code calls the C library's checked functions (_FORTIFY_SOURCE). The
environment names no library to a privileged process. No folder's name is in the files, so that builds
in two folders are the same bytes. All downloads of scripts/wheel* and scripts/cross are pinned by hash.

    hardening_test.py READELF SOURCE_DIR optimised|debug FILE...
"""

import pathlib
import re
import subprocess
import sys


def unpinned(scripts: pathlib.Path) -> list[str]:
    """Downloads of scripts/wheel* and scripts/cross that no hash pins."""
    faults = []
    for path in [*scripts.glob("wheel*"), scripts / "cross"]:
        for line in path.read_text().replace("\\\n", " ").splitlines():
            if "pip" in line and " install " in line and not re.search(r"--require-hashes -r|--no-index", line):
                faults.append(f"{path}: expected --require-hashes, found {line.strip()}")
    for path in (scripts / "pins").glob("*.txt"):
        text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
        for line in filter(None, text.split("\n")):
            if not re.match(r"[\w.-]+==[\w.]+ (?:; [^-]+)?(?: *--hash=sha256:[0-9a-f]{64})+$", line):
                faults.append(f"{path}: expected NAME==VERSION and hashes, found {line[:60]}")
    if "sha256sum --quiet -c" not in (scripts / "cross").read_text():
        faults.append(f"{scripts}/cross: expected sources that are compared with pins/sources.sha256")
    return faults


def main() -> int:
    readelf, source, build, *files = sys.argv[1:]
    faults = unpinned(pathlib.Path(source) / "scripts")
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
        code = pathlib.Path(path).read_bytes()
        if build == "optimised" and not re.search(r"\bUND __(?!stack_chk_fail)\w+_chk\b", listing):
            faults.append(f"{path}: expected functions of _FORTIFY_SOURCE (__snprintf_chk), found none")
        # or $0,(%rsp): how gcc touches a page of a large frame, and nothing else. clang's is a usual move.
        by_gcc = "X86-64" in listing and b"clang version" not in code
        if by_gcc and b"\x48\x83\x0c\x24\x00" not in code:
            faults.append(f"{path}: expected probes of -fstack-clash-protection, found none")
        if b"KINGLET_ONEDNN" in code and not re.search(r"\bUND secure_getenv\b", listing):
            faults.append(f"{path}: expected secure_getenv, found none")
        if f"{source}/".encode() in code:
            faults.append(f"{path}: expected no name of a folder, found {source}")
    print("\n".join(faults))
    return 1 if faults or not files else 0


if __name__ == "__main__":
    sys.exit(main())
