"""Typing on a keyboard."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from ctypes import addressof, c_double, c_int32, c_uint32, c_uint64
from typing import TYPE_CHECKING, NamedTuple

from kinglet_lm._handle import Handle, Turn
from kinglet_lm._native import BUFFER_TOO_SMALL, TypingInput, check, lib
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.errors import InvalidArgument

if TYPE_CHECKING:
    from kinglet_lm.model import Model
    from kinglet_lm.session import Session

_CAPITALS = {"as_written": 0, "first": 1, "all": 2}
_KINDS = ("word", "two_words", "letters", "user_word")
_ERRORS = ("insertion", "deletion", "transposition", "substitution", "missing_space")
_MOST = 100_000


def _text(text: str, name: str) -> bytes:
    if not isinstance(text, str) or "\0" in text:
        raise InvalidArgument(f"kinglet: {name}: expected a text without NUL, found {text!r}")
    return text.encode("utf-8", "surrogateescape")


class TypedWord(NamedTuple):
    """A candidate of `Keyboard.find`; its score is `log_probability` minus `cost`."""

    text: str
    log_probability: float  # of the text after the context
    cost: float  # of the typing errors, in nats
    kind: str  # "word", "two_words", "letters" or "user_word"


class Keyboard:
    """Finds the words that touches mean, after the text of a session's lane. Made by
    `Model.keyboard`; used by one thread at a time.
    """

    def __init__(self, model: Model) -> None:
        handle = Handle(lib.kinglet_typing_destroy)
        check(lib.kinglet_typing_create(model.handle, addressof(handle)))
        self.model = model
        self.complete = True
        self._turn = Turn(handle, "keyboard")

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "keyboard: expected a model to copy or pickle, found a Keyboard; make another: "
            "model.keyboard()"
        )

    def block(self, words: Iterable[str]) -> None:
        """From now on these words are never found, in any spelling. Replaces earlier ones: an
        empty list blocks no word.
        """
        self._set(lib.kinglet_typing_set_blocked, words)

    def allow(self, words: Iterable[str]) -> None:
        """From now on only these words are found; all are if `words` is empty."""
        self._set(lib.kinglet_typing_set_allowed, words)

    def open_words(self, path: str | os.PathLike[str]) -> None:
        """From now on the person's own words are those of the file, which is made if there is
        none, and gets every later change.
        """
        self._call(lib.kinglet_typing_open_words, os.fsencode(path))

    def learn(self, word: str, before: str = "") -> None:
        """The person used the word after `before`, the word before it."""
        self._call(lib.kinglet_typing_learn, _text(before, "before"), _text(word, "word"))

    def unlearn(self, word: str) -> int:
        """Removes a word of the person in every spelling, from memory and file. Returns the number
        of words that were there.
        """
        removed = c_uint64()
        self._call(lib.kinglet_typing_unlearn, _text(word, "word"), addressof(removed))
        return removed.value

    def forget(self) -> None:
        """Removes all words of the person from memory and file."""
        self._call(lib.kinglet_typing_forget)

    def words(self) -> dict[str, int]:
        """The person's words, and how often each was used."""
        count, needed = c_uint64(), c_uint64()

        def listed() -> dict[str, int]:
            check(lib.kinglet_typing_list(self._turn.handle, MAX_UINT64, None, 0, addressof(needed),
                                          None, None, addressof(count)))
            texts = ctypes.create_string_buffer(needed.value + 1)
            uses = (c_uint64 * max(1, count.value))()
            check(lib.kinglet_typing_list(self._turn.handle, count.value, addressof(texts),
                                          needed.value, None, None, addressof(uses), None))
            found = texts.raw[: needed.value].split(b"\0")[:-1]
            return {text.decode(): uses[at] for at, text in enumerate(found)}

        return self._turn.run(listed)

    def set_weights(self, user: float, spelling: float) -> None:
        """The weights of the person's words and of letters in the probability of a word."""
        self._call(lib.kinglet_typing_set_weights, float(user), float(spelling))

    def prepare(self, session: Session, lane: int = 0) -> None:
        """Computes what the next `find` about this context needs."""
        lane = integer(lane, "lane")
        self._turn.run(lambda: session._turn.run(lambda: check(
            lib.kinglet_typing_prepare(self._turn.handle, session._turn.handle, lane))))

    def find(
        self, session: Session, touches: Sequence[str | Sequence[tuple[str, float]]], k: int = 3,
        *, before: str = "", finished: bool = False, capitals: str = "as_written",
        deadline: int = 0, lane: int = 0, **costs: float
    ) -> list[TypedWord]:
        """The k best candidates for touches: each is a character, or pairs of one and its cost.

        `before`: the word before, for the person's own words.
        `finished`: no letters follow. `capitals`: "as_written", "first" or "all". `deadline`: in
        microseconds; `complete` tells whether the search came to its end before. Costs of errors
        by name: insertion, deletion, transposition, substitution, missing_space.
        """
        if capitals not in _CAPITALS:
            raise InvalidArgument(
                f"kinglet: capitals: expected {', '.join(_CAPITALS)}, found {capitals!r}")
        given = TypingInput()
        check(lib.kinglet_typing_input_init(addressof(given), ctypes.sizeof(given)))
        for name, cost in costs.items():
            if name not in _ERRORS:
                raise InvalidArgument(
                    f"kinglet: costs: expected {', '.join(_ERRORS)}, found {name!r}")
            setattr(given, name, float(cost))
        begins, characters, values = [0], [], []
        for touch in touches:
            for character, cost in [(touch, 0.0)] if isinstance(touch, str) else touch:
                if len(character) != 1:
                    raise InvalidArgument(
                        f"kinglet: touches: expected characters, found {character!r}")
                characters.append(ord(character))
                values.append(float(cost))
            begins.append(len(characters))
        lists = ((c_uint32 * len(begins))(*begins), (c_uint32 * max(1, len(characters)))(
            *characters), (c_double * max(1, len(values)))(*values))
        given.touches = len(begins) - 1
        given.begins, given.characters, given.costs = (addressof(part) for part in lists)
        given.before = _text(before, "before")
        given.capitals, given.finished = _CAPITALS[capitals], bool(finished)
        given.deadline = integer(deadline, "deadline", 0, MAX_UINT64)
        return self._find(session, integer(lane, "lane"), given, integer(k, "k", 0, _MOST))

    def _find(self, session: Session, lane: int, given: TypingInput, k: int) -> list[TypedWord]:
        offsets, kinds = (c_uint64 * (k + 1))(), (c_uint32 * max(1, k))()
        logs, costs = (c_double * max(1, k))(), (c_double * max(1, k))()
        count, needed, complete = c_uint32(), c_uint64(), c_int32()

        def words() -> bytes:
            buffer = ctypes.create_string_buffer(4096)
            while True:
                status = lib.kinglet_typing_find(
                    self._turn.handle, session._turn.handle, lane, addressof(given), k,
                    addressof(buffer), len(buffer), addressof(needed), addressof(offsets),
                    addressof(logs), addressof(costs), addressof(kinds), addressof(count),
                    addressof(complete))
                if status != BUFFER_TOO_SMALL or needed.value <= len(buffer):
                    break
                buffer = ctypes.create_string_buffer(needed.value)
            check(status)
            return buffer.raw

        found = self._turn.run(lambda: session._turn.run(words))
        self.complete = bool(complete.value)
        return [TypedWord(found[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "replace"),
                          logs[at], costs[at], _KINDS[kinds[at]]) for at in range(count.value)]

    def _call(self, call: Callable[..., int], *arguments: object) -> None:
        self._turn.run(lambda: check(call(self._turn.handle, *arguments)))

    def _set(self, call: object, words: Iterable[str]) -> None:
        listed = [words] if isinstance(words, str) else list(words)
        if isinstance(words, str) or not all(isinstance(word, str) for word in listed):
            raise TypeError(f"keyboard: expected a list of words, found {words!r}")
        texts = [word.encode("utf-8", "surrogateescape") for word in listed]
        offsets = (c_uint64 * (len(texts) + 1))()
        for at, text in enumerate(texts):
            offsets[at + 1] = offsets[at] + len(text)
        joined = b"".join(texts)
        self._turn.run(lambda: check(
            call(self._turn.handle, joined, addressof(offsets), len(texts))))  # type: ignore[operator]
