#!/usr/bin/env python3
"""Writes converters/texts/case_ranges.h from Python's Unicode, as str.lower() shows it: scripts/case_ranges.py > FILE"""

import unicodedata


def ranges(has):
    found = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000 or not has(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def is_cased(c):
    return (c + "\u03a3").lower()[-1] == "\u03c2"  # a sigma after a letter with case ends a word


def is_ignored(c):
    return not is_cased(c) and ("a" + c + "\u03a3").lower()[-1] == "\u03c2"


def table(name, about, rows):
    print(f"// {about}\ninline constexpr CodeRange {name}[] = {{")
    line = "   "
    for first, last in rows:
        item = f" {{{first:#x}, {last:#x}}},"
        if len(line + item) > 100:
            print(line)
            line = "   "
        line += item
    print(f"{line}\n}};\n")


def main():
    print(f"""// What Unicode {unicodedata.unidata_version} decides the form of a sigma by: scripts/case_ranges.py makes this file.
#ifndef KINGLET_CONVERTERS_TEXTS_CASE_RANGES_H_
#define KINGLET_CONVERTERS_TEXTS_CASE_RANGES_H_

#include "runtime/text/unicode_ranges.h"

namespace kinglet {{

// clang-format off""")
    table("kCased", "Cased, and not Case_Ignorable.", ranges(is_cased))
    table("kCaseIgnorable", "Case_Ignorable.", ranges(is_ignored))
    print("""// clang-format on

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_CASE_RANGES_H_""")


if __name__ == "__main__":
    main()
