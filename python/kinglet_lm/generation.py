"""Text that a model generates."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import addressof, c_int32, c_uint32, c_uint64
from typing import TYPE_CHECKING

from kinglet_lm._buffers import Ids, address, uint32s, utf8
from kinglet_lm._handle import Handle, Turn
from kinglet_lm._native import GenerationOptions, check, lib, number_of, text_of
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.queries import _seed, draw_options

if TYPE_CHECKING:
    from kinglet_lm.model import Model


class Generation(Iterator[None]):
    """Streams of drawn words that continue from one prompt. `next` draws a word for each stream."""

    def __init__(
        self,
        model: Model,
        prompt: Ids,
        tokens: int,
        streams: int,
        seed: int,
        temperature: float,
        top_k: int,
        top_p: float,
        excluded: Ids,
        stop: str,
        threads: int,
    ) -> None:
        options = GenerationOptions()
        check(lib.kinglet_generation_options_init(addressof(options), ctypes.sizeof(options)))
        draw, keep = draw_options(temperature, top_k, top_p, excluded)
        options.streams = integer(streams, "streams", 1)
        options.tokens, options.seed = integer(tokens, "tokens", 1, MAX_UINT64), _seed(seed)
        options.draw, options.threads = addressof(draw), integer(threads, "threads", 1)
        text = utf8(stop, "stop")
        if text:
            options.stop, options.stop_length = text, len(text)
        words = uint32s(prompt, "prompt")
        handle = Handle(lib.kinglet_generation_destroy)
        check(lib.kinglet_generation_create(
            model.handle, addressof(options), address(words), len(words), addressof(handle)))
        del keep
        self.model = model
        self.streams: int = options.streams
        self._turn = Turn(handle, "generation")
        self._more = True

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "generation: expected its texts to copy or pickle, found a Generation; copy "
            "generation.ids(stream), or begin another: model.generate(prompt, seed=..)"
        )

    def __next__(self) -> None:
        if not self._turn.run(self._drawn):
            raise StopIteration

    def _drawn(self) -> bool:
        """Draws a word for each stream. Returns whether any stream had not ended before."""
        if not self._more:
            return False
        self._more = bool(number_of(c_int32, lib.kinglet_generation_next, self._turn.handle))
        return True

    def ended(self, stream: int = 0) -> bool:
        """Whether the stream has ended."""
        stream = integer(stream, "stream")
        return bool(self._turn.run(lambda: number_of(
            c_int32, lib.kinglet_generation_ended, self._turn.handle, stream)))

    def ids(self, stream: int = 0) -> list[int]:
        """The words that were drawn for a stream."""
        stream = integer(stream, "stream")

        def ids() -> list[int]:
            needed = c_uint64()
            call = lib.kinglet_generation_ids
            check(call(self._turn.handle, stream, None, 0, addressof(needed)))
            out = (c_uint32 * needed.value)()
            check(call(self._turn.handle, stream, addressof(out), len(out), addressof(needed)))
            return list(out)

        return self._turn.run(ids)

    def text(self, stream: int = 0) -> str:
        """The text of a stream's words, without an unfinished character or stop text at its end."""
        stream = integer(stream, "stream")
        text = self._turn.run(
            lambda: text_of(lib.kinglet_generation_text, self._turn.handle, stream))
        return text.decode("utf-8", "surrogateescape")
