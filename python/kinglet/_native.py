"""The C library: its path, the types of its functions, and its errors as exceptions.

Arrays are passed as addresses (`c_void_p`): a pointer type of ctypes costs more than the call.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import c_char_p, c_double, c_float, c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

from kinglet.errors import error_of

ABI_VERSION = 0  # KINGLET_ABI_VERSION of the header that this package was written for
BUFFER_TOO_SMALL = 103  # KINGLET_BUFFER_TOO_SMALL
LIBRARY_NAME = "libkinglet.so"


class ModelOptions(ctypes.Structure):
    """`kinglet_model_options`."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("session_memory_limit", c_uint64),
        ("backend", c_char_p),
        ("memory_limit", c_uint64),
        ("log", c_void_p),
        ("log_user", c_void_p),
    ]


class SessionOptions(ctypes.Structure):
    """`kinglet_session_options`."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("empty_cache", c_uint32),
        ("lanes", c_uint32),
        ("threads", c_uint32),
    ]


class DrawOptions(ctypes.Structure):
    """`kinglet_draw_options`."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("top_k", c_uint32),
        ("temperature", c_double),
        ("top_p", c_double),
        ("excluded", c_void_p),
        ("excluded_count", c_uint64),
    ]


class GenerationOptions(ctypes.Structure):
    """`kinglet_generation_options`."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("streams", c_uint32),
        ("tokens", c_uint64),
        ("seed", c_uint64),
        ("draw", c_void_p),
        ("stop", c_char_p),
        ("stop_length", c_uint64),
        ("threads", c_uint32),
        ("reserved", c_uint32),
    ]


class Work(ctypes.Structure):
    """`kinglet_work`."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("cache_computed", c_uint32),
        ("clusters_opened", c_uint64),
        ("multiplications", c_double),
        ("additions", c_double),
        ("others", c_double),
        ("cluster_count", c_uint64),
    ]


# Each function without "kinglet_": the type of its result, then its arguments, a letter each.
# p: an address (a handle or an array); s: bytes; i: int32; u: uint32; q: uint64; d: double;
# f: float; v: nothing. tests/python/binding_test.py compares the table with the headers.
SIGNATURES = {
    "abi_version": "u:",
    "version_string": "s:",
    "status_name": "s:i",
    "error_message": "s:",
    "model_options_init": "i:pu",
    "model_open": "i:spp",
    "model_open_memory": "i:pqpp",
    "model_close": "v:p",
    "model_vocabulary_size": "i:pp",
    "model_start_token": "i:pp",
    "model_positions": "i:pp",
    "model_has_words": "i:pp",
    "model_token_text": "i:pupqp",
    "model_token_texts": "i:ppqpp",
    "model_special_token": "i:pup",
    "model_find_token": "i:psqp",
    "model_source_vocabulary_size": "i:pp",
    "model_find_source_token": "i:psqp",
    "model_tokenize": "i:psqppqp",
    "model_detokenize": "i:ppqpqp",
    "model_digest": "i:ppqp",
    "model_backend": "i:ppqp",
    "model_lane_bytes": "i:pp",
    "model_state_bytes": "i:pp",
    "session_options_init": "i:pu",
    "session_create": "i:ppp",
    "session_destroy": "v:p",
    "session_lanes": "i:pp",
    "session_step": "i:puu",
    "session_step_lanes": "i:pppq",
    "session_step_many": "i:pupqpp",
    "session_encode": "i:pupq",
    "session_reset": "i:pu",
    "session_position": "i:pup",
    "session_fork": "i:puu",
    "session_cancel": "i:p",
    "model_longest_source": "i:pp",
    "model_text_segments": "i:psqpqp",
    "model_pooled_width": "i:pp",
    "model_score_count": "i:pp",
    "session_read": "i:puppq",
    "session_look_at": "i:puq",
    "session_pooled": "i:pupq",
    "session_scores": "i:puqpq",
    "session_save": "i:pup",
    "session_restore": "i:pup",
    "state_destroy": "v:p",
    "state_position": "i:pp",
    "state_equal": "i:ppp",
    "state_hash": "i:pp",
    "state_bytes": "i:pp",
    "state_write": "i:ppqp",
    "state_read": "i:ppqp",
    "embedding_create": "i:pp",
    "embedding_destroy": "v:p",
    "embedding_width": "i:pp",
    "embedding_classes": "i:pp",
    "embedding_vectors": "i:ppqpq",
    "embedding_classify": "i:ppqppq",
    "session_log_probability": "i:puup",
    "session_log_probabilities": "i:pupq",
    "session_log_probabilities_of": "i:pupqp",
    "session_probabilities": "i:pupq",
    "session_top_k": "i:puuppqp",
    "draw_options_init": "i:pu",
    "session_draw": "i:puqpp",
    "session_log_probability_lanes": "i:pppqp",
    "session_top_k_lanes": "i:ppquppqp",
    "session_draw_lanes": "i:pppqpp",
    "session_compute_lanes": "i:ppq",
    "session_last_work": "i:pup",
    "session_score_tree": "i:pppqpp",
    "session_top_p": "i:pudppqp",
    "session_rank": "i:puup",
    "session_allowed_top_k": "i:pupquppqp",
    "session_allowed_probability": "i:pupqp",
    "session_prefix_top_k": "i:pusquppqp",
    "session_prefix_probability": "i:pusqp",
    "session_next_characters": "i:pusqppqp",
    "session_text_probability": "i:pusqqpp",
    "session_text_next_characters": "i:pusqqppqpp",
    "session_text_words": "i:pusquuqpqppppp",
    "session_interval": "i:puupp",
    "session_word_at": "i:puup",
    "generation_options_init": "i:pu",
    "generation_create": "i:pppqp",
    "generation_destroy": "v:p",
    "generation_next": "i:pp",
    "generation_ended": "i:pup",
    "generation_ids": "i:pupqp",
    "generation_text": "i:pupqp",
}

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


def library_path() -> str:
    """The library's path: KINGLET_LIBRARY, or else next to the package."""
    chosen = os.environ.get("KINGLET_LIBRARY")
    if chosen:
        return chosen
    # An editable installation has two folders: that of the sources and that of the build.
    folders = list(sys.modules["kinglet"].__path__)
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
            for name, signature in SIGNATURES.items():
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
