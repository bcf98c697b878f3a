"""Checks what the compiler cannot: that the project keeps the shape its design gives it.

    check_structure.py ROOT

Prints one line per violation and exits 1 if there is any. The rules:
  includes point one way: tools, examples, python -> converters -> runtime -> kernels -> format ->
    include/kinglet/status.h; tests, bench and fuzz may include anything and nothing may include them
  no folders include each other in a circle, at any depth of those layers. Arrows between a folder
    and a folder inside it do not count: the parent names its parts (kernels/backend.cc lists the
    backends) and the parts use what the parent declares (kernels/backend.h)
  an include of the project's own names its folder ("format/reader.h", never "reader.h" or "../")
  kernels/ref, the readable specification, includes nothing of the fast backends
  only format/ and converters/ see what flatc generates
  no name is defined in two files (check_structure_duplicates.py)
  nvcc's sources have no anonymous namespace, whose names would differ from folder to folder
    (scripts/reproducible)
  converters/ call no function of the C library whose last bit differs between systems: kernels/portable_functions.h
    and kernels/sinusoids.h have others
  no line of C or C++ is wider than 100 columns, but what flatc generates
  every source in format/, kernels/, runtime/ and converters/ has its test at the same place in tests/,
    and no name in two files, but format/system_wasm.cc and its like, of which a system compiles one
  docs/ARCHITECTURE.md has a table "Where is it?" whose last column names places that exist, and in
    brackets, names that these files have; so do all other paths that it and docs/GLOSSARY.md write
    in backticks. Its tree of modules has each folder of the project and of the layers, and no other
  bench/README.md has each program of bench/ in a list under "## Programs", and no other
  no file mentions a path that exists on one machine only
"""

import fnmatch
import pathlib
import posixpath
import re
import subprocess
import sys

import check_structure_duplicates

WIDEST_LINE = 100
# A file may include files of its own layer and of lower ones.
LAYERS = {"include": 0, "format": 1, "kernels": 2, "runtime": 3, "converters": 4,
          "tools": 5, "examples": 5, "python": 5}
UNRESTRICTED = {"tests", "bench", "fuzz"}
CIRCLE_FREE = set(LAYERS) - {"examples", "python"}
DUPLICATE_FREE = CIRCLE_FREE | UNRESTRICTED
TESTED = ("format", "kernels", "runtime", "converters")
SOURCES = {".cc", ".cu", ".c"}
CODE = SOURCES | {".h", ".hpp", ".cuh"}
ARCHITECTURE, GLOSSARY, BENCH = "docs/ARCHITECTURE.md", "docs/GLOSSARY.md", "bench/README.md"

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
FAMILY = re.compile(r"^constexpr Family k", re.MULTILINE)
GENERATED = re.compile(r"_generated\.h$")
FAST = re.compile(r"^(kernels/(cpu|onednn|cuda)/|hwy/|dnnl|oneapi/|cuda|cublas|"
                  r"immintrin\.h|arm_neon\.h)")
ANONYMOUS = re.compile(r"\s*namespace\s*\{")
# What files are made of has the same bits on every system.
ROUNDED_AS_IT_LIKES = re.compile(r"\bstd::(exp2?|expm1|log(1p|2|10)?|pow|cbrt|hypot|sin|cos|tan|sinh|cosh|tanh|erfc?|[lt]gamma)\(")
BACKTICKED = re.compile(r"`([^`\s]+)`")
SYMBOL = re.compile(r"\(((?:`\w+`(?:, )?)+)\)")  # (`Name`, `Other`) after a path
BRANCH = re.compile(r"(  )?([\w.]+)/ ")  # a line of the tree of modules
SHOWN_PARTS = ("tools", "converters", "runtime", "kernels")  # whose folders the tree shows, all of them
OTHER_SYSTEM = re.compile(r"^(format|tools)/system_(wasm|windows)\.cc$")  # instead of system_posix.cc
NO_PROGRAM = re.compile(r"\.(h|md|txt)$|(_rows|_measure|_report)\.cc$")
# "folder/file.ext", perhaps with * for several files.
FILE_PATH = re.compile(r"(?:[\w.*-]+/)+[\w.*-]+\.[a-z]+$")
# Spelt so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:work|home|root)/|\.\.[/]shared")


def tracked_files(root):
    """The files git keeps or would keep; outside a repository, all but those of build folders."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, check=True).stdout.decode()
        names = [name for name in listing.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        names = [str(path.relative_to(root)) for path in root.rglob("*")
                 if not path.relative_to(root).parts[0].startswith(("build", ".git"))]
    return sorted(name for name in set(names) if (root / name).is_file())


def layer_of(include):
    """The top folder an include path lies in, or None if it is not the project's."""
    top = include.split("/")[0]
    if top == "kinglet":
        return "include"
    return top if "/" in include and (top in LAYERS or top in UNRESTRICTED) else None


def include_violation(name, include, own_names):
    """Why the file `name` may not include `include`, or None."""
    top = name.split("/")[0]
    if include.startswith("../") or include.startswith("./"):
        return "an include names its folder from the project's root"
    if top in UNRESTRICTED or top not in LAYERS:
        return None
    if name.startswith("kernels/ref/") and FAST.search(include):
        return "kernels/ref includes nothing of the fast backends"
    if GENERATED.search(include):
        allowed = top in ("format", "converters")
        return None if allowed else "only format/ and converters/ see flatc's output"
    target = layer_of(include)
    if target is None:
        if include in own_names and top != "examples":
            return "an include names its folder from the project's root"
        return None
    if target in UNRESTRICTED:
        return f"nothing includes {target}/"
    if LAYERS[target] > LAYERS[top]:
        return f"{top}/ is below {target}/"
    is_interface = include.startswith("kinglet/") and include != "kinglet/status.h"
    if is_interface and LAYERS[top] < LAYERS["runtime"] and top != "include":
        return f"{top}/ is below the C interface"
    return None


def path_of(include):
    """The path from the root of an include of the project's own."""
    return "include/" + include if include.startswith("kinglet/") else include


def circle_of(arrows, start):
    """The shortest way along `arrows` from a folder back to it, both ends named, or None."""
    ways = [[start]]
    reached = set()
    for way in ways:  # grows while it is read
        for target in sorted(arrows.get(way[-1], ())):
            if target == start:
                return way + [start]
            if target not in reached:
                reached.add(target)
                ways.append(way + [target])
    return None


def circle_violations(includes, names):
    """One line for each shortest circle of folders, with an include for each of its arrows."""
    arrows = {}  # folder -> {folder it includes: the first include that says so}
    for name, number, include in includes:
        source, target = posixpath.dirname(name), posixpath.dirname(path_of(include))
        inside = (source + "/").startswith(target + "/") or (target + "/").startswith(source + "/")
        if name.split("/")[0] in CIRCLE_FREE and path_of(include) in names and not inside:
            witness = f"{name}:{number} includes {include}"
            arrows.setdefault(source, {}).setdefault(target, witness)
    found = [circle_of(arrows, folder) for folder in sorted(arrows)]
    circles = {frozenset(circle): circle for circle in reversed(found) if circle}
    return ["folders include each other in a circle: " + " -> ".join(circle) + " ("
            + "; ".join(arrows[a][b] for a, b in zip(circle, circle[1:])) + ")"
            for circle in circles.values()]


def exists(path, names):
    """Whether the tree has such a file, or such a folder with a file in it."""
    path = path_of(path)
    if "*" in path:
        return any(fnmatch.fnmatch(name, path) for name in names)
    return path in names or any(name.startswith(path.rstrip("/") + "/") for name in names)


def table_rows(lines, heading):
    """(line number, last cell) of each row of the first table under `heading`, without its head."""
    rows, inside = [], False
    for number, line in enumerate(lines, 1):
        if line.startswith("#"):
            inside = line.strip() == heading
        elif inside and line.startswith("|"):
            rows.append((number, line.strip().strip("|").split("|")[-1]))
        elif rows:
            break
    return rows[2:]


def unknown_symbols(cell, root):
    """Names in brackets of a cell that the file or files before them do not have."""
    found, at = [], 0
    for match in SYMBOL.finditer(cell):
        files = [root / path_of(path) for path in BACKTICKED.findall(cell[at:match.start()]) if FILE_PATH.match(path)]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
        at = match.end()
        found += [name for name in re.findall(r"\w+", match[1]) if not re.search(rf"\b{name}\b", text)]
    return found


def tree_violations(lines, names):
    """Folders that the tree of modules lacks or that the project lacks."""
    shown, parent = set(), ""
    blocks = "\n".join(lines).split("## The modules", 1)
    if len(blocks) < 2:
        return [f"{ARCHITECTURE}: expected a tree under '## The modules', found none"]
    for line in blocks[1].split("```")[1].splitlines():
        match = BRANCH.match(line)
        if match:
            parent = parent if match[1] else match[2]
            shown.add(f"{parent}/{match[2]}" if match[1] else parent)
    folders = {tuple(name.split("/")[:-1]) for name in names}
    wanted = {parts[0] for parts in folders if parts and not parts[0].startswith(".")}
    wanted |= {"/".join(parts[:2]) for parts in folders if len(parts) > 1 and parts[0] in SHOWN_PARTS}
    return ([f"{ARCHITECTURE}: the tree of modules lacks {name}/" for name in sorted(wanted - shown)]
            + [f"{ARCHITECTURE}: the tree of modules has {name}/, which does not exist" for name in sorted(shown)
               if not exists(name, names)])


def bench_violations(text, names):
    """Programs of bench/ that the lists of its README lack, and others that they have."""
    programs = {re.sub(r"\.(cc?|cu)$", "", name.removeprefix("bench/")) for name in names
                if re.match(r"bench/(peers/)?[\w.]+$", name) and not re.search(NO_PROGRAM, name)}
    lists = text.split("## Programs\n")[-1].split("\n## ")[0]
    heads = [line.split(":")[0] for line in lists.splitlines() if line.startswith("* `")]
    listed = [name for head in heads for name in BACKTICKED.findall(head)]
    return ([f"{BENCH}: expected {name} under '## Programs', found none" for name in sorted(programs - set(listed))]
            + [f"{BENCH}: lists {name}, which does not exist" for name in sorted(set(listed) - programs)])


def document_violations(name, lines, names, root):
    """Places that docs/ARCHITECTURE.md and docs/GLOSSARY.md name and the tree does not have."""
    found = tree_violations(lines, names) if name == ARCHITECTURE else []
    answers = {}
    if name == ARCHITECTURE:
        answers = dict(table_rows(lines, "## Where is it?"))
        if not answers:
            found.append(f"{name}: expected a table under '## Where is it?', found none")
    for number, line in enumerate(lines, 1):
        paths = {path for path in BACKTICKED.findall(line) if FILE_PATH.match(path)}
        if number in answers:
            answer = {path for path in BACKTICKED.findall(answers[number]) if "/" in path}
            if not answer:
                found.append(f"{name}:{number}: expected a path in the last column, found none")
            paths |= answer
            found += [f"{name}:{number}: {symbol} is not in the file before it"
                      for symbol in unknown_symbols(answers[number], root)]
        found += [f"{name}:{number}: names {path}, which does not exist"
                  for path in sorted(paths) if not exists(path, names)]
    return found


def line_violation(line, path, is_own_code):
    """What is wrong with one line of any file, or None."""
    if MACHINE_PATH.search(line):
        return f"a path of one machine: {line.strip()[:80]}"
    if is_own_code and len(line) > WIDEST_LINE:
        return f"{len(line)} columns, at most {WIDEST_LINE} expected"
    if path.suffix in (".cu", ".cuh") and ANONYMOUS.match(line):
        return "nvcc names what is anonymous after its folder: a namespace with a name expected"
    call = ROUNDED_AS_IT_LIKES.search(line) if path.parts[0] == "converters" else None
    if call:
        return f"{call[0]}) has other bits on other systems: one of kernels/portable_functions.h expected"
    return None


def violations(root):
    names = tracked_files(root)
    paths = [pathlib.PurePosixPath(name) for name in names]
    own_names = {path.name for path in paths if path.suffix in CODE}
    found, includes, sources = [], [], {}
    for name, path in zip(names, paths):
        try:
            text = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a checkpoint or a model: not text
        lines = text.splitlines()
        is_own_code = path.suffix in CODE and not GENERATED.search(name)
        for number, line in enumerate(lines, 1):
            wrong = line_violation(line, path, is_own_code)
            if wrong:
                found.append(f"{name}:{number}: {wrong}")
            match = INCLUDE.match(line) if path.suffix in CODE else None
            if not match:
                continue
            includes.append((name, number, match.group(1)))
            reason = include_violation(name, match.group(1), own_names)
            if reason:
                found.append(f"{name}:{number}: includes {match.group(1)}, but {reason}")
        # Every family is tested by checkpoints of its framework: converters.convert_fixtures.
        if path.suffix in SOURCES and path.parts[0] in TESTED and not (
                FAMILY.search(text) or OTHER_SYSTEM.match(name)):
            wanted = "tests/" + str(path.with_suffix("")) + "_test."
            if not any(other.startswith(wanted) for other in names):
                found.append(f"{name}: expected a test {wanted}*, found none")
        if is_own_code and path.parts[0] in DUPLICATE_FREE and not OTHER_SYSTEM.match(name):
            sources[name] = text
        if name in (ARCHITECTURE, GLOSSARY):
            found += document_violations(name, lines, set(names), root)
        if name == BENCH:
            found += bench_violations(text, names)
    found += circle_violations(includes, set(names))
    found += [f"{files[0]}: defines the {kind} {what}, and so does " + ", ".join(files[1:])
              for kind, what, files in check_structure_duplicates.duplicates(sources)]
    return found


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    found = violations(root)
    for line in found:
        print(line)
    print(f"structure: {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
