"""Vectors of words, and scores of classes."""

from __future__ import annotations

from ctypes import addressof, c_uint32
from typing import TYPE_CHECKING

from kinglet_lm._buffers import Floats, Ids, address, uint32s, zeros
from kinglet_lm._handle import Handle, Turn
from kinglet_lm._native import check, lib, number_of

if TYPE_CHECKING:
    from kinglet_lm.model import Model


class Embedding:
    """The vectors of a model's words and its classifier, if any. Used by one thread at a time."""

    def __init__(self, model: Model) -> None:
        handle = Handle(lib.kinglet_embedding_destroy)
        check(lib.kinglet_embedding_create(model.handle, addressof(handle)))
        self.model = model
        self._turn = Turn(handle, "embedding")
        self.width: int = number_of(c_uint32, lib.kinglet_embedding_width, handle)
        self.classes: int = number_of(c_uint32, lib.kinglet_embedding_classes, handle)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "embedding: expected a Model to copy or pickle, found an Embedding; make one of the "
            "copy: model.embedding()"
        )

    def vectors(self, ids: Ids) -> list[Floats]:
        """The vector of each word, `width` floats."""
        words = uint32s(ids)
        values = zeros("f", len(words) * self.width)
        self._turn.run(lambda: check(lib.kinglet_embedding_vectors(
            self._turn.handle, address(words), len(words), address(values), len(values))))
        return [values[at : at + self.width] for at in range(0, len(values), self.width)]

    def classify(self, ids: Ids) -> tuple[Floats, Floats]:
        """The logit and the log-probability of each class for a list of words."""
        words = uint32s(ids)
        logits, values = zeros("d", self.classes), zeros("d", self.classes)
        self._turn.run(lambda: check(lib.kinglet_embedding_classify(
            self._turn.handle, address(words), len(words), address(logits) or None,
            address(values) or None, self.classes)))
        return logits, values
