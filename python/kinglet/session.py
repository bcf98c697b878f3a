"""Streams through a model."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import addressof, c_uint32, c_uint64, c_void_p
from operator import index
from typing import TYPE_CHECKING, Any

from kinglet._buffers import Floats, Ids, address, refused_id, uint32s, zeros
from kinglet._native import SessionOptions, check, lib, number_of, untyped
from kinglet._turns import interruptible, watch_forks
from kinglet.errors import InvalidArgument, WrongOrder
from kinglet.queries import Queries, _lane, _pairs
from kinglet.state import State

if TYPE_CHECKING:
    from kinglet.model import Model

NO_PARENT = 0xFFFFFFFF  # KINGLET_NO_PARENT
_step = untyped("session_step")
_EMPTY_CACHE = {"reference": 0, "normalised": 1}


class Session(Queries):
    """One or more streams through a model, each in a lane of its own. Made by `Model.session`.

    One thread may use a session at a time; a second one gets Busy. Different sessions of a model
    are independent, and the interpreter's lock is free while they compute.
    """

    def __init__(self, model: Model, lanes: int, threads: int, empty_cache: str) -> None:
        if empty_cache not in _EMPTY_CACHE:
            raise InvalidArgument(
                f"kinglet: empty_cache: expected {' or '.join(_EMPTY_CACHE)}, found {empty_cache!r}"
            )
        options = SessionOptions()
        check(lib.kinglet_session_options_init(addressof(options), ctypes.sizeof(options)))
        options.empty_cache = _EMPTY_CACHE[empty_cache]
        for name, value in (("lanes", lanes), ("threads", threads)):
            if not 0 < index(value) <= NO_PARENT:
                raise InvalidArgument(f"kinglet: {name}: expected at least 1, found {value}")
        options.lanes, options.threads = index(lanes), index(threads)
        out = c_void_p()
        check(lib.kinglet_session_create(model.handle, addressof(options), addressof(out)))
        assert out.value is not None
        self.model = model
        self.lanes: int = number_of(c_uint32, lib.kinglet_session_lanes, out.value)
        self.threads = threads
        self._begin(out.value, len(model.vocabulary), "session")
        self._end = weakref.finalize(self, lib.kinglet_session_destroy, out.value)
        self._end.atexit = False
        watch_forks(self)

    def close(self) -> None:
        """Frees the session's memory now; else that happens when nobody refers to it."""
        if self._turn.ended():
            return
        with self._turn:
            self._turn.end(WrongOrder("kinglet: session: expected an open one, found it closed"))
            self._end()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def after_fork(self) -> None:
        """In a child process: its workers, and a thread that was using it, are not there."""
        if self._turn.ended() or not (self.threads > 1 or self._turn.taken()
                                      or self.model.backend == "cuda"):
            return
        self._end.detach()  # destroying it would wait for workers of the other process
        self._turn.end(WrongOrder(
            "kinglet: session: expected one made in this process, found one made before a fork "
            "that had threads of its own; make a new one: model.session()"
        ))

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "session: expected a State to pickle, found a Session; pickle session.save(), and "
            "restore it into a session of the other process"
        )

    # --- stepping

    def step(self, id: int, lane: int = 0) -> None:
        """Processes token `id` on one lane."""
        if type(id) is not int or type(lane) is not int:
            id, lane = index(id), index(lane)
        if (id | lane) >> 32:
            raise refused_id(id if id >> 32 else lane)
        try:
            handle = self._free.pop()
        except IndexError:
            raise self._turn.refusal() from None
        try:
            status = _step(handle, lane, id)
            if status:
                check(status)
        finally:
            self._free.append(handle)

    def step_lanes(self, lanes: Ids, ids: Ids) -> None:
        """Processes token ids[i] on lane lanes[i]; weights are read once for all of them."""
        where, words = _pairs(lanes, ids, "ids")
        with self._turn as handle:
            check(lib.kinglet_session_step_lanes(
                handle, address(where), address(words), len(words)
            ))

    def step_many(self, ids: Ids, lane: int = 0) -> Floats:
        """Processes a given text of one stream, quicker than `step` for each; Ctrl-C ends it.

        Returns the natural log-probability of each token after those before it, with the bits of
        `step` and `log_probability`; NaN for the first token of a stream. After an error `position`
        says how many tokens were processed.
        """
        words = uint32s(ids)
        values = zeros("d", len(words))

        def call(handle: Any) -> int:
            return lib.kinglet_session_step_many(  # type: ignore[no-any-return]
                handle, _lane(lane), address(words), len(words), address(values), None
            )

        if len(words) < _LONG:
            self._do(call)
        else:
            self._long(call)
        return values  # type: ignore[no-any-return]

    def encode(self, source: Ids, lane: int = 0) -> None:
        """In a model that translates: starts a stream that has this source. Ctrl-C ends it."""
        words = uint32s(source, "source")
        self._long(
            lambda handle: lib.kinglet_session_encode(
                handle, _lane(lane), address(words), len(words)
            )
        )

    # --- masked models

    def read(self, ids: Ids, segments: Ids | None = None, lane: int = 0) -> None:
        """In a masked model: starts a stream that has read this text, [CLS] and [SEP] in it.

        `segments` has the segment of each token: 0 for the first text of a pair, 1 for the second;
        None: all 0. Ctrl-C ends it.
        """
        words = uint32s(ids)
        parts = None if segments is None else uint32s(segments, "segments")
        if parts is not None and len(parts) != len(words):
            raise InvalidArgument(
                f"kinglet: segments: expected {len(words)} of them, found {len(parts)}"
            )
        self._long(
            lambda handle: lib.kinglet_session_read(
                handle, _lane(lane), address(words), None if parts is None else address(parts),
                len(words)
            )
        )

    def look_at(self, position: int, lane: int = 0) -> None:
        """Makes the lane's queries be about the token at this position of the text that it read.

        They then say which word the model expects there, usually where the text has [MASK].
        """
        self._do(lib.kinglet_session_look_at, _lane(lane), _position(position))

    def pooled(self, lane: int = 0) -> Floats:
        """The pooled vector of the text that the lane has read: `Model.pooled_width` numbers."""
        values = zeros("d", max(self.model.pooled_width, 1))
        self._do(lib.kinglet_session_pooled, _lane(lane), address(values), len(values))
        return values  # type: ignore[no-any-return]

    def scores(self, position: int = 0, lane: int = 0) -> Floats:
        """The scores of the text that the lane has read: `Model.score_count` logits, no softmax.

        In a model that finds answers: whether one starts and ends at the token at `position`.
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
        """How many tokens the lane's stream has processed."""
        with self._turn as handle:
            check(lib.kinglet_session_position(handle, _lane(lane), self._count_at))
            return self._count.value

    def fork(self, source: int, target: int) -> None:
        """Makes the stream in lane `target` a copy of the one in lane `source`."""
        self._do(lib.kinglet_session_fork, _lane(source), _lane(target))

    def cancel(self) -> None:
        """Ends the call that is running, or the next one, with Cancelled; from any thread."""
        if self._turn.ended():
            raise self._turn.refusal()
        check(lib.kinglet_session_cancel(self._turn.handle))

    def save(self, lane: int = 0) -> State:
        """The state of the lane's stream."""
        out = c_void_p()
        self._do(lib.kinglet_session_save, _lane(lane), addressof(out))
        assert out.value is not None
        return State(self.model, out.value)

    def restore(self, state: State, lane: int = 0) -> None:
        """Makes the lane's stream the one that the state was taken from."""
        if not isinstance(state, State):
            raise TypeError(f"state: expected a kinglet.State, found {type(state).__name__}")
        self._do(lib.kinglet_session_restore, _lane(lane), state.handle)

    def score_tree(self, parents: Ids, ids: Ids) -> tuple[Floats, int]:
        """Scores sequences that share beginnings, in all lanes at once; Ctrl-C ends it.

        Node n is word ids[n] behind node parents[n] < n; a node of NO_PARENT begins a stream.
        Returns the log-probability of each node's word (0 where a stream begins), and how many
        tokens were stepped. Afterwards every lane is reset.
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

    def _do(self, call: Callable[..., int], *arguments: Any) -> None:
        with self._turn as handle:
            check(call(handle, *arguments))

    def _long(self, call: Callable[[Any], int]) -> None:
        """A call that may take so long that Ctrl-C must end it."""
        with self._turn as handle:
            interruptible(lambda: check(call(handle)), self.cancel)


def _position(value: int) -> int:
    number = index(value)
    if number >> 64:
        raise InvalidArgument(f"kinglet: position: expected one from 0, below 2**64, found {value}")
    return number


_LONG = 200  # tokens, about 20 ms of the demo model: until then Ctrl-C waits
