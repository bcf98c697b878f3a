"""The shared library exports the functions that its headers declare, and nothing else.

    exported_symbols_test.py NM LIBRARY HEADER...
"""

import re
import subprocess
import sys


def main():
    nm, library, *headers = sys.argv[1:]
    listing = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, check=True,
                             text=True).stdout
    exported = {line.split()[-1] for line in listing.splitlines()}
    declared = set()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"^KINGLET_API\b[^;(]*?\b(kinglet_\w+)\(", file.read(),
                                       re.MULTILINE))
    for name in sorted(exported - declared):
        print(f"exported, but no header declares it: {name}")
    for name in sorted(declared - exported):
        print(f"declared, but not exported: {name}")
    print(f"{len(declared)} functions declared, {len(exported)} symbols exported")
    return 0 if exported == declared and len(declared) > 10 else 1


if __name__ == "__main__":
    sys.exit(main())
