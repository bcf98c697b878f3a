"""CONTRIBUTING.md says what CMakePresets.json, check_structure.py and scripts/seeded_bugs have, and names what exists.
docs/ADDING.md quotes lines of the family that it walks through.

    check_contributing.py ROOT
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys

import check_structure


def seeded_bugs(root):
    loader = importlib.machinery.SourceFileLoader("seeded_bugs", str(root / "scripts" / "seeded_bugs"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("seeded_bugs", loader))
    loader.exec_module(module)
    return module


def faults(root):
    page = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    prose = re.sub(r"\s+", " ", page)
    names = set(check_structure.tracked_files(root))
    found = []

    def compare(what, wanted, written):
        if wanted != written:
            found.append(f"{what}: expected {wanted}, found {written}")

    presets = json.loads((root / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    compare("presets", sorted(each["name"] for each in presets if not each.get("hidden")),
            sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)))
    layers = check_structure.LAYERS
    arrows = re.search(r"```\n(tools.*?)\n```", page)[1].split(" -> ")
    compare("arrows", [sorted(each for each in layers if layers[each] == level)
                       for level in sorted(set(layers.values()), reverse=True)],
            [sorted(part.strip().split("/")[0] for part in arrow.split(",")) for arrow in arrows])
    tested = re.search(r"a source of (.*?) without its test", prose)[1]
    compare("sources with tests", sorted(check_structure.TESTED), re.findall(r"`(\w+)`", tested))
    bugs = seeded_bugs(root)
    fewest = re.search(r"at least one in each of (.*?), and two in each of (.*?)\. ", prose)
    for count, text in enumerate(fewest.groups(), 1):
        compare(f"folders with {count} seeded bugs", sorted(path for path in bugs.FEWEST if bugs.FEWEST[path] == count),
                re.findall(r"`([^`]+)`", text))
    patches = [path.read_text(encoding="utf-8") for path in (root / "tests" / "seeded_bugs").glob("*.patch")]
    for path, count in bugs.FEWEST.items():
        broken = sum(f"\n+++ b/{path}" in text for text in patches)
        if broken < count:
            found.append(f"seeded bugs in {path}: expected {count} or more, found {broken}")
    for path in re.findall(r"`((?:\./)?(?:scripts|tests|include|bench|runtime|python|format)/[\w./]+)", page):
        if not (any(name.startswith(path.removeprefix("./")) for name in names) or "/x" in path):
            found.append(f"names {path}, which does not exist")
    return found


def misquoted(root):
    """Lines of C++ in docs/ADDING.md that no source of the family has."""
    page = (root / "docs" / "ADDING.md").read_text(encoding="utf-8")
    family = "".join(path.read_text(encoding="utf-8") for path in sorted(root.glob("converters/families/fairseq*.cc")))
    lines = {line.strip() for line in family.splitlines()}
    quoted = "".join(re.findall(r"```cpp\n(.*?)```", page, re.DOTALL)).splitlines()
    return [f"{line.strip()} is in no converters/families/fairseq*.cc" for line in quoted if line.strip() not in lines]


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = [f"CONTRIBUTING.md: {each}" for each in faults(root)]
    found += [f"docs/ADDING.md: {each}" for each in misquoted(root)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
