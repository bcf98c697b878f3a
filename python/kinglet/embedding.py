"""Vectors of words, and scores of classes."""

from __future__ import annotations

import weakref
from ctypes import addressof, c_uint32, c_void_p
from typing import TYPE_CHECKING

from kinglet._buffers import Floats, Ids, address, uint32s, zeros
from kinglet._native import check, lib, number_of
from kinglet._turns import Turn

if TYPE_CHECKING:
    from kinglet.model import Model


class Embedding:
    """The vectors of a model's words and, with a classifier, its classes. One thread at a time."""

    def __init__(self, model: Model) -> None:
        out = c_void_p()
        check(lib.kinglet_embedding_create(model.handle, addressof(out)))
        assert out.value is not None
        self.model = model
        self._end = weakref.finalize(self, lib.kinglet_embedding_destroy, out.value)
        self._end.atexit = False
        self._turn = Turn(out.value, "embedding")
        self.width: int = number_of(c_uint32, lib.kinglet_embedding_width, out.value)
        self.classes: int = number_of(c_uint32, lib.kinglet_embedding_classes, out.value)

    def vectors(self, ids: Ids) -> list[Floats]:
        """The vector of each word, `width` floats."""
        words = uint32s(ids)
        values = zeros("f", len(words) * self.width)
        with self._turn as handle:
            check(lib.kinglet_embedding_vectors(
                handle, address(words), len(words), address(values), len(values)))
        return [values[at : at + self.width] for at in range(0, len(values), self.width)]

    def classify(self, ids: Ids) -> tuple[Floats, Floats]:
        """The logit and the log-probability of each class for a list of words."""
        words = uint32s(ids)
        logits, values = zeros("d", self.classes), zeros("d", self.classes)
        with self._turn as handle:
            check(lib.kinglet_embedding_classify(
                handle, address(words), len(words), address(logits) or None,
                address(values) or None, self.classes))
        return logits, values
