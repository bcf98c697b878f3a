"""The package binds every function of the C headers, with their types, and no other.

    binding_test.py HEADERS_FOLDER        (PYTHONPATH, KINGLET_LIBRARY: the package and library)
"""

import ctypes
import pathlib
import re
import sys

from kinglet import _native

LETTERS = {"uint32_t": "u", "int32_t": "i", "kinglet_status": "i", "uint64_t": "q", "double": "d",
           "float": "f", "void": "v"}


def letter(declared):
    """How a C type is passed: text as bytes, other pointers as addresses."""
    words = [word for word in declared.replace("*", " * ").split() if word != "const"]
    if "*" in words:
        return "s" if words[0] == "char" and "const" in declared else "p"
    return LETTERS[words[0]]


def plain(text):
    return re.sub(r"\s+", " ", re.sub(r"//[^\n]*|^#[^\n]*", "", text, flags=re.MULTILINE))


def main():
    headers = [plain(path.read_text()) for path in sorted(pathlib.Path(sys.argv[1]).glob("*.h"))]
    declared = {}
    for text in headers:
        pattern = r"KINGLET_API ([\w ]+?[ *]+)kinglet_(\w+)\(([^)]*)\)"
        for result, name, arguments in re.findall(pattern, text):
            kinds = "".join(letter(a.rsplit(" ", 1)[0] if "*" not in a else a)
                            for a in arguments.split(",") if a.strip() != "void")
            declared[name] = f"{letter(result)}:{kinds}"
    assert len(declared) > 60, len(declared)
    for name in sorted(declared.keys() | _native.SIGNATURES.keys()):
        bound = _native.SIGNATURES.get(name)
        assert bound == declared.get(name), f"kinglet_{name}: headers {declared.get(name)}, {bound}"
    structures = {"model_options": _native.ModelOptions, "session_options": _native.SessionOptions,
                  "draw_options": _native.DrawOptions, "work": _native.Work,
                  "generation_options": _native.GenerationOptions}
    found = {}
    for text in headers:
        found.update({name: body for body, name in
                      re.findall(r"typedef struct \w+ \{([^}]*)\} kinglet_(\w+);", text)})
    assert found.keys() == structures.keys(), found.keys()
    for name, structure in structures.items():
        fields = []
        for field in found[name].split(";")[:-1]:
            function = re.search(r"\(\*(\w+)\)\(", field)
            fields.append((function[1], "p") if function else
                          (field.replace("*", " ").split()[-1], letter(field.rsplit(" ", 1)[0]
                           if "*" not in field else field)))
        ours = [(name, next(key for key, kind in _native.TYPES.items() if kind is declared_type))
                for name, declared_type in structure._fields_]
        assert fields == ours, f"{name}: header {fields}, package {ours}"
        assert ctypes.sizeof(structure) % 8 == 0 or name == "session_options"
    version = re.search(r"#define KINGLET_ABI_VERSION (\d+)",
                        (pathlib.Path(sys.argv[1]) / "kinglet.h").read_text())
    assert int(version[1]) == _native.ABI_VERSION
    print(f"{len(declared)} functions and {len(structures)} structures as in the headers")


main()
