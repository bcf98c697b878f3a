"""CONTRIBUTING.md says what CMakePresets.json, check_structure.py and scripts/seeded_bugs have, and names what exists.
docs/ADDING.md quotes lines of the family that it walks through. Constants that pages state are those of the sources,
and the packages of docs/INSTALL.md those of scripts/setup. Paths and links in pages lead to files, and names
in docs/ARCHITECTURE.md to sources.

    check_pages.py ROOT
"""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys

import check_structure


# Where a page states a constant: the page, its words around (numbers); a source, its line around (the value); the value of
# the source in the page's unit.
CONSTANTS = [
    ("docs/ARCHITECTURE.md", r"sends up to (\S+) tokens of one stream", "runtime/text_block.cc", r"kMostTokens = (\d+)", 1),
    ("docs/ARCHITECTURE.md", r"nodes run on up to (\S+) tokens at once", "runtime/session.cc", r"kMost = (\d+), kMostBytes", 1),
    ("docs/ARCHITECTURE.md", r"list of (\S+) KiB pages", "runtime/state.h", r"kBytes = (\d+)", 1024),
    ("docs/FORMAT.md", r"format version (\d+)", "format/frame.h", r"kFormatVersion = (\d+)", 1),
    ("CHANGELOG.md", r"States .*? are refused: version (\d+)", "runtime/state.cc", r"kVersion = (\d+)", 1),
    ("docs/SCORING.md", r"in parts of (\S+) tokens", "tools/score.cc", r"kScoreChunk = (\d+)", 1),
    ("docs/SCORING.md", r"of which up to (\S+) go through", "runtime/text_block.cc", r"kMostTokens = (\d+)", 1),
    ("docs/SCORING.md", r"more than (\S+) % of the scored", "tools/loss_totals.cc", r"kManyUnknown = (\S+);", 0.01),
    ("docs/QUERIES.md", r"caller chooses, 1 to (\S+), and", "runtime/text_prefix.cc", r"kMostBeam = (\d+)", 1),
    ("docs/QUERIES.md", r"takes up to (\S+?)\. Each", "tools/predictor.cc", r"kMostSteps = (\d+)", 1),
    ("docs/QUERIES.md", r"as many as `--top`, up to (\S+?)\.", "tools/predictor.cc", r"kMostBeginnings = (\d+)", 1),
    ("docs/QUERIES.md", r"one tile of (\S+) logits", "kernels/numerics.h", r"kSumTile = (\d+)", 1),
    ("docs/TUNING.md", r"at the published (\S+) and", "converters/tuning/cache_search.h", r"kPublishedStart = \{([\d.]+)", 1),
    ("docs/TUNING.md", r"at the published \S+ and (\d\.\d+)", "converters/tuning/cache_search.h",
     r"kPublishedStart = \{[\d.]+, ([\d.]+)", 1),
    ("docs/TUNING.md", r"starts as 1/(\d+) of", "converters/tuning/cache_search.cc", r"kFirstInterval = 1.0 / (\d+)", 1),
    ("docs/TUNING.md", r"grows by (\S+) when", "converters/tuning/cache_search.cc", r"kGrowth = ([\d.]+)", 1),
    ("docs/TUNING.md", r"both are below 1/(\d+)", "converters/tuning/cache_search.cc", r"kSmallInterval = 1.0 / (\d+)", 1),
    ("docs/TUNING.md", r"At most (\S+) GiB are kept", "converters/tuning/cache_likelihood.h",
     r"kTuningMemory = uint64_t\{(\d+)\} << 30", 1),
    ("docs/PLANNING.md", r"in up to (\S+) MB", "converters/planning/recorded_context.h",
     r"kMostBytes = uint64_t\{(\d+)\} << 20", 1),
    ("docs/PLANNING.md", r"lose 1 \+ (\d+) e\^2", "converters/planning/group_losses.cc", r"kGrowth = (\d+)", 1),
    ("docs/MEASURING.md", r"interleaved in (\d+) rounds", "tools/bench/bench_input.h", r"kUsualRounds = (\d+)", 1),
    ("docs/MEASURING.md", r"fastest of (\d+) reads", "tools/bench/bench_measure.cc", r"kReads = (\d+)", 1),
]


# Names of files that stand for others.
EXAMPLES = {"format/x.cc", "tests/format/x_test.cc"}


def other_constants(root):
    """Constants of CONSTANTS that a page states otherwise, or that are not found."""
    found = []
    for page, words, source, line, unit in CONSTANTS:
        stated = re.search(words, " ".join((root / page).read_text(encoding="utf-8").split()))
        value = re.search(line, (root / source).read_text(encoding="utf-8"))
        if not stated or not value:
            found.append(f"{page}: expected {words!r}, and {line!r} in {source}: not found")
        elif abs(float(stated[1].replace(",", "")) - float(value[1]) / unit) > 1e-9:
            found.append(f"{page}: {stated[0]!r}, but {value[0]!r} in {source}")
    return found


def other_families(root):
    """Families that docs/FAMILIES.md has no row of."""
    files = [path.read_text(encoding="utf-8") for path in root.glob("converters/families/*.cc")]
    named = set(re.findall(r'^ +\.name = "([\w-]+)",', "".join(files), re.MULTILINE)) - {"fairseq-translation"}  # not read
    cells = re.findall(r"^\| (`[^|]*) \|", (root / "docs/FAMILIES.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [f"no row of {name}" for name in sorted(named - set(check_structure.BACKTICKED.findall(" ".join(cells))))]


def unknown_names(root, names):
    """Names of types, functions and members that docs/ARCHITECTURE.md has in backticks and no source declares."""
    code = [name for name in names if name.split("/")[0] in check_structure.LAYERS
            and pathlib.PurePosixPath(name).suffix in check_structure.CODE]
    words = set().union(*(re.findall(r"\w+", (root / name).read_text(encoding="utf-8")) for name in code))
    classes = {}  # a class: the words of the headers that define it
    for name in code:
        text = (root / name).read_text(encoding="utf-8")
        for each in re.findall(r"^(?:class|struct) (\w+)[^;]*\{$", text, re.MULTILINE):
            classes.setdefault(each, set()).update(re.findall(r"\w+", text))
    page = (root / check_structure.ARCHITECTURE).read_text(encoding="utf-8")
    found = []
    for owner, member in re.findall(r"`(?:(\w+)::)?([A-Za-z]\w*)(?:\(\w*\))?`", page):
        if member not in words if not owner else member not in classes.get(owner, ()):
            if owner or re.search(r"[a-z][A-Z]|_", member):
                found.append(f"names {owner + '::' if owner else ''}{member}, which no source has")
    return found


def anchors(text):
    """What a link after # may name: headings, in small letters, without punctuation."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing_paths(root, names):
    """Files of the project's folders that a page writes in backticks, and links of pages to files, that do not exist."""
    found = []
    tops = {name.split("/")[0] for name in names if "/" in name}
    for name in sorted(names):
        if not name.endswith(".md") or name.startswith(("docs/lab/", "tests/data/")):
            continue
        text = (root / name).read_text(encoding="utf-8")
        paths = {path for path in check_structure.BACKTICKED.findall(text)
                 if check_structure.FILE_PATH.match(path) and path.split("/")[0] in tops}
        found += [f"{name}: names {path}, which does not exist" for path in sorted(paths - EXAMPLES)
                  if not check_structure.exists(path, names)]
        for link, _, anchor in (each.partition("#") for each in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text)):
            target = (root / name).parent / link if link else root / name
            if not target.exists():
                found.append(f"{name}: links to {link}, which does not exist")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
                found.append(f"{name}: links to {link}#{anchor}, which has no such heading")
    return found


def other_packages(root):
    """Packages that scripts/setup installs and the table of docs/INSTALL.md lacks, or the reverse."""
    setup = re.search(r"^packages=\((.*?)\n\)", (root / "scripts/setup").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    table = (root / "docs/INSTALL.md").read_text(encoding="utf-8").split("## Packages")[1].split("\n## ")[0]
    named = set(" ".join(re.findall(r"^\|[^|]*\| `([^`]*)` \|$", table, re.MULTILINE)).split())
    return [f"{each} is in one of scripts/setup and the table of packages" for each in
            sorted(named ^ (set(setup[1].split()) - {"ccache", "git"}))]


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
            sorted(re.findall(r"^\| `([\w-]+)` \|", page, re.MULTILINE)))
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
    found += [f"docs/FAMILIES.md: {each}" for each in other_families(root)]
    found += [f"docs/INSTALL.md: {each}" for each in other_packages(root)]
    found += [f"docs/ARCHITECTURE.md: {each}" for each in unknown_names(root, set(check_structure.tracked_files(root)))]
    found += other_constants(root) + missing_paths(root, set(check_structure.tracked_files(root)))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
