"""Every function that the headers declare is called by the tests in C.

    coverage_test.py HEADER... SOURCE...
"""

import re
import sys


def main():
    headers = [name for name in sys.argv[1:] if name.endswith(".h")]
    sources = [name for name in sys.argv[1:] if not name.endswith(".h")]
    declared, called = set(), set()
    for header in headers:
        with open(header, encoding="utf-8") as file:
            declared |= set(re.findall(r"^KINGLET_API\b[^;(]*?\b(kinglet_\w+)\(", file.read(),
                                       re.MULTILINE))
    for source in sources:
        with open(source, encoding="utf-8") as file:
            code = re.sub(r'//[^\n]*|"(\\.|[^"\\\n])*"', "", file.read())
            called |= set(re.findall(r"\b(kinglet_\w+)\b(?=\s*[(,])", code))
    for name in sorted(declared - called):
        print(f"declared, but no test in C calls it: {name}")
    print(f"{len(declared)} functions declared, {len(declared & called)} called")
    return 0 if declared <= called and len(declared) > 40 else 1


if __name__ == "__main__":
    sys.exit(main())
