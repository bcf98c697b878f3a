"""A stream's memory, as a value."""

from __future__ import annotations

import ctypes
from ctypes import c_int32, c_uint64
from typing import TYPE_CHECKING

from kinglet_lm._handle import Handle
from kinglet_lm._native import check, lib, number_of

if TYPE_CHECKING:
    from kinglet_lm.model import Model


class State:
    """The memory of a stream, which can be compared, hashed, kept, pickled and restored.

    Made by `Session.save` and `Model.state`. States are immutable and may be shared by threads.
    A pickled state is its bytes, and the path and digest of its model. Unpickling uses an open
    model of the digest, or opens the file at the path.
    """

    def __init__(self, model: Model, handle: Handle) -> None:
        self.model = model
        self.handle = handle

    @property
    def position(self) -> int:
        """The number of tokens that the stream had processed."""
        return int(number_of(c_uint64, lib.kinglet_state_position, self.handle))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, State):
            return NotImplemented
        return bool(number_of(c_int32, lib.kinglet_state_equal, self.handle, other.handle))

    def __hash__(self) -> int:
        return int(number_of(c_uint64, lib.kinglet_state_hash, self.handle)) >> 3

    def __bytes__(self) -> bytes:
        size = int(number_of(c_uint64, lib.kinglet_state_bytes, self.handle))
        buffer = ctypes.create_string_buffer(size)
        check(lib.kinglet_state_write(self.handle, ctypes.addressof(buffer), size, None))
        return buffer.raw

    def __copy__(self) -> State:
        return self

    def __deepcopy__(self, memo: object) -> State:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        from kinglet_lm.model import state_of_pickle

        return state_of_pickle, (*self.model.identity(), bytes(self))

    def __repr__(self) -> str:
        return f"<kinglet_lm.State at position {self.position}>"


def read_state(model: Model, data: bytes) -> State:
    """The state that bytes(state) wrote."""
    if not isinstance(data, bytes):
        raise TypeError(f"state: expected bytes, found {type(data).__name__}")
    handle = Handle(lib.kinglet_state_destroy)
    check(lib.kinglet_state_read(model.handle, data, len(data), ctypes.addressof(handle)))
    return State(model, handle)
