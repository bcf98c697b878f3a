#!/usr/bin/env python3
"""Writes kinglet_lm/_interface.py from the C headers.

    interface.py [FILE]        (to standard output without FILE)
"""

import pathlib
import re
import sys
import textwrap

HEADERS = pathlib.Path(__file__).resolve().parents[1] / "include" / "kinglet"
HEAD = '''"""The C interface, written by `python/interface.py` from the headers; a test compares.

Names are without "kinglet_". A function has the type of its result, then those of its arguments,
a letter each. p: an address (a handle, an array, a function); s: bytes; i: int32; u: uint32;
q: uint64; d: double; f: float; v: nothing.
"""

ABI_VERSION = {ABI_VERSION}  # KINGLET_ABI_VERSION
'''
TABLE = '''
{} = dict(entry.split("=") for entry in """
{}
""".split())
'''
LETTERS = {"uint32_t": "u", "int32_t": "i", "kinglet_status": "i", "uint64_t": "q", "double": "d",
           "float": "f", "void": "v"}


def letter(declared):
    """How a declaration's type is passed: text as bytes, other pointers as addresses."""
    if "*" not in declared:
        return LETTERS[declared.split()[0]]
    return "s" if re.fullmatch(r"const char ?\* ?\w*", declared) else "p"


def tables():
    text = "".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    version = int(re.search(r"#define KINGLET_ABI_VERSION (\d+)", text)[1])
    text = " ".join(re.sub(r"//.*|^#.*", "", text, flags=re.MULTILINE).split())
    functions, fields = {}, {}
    for result, name, arguments in re.findall(
            r"KINGLET_API ([\w ]+[ *]+)kinglet_(\w+)\(([^)]*)\)", text):
        kinds = [letter(one) for one in arguments.split(", ") if one != "void"]
        functions[name] = letter(result.strip()) + ":" + "".join(kinds)
    for body, structure in re.findall(r"typedef struct \w+ \{([^}]*)\} kinglet_(\w+);", text):
        for declared in body.split(";")[:-1]:
            name = re.search(r"\(\*(\w+)\)\(", declared) or re.search(r"(\w+)$", declared)
            if not name:  # an array
                continue
            fields[f"{structure}.{name[1]}"] = letter(declared.strip())
    return {"ABI_VERSION": version, "FUNCTIONS": functions, "FIELDS": fields}


def page():
    found = tables()
    return HEAD.replace("{ABI_VERSION}", str(found["ABI_VERSION"])) + "".join(
        TABLE.format(name, textwrap.fill(" ".join(f"{key}={kind}" for key, kind in
                                                  found[name].items()), 98))
        for name in ("FUNCTIONS", "FIELDS"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        pathlib.Path(sys.argv[1]).write_text(page())
    else:
        print(page(), end="")
