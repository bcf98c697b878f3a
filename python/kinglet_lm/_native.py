"""The C library: its path, the types of its functions, and its errors as exceptions.

Arrays are passed as addresses (`c_void_p`): a pointer type of ctypes costs more than the call.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_char_p, c_double, c_float, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

from kinglet_lm._interface import ABI_VERSION, FIELDS, FUNCTIONS
from kinglet_lm.errors import error_of

BUFFER_TOO_SMALL = 103  # KINGLET_BUFFER_TOO_SMALL
LIBRARY_NAME = {"win32": "kinglet.dll", "darwin": "libkinglet.dylib"}.get(
    sys.platform, "libkinglet.so"
)

TYPES: dict[str, Any] = {
    "p": c_void_p,
    "s": c_char_p,
    "i": c_int32,
    "u": c_uint32,
    "q": c_uint64,
    "d": c_double,
    "f": c_float,
    "v": None,
}


def _fields(structure: str) -> list[tuple[str, Any]]:
    names = (name.split(".") for name in FIELDS)
    return [(field, TYPES[FIELDS[f"{of}.{field}"]]) for of, field in names if of == structure]


class ModelOptions(ctypes.Structure):
    """`kinglet_model_options`."""

    _fields_ = _fields("model_options")


class SessionOptions(ctypes.Structure):
    """`kinglet_session_options`."""

    _fields_ = _fields("session_options")


class DrawOptions(ctypes.Structure):
    """`kinglet_draw_options`."""

    _fields_ = _fields("draw_options")


class GenerationOptions(ctypes.Structure):
    """`kinglet_generation_options`."""

    _fields_ = _fields("generation_options")


class CoderOptions(ctypes.Structure):
    """`kinglet_coder_options`."""

    _fields_ = _fields("coder_options")


class BeamOptions(ctypes.Structure):
    """`kinglet_beam_options`."""

    _fields_ = _fields("beam_options")


class TypingInput(ctypes.Structure):
    """`kinglet_typing_input`."""

    _fields_ = _fields("typing_input")


class Work(ctypes.Structure):
    """`kinglet_work`."""

    _fields_ = _fields("work")


def library_path() -> str:
    """The library's path: KINGLET_LIBRARY, or else next to the package."""
    chosen = os.environ.get("KINGLET_LIBRARY")
    if chosen:
        return chosen
    # An editable installation has two folders: that of the sources and that of the build.
    folders = list(sys.modules["kinglet_lm"].__path__)
    for folder in folders:
        path = os.path.join(folder, LIBRARY_NAME)
        if os.path.exists(path):
            return path
    raise ImportError(
        f"kinglet: library: expected {LIBRARY_NAME} in {' or '.join(folders)}, found none; "
        "install the package (pip install ./python) or name the file in KINGLET_LIBRARY"
    )


def _load() -> ctypes.CDLL:
    path = library_path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"kinglet: {path}: expected a shared library, found: {error}") from None
    try:
        found = library.kinglet_abi_version
        found.restype, found.argtypes = c_uint32, []
        version = found()
        if version == ABI_VERSION:
            for name, signature in FUNCTIONS.items():
                function = getattr(library, "kinglet_" + name)
                function.restype = TYPES[signature[0]]
                function.argtypes = [TYPES[letter] for letter in signature[2:]]
    except AttributeError as error:
        raise ImportError(
            f"kinglet: {path}: expected the library of this package, found another: {error}; "
            "unset KINGLET_LIBRARY or install the package again"
        ) from None
    if version != ABI_VERSION:
        raise ImportError(
            f"kinglet: {path}: expected interface version {ABI_VERSION}, found {version}; "
            "unset KINGLET_LIBRARY or install the package again"
        )
    return library


lib = _load()


def untyped(name: str) -> Any:
    """A function for fast calls: declared argument types cost half a microsecond a call.

    Arguments are int below 2**32, which is not checked, and results of c_void_p.from_param;
    any other type is an ArgumentError.
    """
    return lib["kinglet_" + name]


def check(status: int) -> None:
    """Raises the exception of a status other than success, in the thread that made the call."""
    if status:
        raise error_of(
            status,
            lib.kinglet_status_name(status).decode(),
            lib.kinglet_error_message().decode("utf-8", "replace"),
        )


def text_of(call: Any, *arguments: Any) -> bytes:
    """The bytes that call(*arguments, buffer, capacity, needed) writes, without the last NUL."""
    needed = c_uint64()
    check(call(*arguments, None, 0, ctypes.addressof(needed)))
    buffer = ctypes.create_string_buffer(needed.value)
    check(call(*arguments, ctypes.addressof(buffer), needed.value, ctypes.addressof(needed)))
    return buffer.raw[: needed.value - 1]


def number_of(kind: Any, call: Any, *arguments: Any) -> Any:
    """The number of this ctypes kind that call(*arguments, out) writes."""
    out = kind()
    check(call(*arguments, ctypes.addressof(out)))
    return out.value
