"""Streams through a model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import addressof, c_uint32, c_uint64
from typing import TYPE_CHECKING, Any

from kinglet_lm._buffers import Floats, Ids, address, uint32s, zeros
from kinglet_lm._handle import LAST, Handle, Lanes, interruptible
from kinglet_lm._native import SessionOptions, check, lib, number_of, untyped
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.errors import InvalidArgument
from kinglet_lm.queries import Queries, _lane, _pairs
from kinglet_lm.state import State

if TYPE_CHECKING:
    from kinglet_lm.model import Model

NO_PARENT = 0xFFFFFFFF  # KINGLET_NO_PARENT
_step = untyped("session_step")
_EMPTY_CACHE = {"reference": 0, "normalised": 1}


def empty_cache_of(name: str) -> int:
    """The kinglet_empty_cache of this name."""
    if name not in _EMPTY_CACHE:
        raise InvalidArgument(
            f"kinglet: empty_cache: expected {' or '.join(_EMPTY_CACHE)}, found {name!r}")
    return _EMPTY_CACHE[name]


class Session(Lanes, Queries):
    """One or more streams through a model, each in a lane of its own. Made by `Model.session`.

    One thread may use a session at a time; a second one gets Busy. Different sessions of a model
    are independent, and the interpreter's lock is free while they compute.
    """

    def __init__(self, model: Model, lanes: int, threads: int, empty_cache: str) -> None:
        options = SessionOptions()
        check(lib.kinglet_session_options_init(addressof(options), ctypes.sizeof(options)))
        options.empty_cache = empty_cache_of(empty_cache)
        options.lanes, options.threads = integer(lanes, "lanes", 1), integer(threads, "threads", 1)
        handle = Handle(lib.kinglet_session_destroy)
        check(lib.kinglet_session_create(model.handle, addressof(options), addressof(handle)))
        self.lanes: int = number_of(c_uint32, lib.kinglet_session_lanes, handle)
        self.threads: int = options.threads
        self._watch(model, handle, "session")
        self._begin(len(model.vocabulary))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "session: expected a State to pickle, found a Session; pickle session.save(), and "
            "restore it into a session of the other process"
        )

    # --- stepping

    def step(self, id: int, lane: int = 0) -> None:
        """Processes token `id` on one lane."""
        if type(id) is not int or type(lane) is not int or (id | lane) >> 32:
            id, lane = integer(id, "id"), _lane(lane)
        turn = self._turn
        mine: list[None] = []
        try:
            try:
                mine += map(turn.pop, LAST)
            except IndexError:
                raise turn.refusal() from None
            status = _step(turn.pointer, lane, id)
            if status:
                turn.check(status)
        finally:
            turn.free.extend(mine)

    def step_lanes(self, lanes: Ids, ids: Ids) -> None:
        """Processes token ids[i] on lane lanes[i]; weights are read once for all of them."""
        where, words = _pairs(lanes, ids, "ids")
        self._do(lib.kinglet_session_step_lanes, address(where), address(words), len(words))

    def step_many(self, ids: Ids, lane: int = 0) -> Floats:
        """Processes a text in one stream, faster than `step` for each token; Ctrl-C ends the call.

        Returns the natural log-probability of each token after those before it, with the bits of
        `step` and `log_probability`; NaN for the first token of a stream. After an error `position`
        returns the number of tokens that were processed.
        """
        words, lane = uint32s(ids), _lane(lane)
        values = zeros("d", len(words))

        def call(handle: Any) -> int:
            return lib.kinglet_session_step_many(  # type: ignore[no-any-return]
                handle, lane, address(words), len(words), address(values), None
            )

        if len(words) < _LONG:
            self._do(call)
        else:
            self._long(call)
        return values  # type: ignore[no-any-return]

    def encode(self, source: Ids, lane: int = 0) -> None:
        """In a model with an encoder: starts a stream with this source. Ctrl-C ends the call."""
        words, lane = uint32s(source, "source"), _lane(lane)
        self._long(
            lambda handle: lib.kinglet_session_encode(handle, lane, address(words), len(words)))

    # --- masked models

    def read(self, ids: Ids, segments: Ids | None = None, lane: int = 0) -> None:
        """In a masked model: starts a stream that has read this text, with [CLS] and [SEP] in it.

        `segments` contains the segment of each token: 0 for the first text of a pair, 1 for the
        second; by default all are 0. Ctrl-C ends the call.
        """
        words, lane = uint32s(ids), _lane(lane)
        parts = None if segments is None else uint32s(segments, "segments")
        if parts is not None and len(parts) != len(words):
            raise InvalidArgument(
                f"kinglet: segments: expected {len(words)} of them, found {len(parts)}"
            )
        self._long(
            lambda handle: lib.kinglet_session_read(
                handle, lane, address(words), None if parts is None else address(parts),
                len(words)
            )
        )

    def look_at(self, position: int, lane: int = 0) -> None:
        """Directs the lane's queries to the token at this position of the text that it read.

        Queries then answer which word the model expects there, usually where the text has [MASK].
        """
        self._do(lib.kinglet_session_look_at, _lane(lane), _position(position))

    def pooled(self, lane: int = 0) -> Floats:
        """The pooled vector of the text that the lane has read: `Model.pooled_width` elements."""
        values = zeros("d", max(self.model.pooled_width, 1))
        self._do(lib.kinglet_session_pooled, _lane(lane), address(values), len(values))
        return values  # type: ignore[no-any-return]

    def scores(self, position: int = 0, lane: int = 0) -> Floats:
        """The scores of the text that the lane has read: `Model.score_count` logits, no softmax.

        In a model that finds answers: the scores of a start and of an end at `position`.
        """
        values = zeros("d", max(self.model.score_count, 1))
        self._do(lib.kinglet_session_scores, _lane(lane), _position(position), address(values),
                 len(values))
        return values  # type: ignore[no-any-return]

    # --- streams

    def reset(self, lane: int = 0) -> None:
        """Starts a new stream in the lane."""
        self._do(lib.kinglet_session_reset, _lane(lane))

    def position(self, lane: int = 0) -> int:
        """The number of tokens that the lane's stream has processed."""
        count = c_uint64()
        self._do(lib.kinglet_session_position, _lane(lane), addressof(count))
        return count.value

    def fork(self, source: int, target: int) -> None:
        """Makes the stream in lane `target` a copy of the one in lane `source`."""
        self._do(lib.kinglet_session_fork, integer(source, "source"), integer(target, "target"))

    def cancel(self) -> None:
        """Ends the running call, or else the next one, with Cancelled; from any thread."""
        check(lib.kinglet_session_cancel(self._turn.handle))

    def save(self, lane: int = 0) -> State:
        """The state of the lane's stream."""
        state = Handle(lib.kinglet_state_destroy)
        self._do(lib.kinglet_session_save, _lane(lane), addressof(state))
        return State(self.model, state)

    def restore(self, state: State, lane: int = 0) -> None:
        """Continues in the lane the stream whose state was saved."""
        if not isinstance(state, State):
            raise TypeError(f"state: expected a kinglet_lm.State, found {type(state).__name__}")
        self._do(lib.kinglet_session_restore, _lane(lane), state.handle)

    def score_tree(self, parents: Ids, ids: Ids) -> tuple[Floats, int]:
        """Scores sequences that share beginnings, in all lanes at once; Ctrl-C ends the call.

        Node n is token ids[n] after node parents[n] < n; a node with parent NO_PARENT begins a
        stream. Returns the log-probability of each node's token (0 where a stream begins), and the
        number of tokens that were stepped. Afterwards every lane is reset.
        """
        above, words = uint32s(parents, "parents"), uint32s(ids)
        if len(above) != len(words):
            raise InvalidArgument(
                f"kinglet: parents: expected {len(words)} of them, found {len(above)}"
            )
        values = zeros("d", len(words))
        stepped = c_uint64()

        def call(handle: Any) -> int:
            return lib.kinglet_session_score_tree(  # type: ignore[no-any-return]
                handle, address(above), address(words), len(words), address(values),
                addressof(stepped)
            )

        if len(words) < _LONG:
            self._do(call)
        else:
            self._long(call)
        return values, stepped.value

    def _long(self, call: Callable[[Any], int]) -> None:
        """Runs a call that may take so long that Ctrl-C must end it."""
        interruptible(self._turn, call)


def _position(value: int) -> int:
    return integer(value, "position", 0, MAX_UINT64)


_LONG = 200  # tokens, about 20 ms of the demo model; Ctrl-C waits for calls of fewer
