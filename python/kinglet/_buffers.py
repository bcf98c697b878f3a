"""What callers pass in, as memory that the library can read."""

from __future__ import annotations

import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kinglet.errors import InvalidArgument

if TYPE_CHECKING:
    Uint32s = array.array[int]
    Floats = array.array[float]
else:
    Uint32s = Floats = array.array

Ids = Iterable[int]
TextOrIds = str | Iterable[int]

MAX_UINT32 = 0xFFFFFFFF


def uint32s(values: Any, name: str = "ids") -> Uint32s:
    """Integers as an array of uint32; anything with a `tolist` (NumPy) is taken at once."""
    if isinstance(values, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            f"{name}: expected integers, found {type(values).__name__}; "
            "Model.tokenize makes ids of a text"
        )
    as_list = getattr(values, "tolist", None)
    try:
        return array.array("I", values if as_list is None else as_list())
    except OverflowError:
        raise InvalidArgument(
            f"kinglet: {name}: expected numbers from 0 to {MAX_UINT32}, found one beyond"
        ) from None
    except TypeError as error:
        raise TypeError(f"{name}: expected a list of integers, found: {error}") from None


def refused_id(value: Any) -> InvalidArgument:
    """The exception for a number that is no uint32."""
    return InvalidArgument(
        f"kinglet: number: expected one from 0 to {MAX_UINT32}, found {value!r}"
    )


def address(values: Any) -> int:
    """Where an array's elements lie; they must not move or die before the call returns."""
    return int(values.buffer_info()[0])


def zeros(kind: str, count: int) -> Any:
    """An array of `count` zeros."""
    return array.array(kind, bytes(count * array.array(kind).itemsize))


def utf8(text: str, name: str = "text") -> bytes:
    """A text as bytes; those that `surrogateescape` kept become themselves again."""
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
