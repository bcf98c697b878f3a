#!/usr/bin/env python3
"""Writes docs/PYTHON_REFERENCE.md from the package's docstrings.

    reference.py [FILE]        (to standard output without FILE)
"""

import inspect
import sys

import kinglet_lm
import kinglet_lm.kenlm

HEAD = """# The package `kinglet_lm`: every name

Written by `python/reference.py` from the docstrings; a test compares. [PYTHON](PYTHON.md) is
the tour.
"""


def signature(value):
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "()"
    parameters = [p for p in found.parameters.values() if p.name != "self"]
    return str(found.replace(parameters=parameters)).replace("'", "")


def entry(name, value):
    """One line of a class: a property or a method."""
    text = " ".join((inspect.getdoc(value) or "").split())
    if isinstance(value, property):
        return f"- `{name}`: {text}"
    return f"- `{name}{signature(value)}`: {text}"


def members(kind):
    found = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("kinglet_lm"):
            for name, value in vars(base).items():
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                if not name.startswith("_") and (inspect.isfunction(value)
                                                 or isinstance(value, property)):
                    found[name] = value
    found.pop("after_fork", None)
    return found


def page():
    lines = [HEAD]
    for module in (kinglet_lm, kinglet_lm.kenlm):
        lines += [f"## `{module.__name__}`", "", inspect.getdoc(module) or "", ""]
        for name in module.__all__:
            value = getattr(module, name)
            title = f"{module.__name__}.{name}"
            if not inspect.isclass(value) and not inspect.isfunction(value):
                lines += [f"### `{title}` = {value!r}", ""]
                continue
            shown = "" if inspect.isclass(value) and issubclass(value, Exception) else signature(
                value)
            if inspect.isclass(value) and "__init__" not in vars(value):
                shown = ""
            lines += [f"### `{title}{shown}`", "", inspect.getdoc(value) or "", ""]
            if inspect.isclass(value):
                entries = [entry(*item) for item in members(value).items()]
                lines += [*entries, ""] if entries else []
    return "\n".join(lines).rstrip() + "\n"


def main():
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(page())
    else:
        sys.stdout.write(page())


if __name__ == "__main__":
    main()
