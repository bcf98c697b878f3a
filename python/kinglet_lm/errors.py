"""Exceptions: every refusal of the library, with its status, place, expected and found."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"(?P<what>.*?): (?P<place>.*): expected (?P<expected>.*?), found (?P<found>.*)", re.DOTALL
)


class Error(Exception):
    """An error message in one line: `WHAT: WHERE: expected X, found Y`.

    `status` is the number of the C interface (`status_name` its name); `place`, `expected` and
    `found` are the parts of the message, or empty if the message has another form.
    """

    status = 0
    status_name = ""

    def __init__(self, message: str, status: int | None = None, status_name: str = "") -> None:
        super().__init__(message)
        if status is not None:
            self.status = status
            self.status_name = status_name
        parts = _FORM.fullmatch(message)
        self.message = message
        self.what = parts["what"] if parts else message
        self.place = parts["place"] if parts else ""
        self.expected = parts["expected"] if parts else ""
        self.found = parts["found"] if parts else ""

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.status, self.status_name)


class InvalidArgument(Error, ValueError):
    """An argument is wrong (KINGLET_INVALID_ARGUMENT, KINGLET_BUFFER_TOO_SMALL)."""

    status = 100
    status_name = "KINGLET_INVALID_ARGUMENT"


class IdOutOfRange(Error, IndexError):
    """No word of the vocabulary has this id (KINGLET_ID_OUT_OF_RANGE)."""

    status = 101
    status_name = "KINGLET_ID_OUT_OF_RANGE"


class UnknownWord(Error, KeyError):
    """The vocabulary lacks the word (KINGLET_UNKNOWN_WORD)."""


class NotFound(Error, FileNotFoundError):
    """A file does not exist (KINGLET_NOT_FOUND)."""


class ReadFailed(Error, OSError):
    """A file could not be read (KINGLET_IO_ERROR)."""


class DamagedFile(Error, ValueError):
    """A file's bytes are damaged (KINGLET_CORRUPT and related statuses)."""


class OutOfMemory(Error, MemoryError):
    """Memory is exhausted, or a memory limit reached (KINGLET_OUT_OF_MEMORY)."""


class TooManySteps(Error, RuntimeError):
    """A text takes more steps than were allowed (KINGLET_TOO_MANY_STEPS)."""


class WrongOrder(Error, RuntimeError):
    """A query before the first step, or before a source (KINGLET_NO_TOKEN_YET and others)."""


class Cancelled(Error, RuntimeError):
    """Another thread cancelled the call (KINGLET_CANCELLED)."""


class Unsupported(Error, NotImplementedError):
    """The model, or this build, does not support the request (KINGLET_UNSUPPORTED)."""


class NotFinite(Error, ArithmeticError):
    """The model's own arithmetic overflowed (KINGLET_NOT_FINITE)."""


class Mismatch(Error, ValueError):
    """A state or a pickle is of another model file (KINGLET_MISMATCH)."""

    status = 701
    status_name = "KINGLET_MISMATCH"


class Busy(Error, RuntimeError):
    """Another thread is using the session; only one may at a time."""


class CommandFailed(Error, RuntimeError):
    """The command ended with an error; `status` is its exit status."""


_CLASSES: dict[int, type[Error]] = {
    101: IdOutOfRange,
    102: UnknownWord,
    200: NotFound,
    201: ReadFailed,
    400: OutOfMemory,
    401: TooManySteps,
    501: Cancelled,
    600: Unsupported,
    701: Mismatch,
}
_KINDS: dict[int, type[Error]] = {1: InvalidArgument, 3: DamagedFile, 5: WrongOrder, 7: NotFinite}


def error_of(status: int, name: str, message: str) -> Error:
    """The exception of a status."""
    kind = _CLASSES.get(status) or _KINDS.get(status // 100) or Error
    return kind(message or name, status, name)
