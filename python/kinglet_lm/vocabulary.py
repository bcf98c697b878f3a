"""A model's words."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from ctypes import c_uint32
from typing import TYPE_CHECKING, Any, overload

from kinglet_lm._buffers import utf8
from kinglet_lm._native import check, lib, number_of, text_of
from kinglet_lm._numbers import integer
from kinglet_lm.errors import UnknownWord, Unsupported

if TYPE_CHECKING:
    from kinglet_lm.model import Model

_UNKNOWN, _BEGIN, _END_OF_LINE = 1, 2, 3


class Vocabulary(Sequence[str]):
    """The words of a model: `vocabulary[id]` is a word, `vocabulary.id(word)` its id.

    Bytes that are no UTF-8 become lone surrogates (`surrogateescape`), here and everywhere.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._size: int = number_of(c_uint32, lib.kinglet_model_vocabulary_size, model.handle)

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._size))]
        return self.bytes(index).decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str]:
        return (self[at] for at in range(self._size))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.get(word) is not None

    def bytes(self, id: int) -> bytes:
        """The bytes of a word."""
        return text_of(lib.kinglet_model_token_text, self._model.handle, integer(id, "id"))

    def get(self, word: str) -> int | None:
        """The id of a word, or None."""
        try:
            return self.id(word)
        except UnknownWord:
            return None

    def id(self, word: str) -> int:
        """The id of a word. Raises UnknownWord (a KeyError)."""
        return self._find(lib.kinglet_model_find_token, word)

    def source_id(self, word: str) -> int:
        """The id of a word of the source, in a model with an encoder."""
        return self._find(lib.kinglet_model_find_source_token, word)

    def _find(self, call: Any, word: str) -> int:
        text = utf8(word, "word")
        out = c_uint32()
        check(call(self._model.handle, text, len(text), ctypes.addressof(out)))
        return out.value

    @property
    def source_size(self) -> int:
        """The number of source words; 0 for a model without an encoder."""
        return int(
            number_of(c_uint32, lib.kinglet_model_source_vocabulary_size, self._model.handle)
        )

    @property
    def has_words(self) -> bool:
        """Whether the model file contains the words' texts; otherwise it has ids only."""
        return bool(number_of(c_uint32, lib.kinglet_model_has_words, self._model.handle))

    def _special(self, which: int) -> int | None:
        try:
            return int(
                number_of(c_uint32, lib.kinglet_model_special_token, self._model.handle, which)
            )
        except Unsupported:
            return None

    @property
    def unknown(self) -> int | None:
        """The id of the word that replaces words which the vocabulary lacks."""
        return self._special(_UNKNOWN)

    @property
    def begin(self) -> int | None:
        """The id of the token that is stepped before a text."""
        return self._special(_BEGIN)

    @property
    def end(self) -> int | None:
        """The id of the token after each line."""
        return self._special(_END_OF_LINE)
