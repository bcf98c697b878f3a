"""Callers' values as memory that the library can read."""

from __future__ import annotations

import array
import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kinglet_lm._numbers import MAX_UINT32, MAX_UINT64
from kinglet_lm.errors import InvalidArgument

if TYPE_CHECKING:
    Uint32s = array.array[int]
    Uint64s = array.array[int]
    Floats = array.array[float]
else:
    Uint32s = Uint64s = Floats = array.array

Ids = Iterable[int]
TextOrIds = str | Iterable[int]
Bytes = bytes | bytearray | memoryview


def uint32s(values: Any, name: str = "ids") -> Uint32s:
    """Integers as an array of uint32; anything with a `tolist` (NumPy) is taken at once."""
    return _array("I", values, name, MAX_UINT32)  # type: ignore[no-any-return]


def uint64s(values: Any, name: str) -> Uint64s:
    """Integers as an array of uint64."""
    return _array("Q", values, name, MAX_UINT64)  # type: ignore[no-any-return]


def _array(kind: str, values: Any, name: str, most: int) -> Any:
    if isinstance(values, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"{name}: expected integers, found {type(values).__name__}; "
            "Model.tokenize makes ids of a text"
        )
    if isinstance(values, (set, frozenset, dict)) and name not in ("allowed", "excluded"):
        raise TypeError(f"{name}: expected integers in order, found {type(values).__name__}; "
                        "make a list of them")
    as_list = getattr(values, "tolist", None)
    try:
        if as_list is not None:
            values = as_list()
        elif not isinstance(values, (list, tuple, range)):
            values = list(values)
        if bool in set(map(type, values)):  # such as a mask, which would be read as ids 0 and 1
            raise TypeError("a bool")
        return array.array(kind, values)
    except OverflowError:
        raise InvalidArgument(
            f"kinglet: {name}: expected numbers from 0 to {most}, found one beyond"
        ) from None
    except TypeError as error:
        if isinstance(values, (list, tuple)) and str in set(map(type, values)):
            raise TypeError(
                f"{name}: expected a list of integers, found one with str; "
                "join words to a text (' '.join), or Model.tokenize makes ids of a text"
            ) from None
        raise TypeError(f"{name}: expected a list of integers, found: {error}") from None


_NOTHING = array.array("Q", [0])  # an address for no elements, as C refuses null


def address(values: Any) -> int:
    """The address of an array's elements, which must stay in memory until the call returns."""
    return int(values.buffer_info()[0] or _NOTHING.buffer_info()[0])


def zeros(kind: str, count: int) -> Any:
    """An array of `count` zeros."""
    return array.array(kind, bytes(count * array.array(kind).itemsize))


def float32s(out: Any) -> Any:
    """A caller's buffer of float32, such as a NumPy array, as a ctypes array to write into."""
    try:
        view = memoryview(out)
        if view.format != "f":
            raise TypeError(f"elements of format {view.format!r}")
        return (ctypes.c_float * (view.nbytes // 4)).from_buffer(out)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"out: expected a writable, contiguous buffer of float32, found {error}") from None


def utf8(text: str, name: str = "text") -> bytes:
    """A text as bytes; lone surrogates of `surrogateescape` become their bytes again."""
    if not isinstance(text, str):
        hint = "; decode it: data.decode('utf-8', 'surrogateescape')"
        raise TypeError(
            f"{name}: expected str, found {type(text).__name__}"
            + (hint if isinstance(text, (bytes, bytearray)) else "")
        )
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidArgument(
            f"kinglet: {name}, character {error.start}: expected Unicode text, "
            f"found a lone surrogate {text[error.start]!r}; replace it before scoring"
        ) from None
