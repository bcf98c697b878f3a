"""Checks what the compiler cannot: that the project keeps the shape its design gives it.

    check_structure.py ROOT

Prints one line per violation and exits 1 if there is any. The rules:
  includes point one way: tools, examples, python -> converters -> runtime -> kernels -> format ->
    include/kinglet/status.h; tests and bench may include anything and nothing may include them
  an include of the project's own names its folder ("format/reader.h", never "reader.h" or "../")
  kernels/ref, the readable specification, includes nothing of the fast backends
  only format/ and converters/ see what flatc generates
  no source file is longer than 500 lines, but what flatc generates
  every source in format/, kernels/, runtime/ and converters/ has its test beside it in tests/
  no file speaks of a place that exists on one machine only
"""

import pathlib
import re
import subprocess
import sys

LARGEST_FILE = 500
# A file may include files of its own layer and of lower ones.
LAYERS = {"include": 0, "format": 1, "kernels": 2, "runtime": 3, "converters": 4,
          "tools": 5, "examples": 5, "python": 5}
UNRESTRICTED = {"tests", "bench"}
TESTED = ("format", "kernels", "runtime", "converters")
SOURCES = {".cc", ".cu", ".c"}
CODE = SOURCES | {".h", ".hpp", ".cuh"}
COUNTED = CODE | {".py"}

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
GENERATED = re.compile(r"_generated\.h$")
FAST = re.compile(r"^(kernels/(cpu|onednn|cuda)/|hwy/|dnnl|oneapi/|cuda|cublas|immintrin\.h|arm_neon\.h)")
# Spelt so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.-])/(?:work|home|root)/|\.\.[/]shared")


def tracked_files(root):
    """The files git keeps or would keep; outside a repository, every file but the build folders'."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
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
        return None if top in ("format", "converters") else "only format/ and converters/ see flatc's output"
    target = layer_of(include)
    if target is None:
        if include in own_names and top != "examples":
            return "an include names its folder from the project's root"
        return None
    if target in UNRESTRICTED:
        return f"nothing includes {target}/"
    if LAYERS[target] > LAYERS[top]:
        return f"{top}/ is below {target}/"
    if include in ("kinglet/kinglet.h", "kinglet/kinglet.hpp") and LAYERS[top] < LAYERS["runtime"] and top != "include":
        return f"{top}/ is below the C interface"
    return None


def violations(root):
    names = tracked_files(root)
    tests = {name for name in names if name.startswith("tests/")}
    own_names = {pathlib.PurePosixPath(name).name for name in names if pathlib.PurePosixPath(name).suffix in CODE}
    found = []
    for name in names:
        path = pathlib.PurePosixPath(name)
        try:
            lines = (root / name).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a checkpoint or a model: not text
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line):
                found.append(f"{name}:{number}: a path of one machine: {line.strip()[:80]}")
            match = INCLUDE.match(line) if path.suffix in CODE else None
            reason = include_violation(name, match.group(1), own_names) if match else None
            if reason:
                found.append(f"{name}:{number}: includes {match.group(1)}, but {reason}")
        if path.suffix in COUNTED and not GENERATED.search(name) and len(lines) > LARGEST_FILE:
            found.append(f"{name}: {len(lines)} lines, at most {LARGEST_FILE} expected")
        if path.suffix in SOURCES and path.parts[0] in TESTED:
            wanted = "tests/" + str(path.with_suffix("")) + "_test."
            if not any(test.startswith(wanted) for test in tests):
                found.append(f"{name}: expected a test {wanted}*, found none")
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
