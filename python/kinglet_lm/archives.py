"""Archives of any bytes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import addressof, c_uint64
from typing import TYPE_CHECKING, Any

from kinglet_lm._buffers import Bytes
from kinglet_lm._handle import Handle, Turn, interruptible
from kinglet_lm._native import CoderOptions, check, lib, text_of
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.errors import Busy

if TYPE_CHECKING:
    from kinglet_lm.model import Model

_ROOM = 1 << 18


class Coder:
    """Makes an archive, or restores one, in pieces of any size. Used by one thread at a time.

    Made by `Model.compressor` and `Model.decompressor`. `add` takes the next bytes of the input,
    `finish` the end; both return the bytes of the output that are complete, which may be none.
    After an error, Ctrl-C included, a coder refuses everything: begin again with another.
    """

    def __init__(
        self,
        model: Model,
        create: Callable[[Any, int, int], int],
        threads: int,
        block_size: int = 1 << 20,
        fast: bool = False,
        limit: int | None = None,
        salvage: bool = False,
    ) -> None:
        options = CoderOptions()
        check(lib.kinglet_coder_options_init(addressof(options), ctypes.sizeof(options)))
        options.threads = integer(threads, "threads", 1)
        options.block_size = integer(block_size, "block_size", 1)
        options.fast, options.salvage = bool(fast), bool(salvage)
        if limit is not None:
            options.limit = integer(limit, "limit", 1, MAX_UINT64)
        handle = Handle(lib.kinglet_coder_destroy)
        check(create(model.handle, addressof(options), addressof(handle)))
        self.model = model
        self._turn = Turn(handle, "coder")
        self._room = ctypes.create_string_buffer(_ROOM)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "coder: expected bytes to copy or pickle, found a Coder; make another: "
            "model.compressor() or model.decompressor()"
        )

    def add(self, piece: Bytes) -> bytes:
        """Takes the next bytes of the input, and returns the next of the output."""
        data = piece if isinstance(piece, bytes) else bytes(memoryview(piece))
        return self._output(lambda handle: lib.kinglet_coder_add(handle, data, len(data)))

    def finish(self) -> bytes:
        """Ends the input, and returns the rest of the output."""
        return self._output(lib.kinglet_coder_finish)

    def cancel(self) -> None:
        """Ends the running call, or else the next one, with Cancelled. Any thread may call it."""
        check(lib.kinglet_coder_cancel(self._turn.handle))

    @property
    def damages(self) -> list[str]:
        """With `salvage`: what the text lacks, a line for each range of blocks."""
        text = self._turn.run(lambda: text_of(lib.kinglet_coder_damages, self._turn.handle))
        return text.decode("utf-8", "replace").splitlines()

    def _output(self, begin: Callable[[Any], int]) -> bytes:
        parts: list[bytes] = []
        count = c_uint64()

        def work(handle: Handle | None) -> int:
            status = begin(handle)
            while not status:
                status = lib.kinglet_coder_take(
                    handle, addressof(self._room), _ROOM, addressof(count))
                if status or not count.value:
                    break
                parts.append(ctypes.string_at(self._room, count.value))
            return status

        try:
            interruptible(self._turn, work, lib.kinglet_coder_cancel)
        except Busy:
            raise
        except BaseException:  # bytes of the output may be lost
            self._turn.end(
                "kinglet: coder: expected one whose calls succeeded, found one that failed or was "
                "interrupted before; begin again with another"
            )
            raise
        return b"".join(parts)
