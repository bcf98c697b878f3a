"""Callers' numbers as types of the C interface, with range checks."""

from __future__ import annotations

from operator import index
from typing import Any

from kinglet_lm.errors import InvalidArgument

MAX_UINT32 = 0xFFFFFFFF
MAX_UINT64 = 0xFFFFFFFFFFFFFFFF


def integer(value: Any, name: str, least: int = 0, most: int = MAX_UINT32) -> int:
    """A count, id, seed or size from `least` to `most`, as an int; NumPy's integers are taken.

    A bool or a float is refused, because it is most likely a mistake.
    """
    if type(value) is not int:
        # NumPy 1's bool_ is no bool and has __index__.
        is_bool = type(value).__name__ in ("bool", "bool_")
        if is_bool or not hasattr(value, "__index__"):
            raise TypeError(
                f"{name}: expected an integer, found {value!r} of type {type(value).__name__}")
        value = index(value)
    if not least <= value <= most:
        raise InvalidArgument(
            f"kinglet: {name}: expected an integer from {least} to {most}, found {value}")
    return int(value)
