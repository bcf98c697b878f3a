"""The documents of kinglet's tasks: the lines of a text file that are not empty."""

from __future__ import annotations

from typing import Any


def _lines(text: str | None, end: str) -> Any:
    from datasets import Dataset

    if text is None:
        raise ValueError("kinglet's tasks: expected the text's path, found none: "
                         """--metadata '{"text": "wiki.test.tokens"}'""")
    # The harness splits words at Unicode's white space, and counts the pieces.
    with open(text, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        lines = [line.strip() for line in file]
    return {"test": Dataset.from_list([{"text": line + end} for line in lines if line])}


def lines(text: str | None = None, **given: Any) -> Any:
    """Each line without its end."""
    return _lines(text, "")


def lines_with_ends(text: str | None = None, **given: Any) -> Any:
    """Each line with its end, which the harness counts as a word."""
    return _lines(text, "\n")
