"""Text that a model makes."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator
from ctypes import addressof, c_int32, c_uint32, c_uint64, c_void_p
from typing import TYPE_CHECKING

from kinglet._buffers import Ids, address, uint32s, utf8
from kinglet._native import GenerationOptions, check, lib, number_of, text_of
from kinglet._turns import Turn
from kinglet.queries import _seed, _size, draw_options

if TYPE_CHECKING:
    from kinglet.model import Model


class Generation(Iterator[None]):
    """Streams of drawn words that go on from one prompt. `next` draws a word for each stream."""

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
        left_out: Ids,
        stop: str,
        threads: int,
    ) -> None:
        options = GenerationOptions()
        check(lib.kinglet_generation_options_init(addressof(options), ctypes.sizeof(options)))
        draw, keep = draw_options(temperature, top_k, top_p, left_out)
        options.streams, options.tokens, options.seed = _size(streams), tokens, _seed(seed)
        options.draw, options.threads = addressof(draw), _size(threads)
        text = utf8(stop, "stop")
        if text:
            options.stop, options.stop_length = text, len(text)
        words = uint32s(prompt, "prompt")
        out = c_void_p()
        check(lib.kinglet_generation_create(
            model.handle, addressof(options), address(words), len(words), addressof(out)))
        del keep
        assert out.value is not None
        self.model = model
        self.streams = streams
        self._end = weakref.finalize(self, lib.kinglet_generation_destroy, out.value)
        self._end.atexit = False
        self._turn = Turn(out.value, "generation")
        self._more = True

    def __next__(self) -> None:
        with self._turn as handle:
            if not self._more:
                raise StopIteration
            self._more = bool(number_of(c_int32, lib.kinglet_generation_next, handle))

    def ended(self, stream: int = 0) -> bool:
        """Whether the stream has ended."""
        with self._turn as handle:
            return bool(number_of(c_int32, lib.kinglet_generation_ended, handle, _size(stream)))

    def ids(self, stream: int = 0) -> list[int]:
        """The words that were drawn for a stream."""
        needed = c_uint64()
        with self._turn as handle:
            check(lib.kinglet_generation_ids(handle, _size(stream), None, 0, addressof(needed)))
            out = (c_uint32 * needed.value)()
            check(lib.kinglet_generation_ids(
                handle, stream, addressof(out), len(out), addressof(needed)))
        return list(out)

    def text(self, stream: int = 0) -> str:
        """The text of these words as far as it is known."""
        with self._turn as handle:
            text = text_of(lib.kinglet_generation_text, handle, _size(stream))
        return text.decode("utf-8", "surrogateescape")
