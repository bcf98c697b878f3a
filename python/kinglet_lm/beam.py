"""Hypotheses of a search, such as a recogniser's beam."""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Callable, Iterable
from ctypes import addressof, c_double, c_uint32, c_uint64
from typing import TYPE_CHECKING, Any

from kinglet_lm._buffers import Floats, Ids, Uint64s, address, float32s, uint32s, uint64s, zeros
from kinglet_lm._handle import Handle, Lanes, interruptible
from kinglet_lm._native import BeamOptions, check, lib, number_of
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.errors import InvalidArgument
from kinglet_lm.ngrams import Scorer
from kinglet_lm.queries import Words
from kinglet_lm.session import _LONG, empty_cache_of
from kinglet_lm.state import State

if TYPE_CHECKING:
    from kinglet_lm.model import Model


class BeamState:
    """A hypothesis: a value that equals another one of its beam with the same tokens.

    The beam forgets a hypothesis with its last state. Made by `Beam.begin` and `Beam.step`.
    """

    __slots__ = ("__weakref__", "_ended", "beam", "number")

    def __init__(self, beam: Beam, number: int) -> None:
        self.beam = beam
        self.number = number
        self._ended = beam._ended

    def __del__(self) -> None:
        self._ended.append(self.number)  # safe in any thread; the beam's next call drops them

    @property
    def tokens(self) -> list[int]:
        """The tokens since `begin`. Stepping them in another beam gives the hypothesis again."""
        return self.beam._tokens(self.number)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BeamState):
            return NotImplemented
        return self.number == other.number

    def __hash__(self) -> int:
        return self.number

    def __copy__(self) -> BeamState:
        return self

    def __deepcopy__(self, memo: object) -> BeamState:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("beam: expected tokens or a State to pickle, found a BeamState; pickle "
                        "state.tokens, or beam.save(state)")

    def __repr__(self) -> str:
        return f"<kinglet_lm.BeamState {self.number}>"


class Beam(Lanes):
    """Hypotheses and what follows them. Made by `Model.beam`.

    Stepping a hypothesis costs nothing. The network runs when hypotheses are queried, on all of a
    call together, and once for each hypothesis; the answers have the bits of a session. One thread
    may use a beam at a time; a second one gets Busy.
    """

    def __init__(self, model: Model, lanes: int, threads: int, empty_cache: str,
                 state_bytes: int, scorer: Scorer | None) -> None:
        options = BeamOptions()
        check(lib.kinglet_beam_options_init(addressof(options), ctypes.sizeof(options)))
        options.empty_cache = empty_cache_of(empty_cache)
        options.lanes, options.threads = integer(lanes, "lanes", 1), integer(threads, "threads", 1)
        options.state_bytes = integer(state_bytes, "state_bytes", 1, MAX_UINT64)
        if scorer is not None:
            if not isinstance(scorer, Scorer):
                raise TypeError(
                    f"scorer: expected a kinglet_lm.Scorer, found {type(scorer).__name__}")
            options.scorer = scorer.handle
        handle = Handle(lib.kinglet_beam_destroy)
        check(lib.kinglet_beam_create(model.handle, addressof(options), addressof(handle)))
        self.threads: int = options.threads
        self.vocabulary_size = len(model.vocabulary)
        self._ended: collections.deque[int] = collections.deque()
        self._watch(model, handle, "beam")

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("beam: expected a model to pickle, found a Beam; make another in the other "
                        "process: model.beam()")

    def _do(self, call: Callable[..., int], *arguments: Any) -> None:
        def work() -> None:
            self._drop_ended()
            check(call(self._turn.handle, *arguments))

        self._turn.run(work)

    def _drop_ended(self) -> None:
        if not self._ended:
            return
        handle = self._turn.handle
        # Other threads may append meanwhile.
        numbers = uint64s([self._ended.popleft() for _ in range(len(self._ended))], "states")
        check(lib.kinglet_beam_drop(handle, address(numbers), len(numbers)))

    def _query(self, count: int, call: Callable[[Any], int]) -> None:
        """Runs a call about `count` hypotheses; Ctrl-C ends a long one."""
        if count < _LONG:
            self._do(call)
            return
        self._turn.run(self._drop_ended)
        interruptible(self._turn, call, lib.kinglet_beam_cancel)

    def _numbers(self, states: Iterable[BeamState]) -> Uint64s:
        numbers = []
        for state in states:
            if not isinstance(state, BeamState):
                raise TypeError(
                    f"states: expected kinglet_lm.BeamState, found {type(state).__name__}")
            if state.beam is not self:
                raise InvalidArgument(
                    "kinglet: states: expected states of this beam, found one of another; step "
                    "its tokens in this one")
            numbers.append(state.number)
        return uint64s(numbers, "states")

    def _pairs(self, states: Iterable[BeamState], ids: Ids) -> tuple[Uint64s, Any]:
        numbers, tokens = self._numbers(states), uint32s(ids)
        if len(numbers) != len(tokens):
            raise InvalidArgument(
                f"kinglet: ids: expected {len(numbers)} of them, found {len(tokens)}")
        return numbers, tokens

    # --- hypotheses

    def begin(self, state: State | None = None) -> BeamState:
        """The hypothesis without tokens: at the start of a stream, or after a saved one.

        Each call begins anew: begin once for hypotheses that are to share their beginnings.
        """
        if state is not None and not isinstance(state, State):
            raise TypeError(f"state: expected a kinglet_lm.State, found {type(state).__name__}")
        number = c_uint64()
        self._do(lib.kinglet_beam_begin, None if state is None else state.handle,
                 addressof(number))
        return BeamState(self, number.value)

    def step(self, states: Iterable[BeamState], ids: Ids) -> list[BeamState]:
        """The hypotheses states[i] with token ids[i] after them. Equal pairs give equal states."""
        numbers, tokens = self._pairs(states, ids)
        out = zeros("Q", len(numbers))
        self._do(lib.kinglet_beam_step, address(numbers), address(tokens), len(tokens),
                 address(out))
        return [BeamState(self, number) for number in out]

    def save(self, state: BeamState) -> State:
        """The state of the stream that has processed the hypothesis, for sessions and beams."""
        saved = Handle(lib.kinglet_state_destroy)
        self._do(lib.kinglet_beam_save, self._numbers([state])[0], addressof(saved))
        return State(self.model, saved)

    def _tokens(self, number: int) -> list[int]:
        needed = c_uint64()
        self._do(lib.kinglet_beam_tokens, number, None, 0, addressof(needed))
        ids = zeros("I", needed.value)
        self._do(lib.kinglet_beam_tokens, number, address(ids), len(ids), addressof(needed))
        return list(ids)

    # --- queries about the token that follows

    def log_probability(self, states: Iterable[BeamState], ids: Ids) -> Floats:
        """The log-probability that token ids[i] follows states[i]; a state may occur again."""
        numbers, tokens = self._pairs(states, ids)
        values = zeros("d", len(numbers))
        self._query(len(numbers), lambda handle: lib.kinglet_beam_log_probability(
            handle, address(numbers), address(tokens), len(tokens), address(values)))
        return values  # type: ignore[no-any-return]

    def log_probabilities(self, states: Iterable[BeamState], out: Any = None) -> Any:
        """The log-probability of every token after each state, one row after the other.

        `out`, if given, is a writable buffer of floats (such as a NumPy array of a row for each
        state), which is filled and returned.
        """
        numbers = self._numbers(states)
        if out is None:
            out = zeros("f", len(numbers) * self.vocabulary_size)
        at = float32s(out)
        self._query(len(numbers), lambda handle: lib.kinglet_beam_log_probabilities(
            handle, address(numbers), len(numbers), addressof(at), len(at)))
        return out

    def top_k(self, states: Iterable[BeamState], k: int) -> list[Words]:
        """The k most probable tokens after each state as (id, log-probability)."""
        numbers, k = self._numbers(states), integer(k, "k")
        each = min(k, self.vocabulary_size)
        size = len(numbers) * each
        ids, values = (c_uint32 * max(1, size))(), (c_double * max(1, size))()
        self._query(len(numbers), lambda handle: lib.kinglet_beam_top_k(
            handle, address(numbers), len(numbers), k, addressof(ids), addressof(values), size,
            None))
        return [list(zip(ids[at * each : (at + 1) * each], values[at * each : (at + 1) * each]))
                for at in range(len(numbers))]

    @property
    def stepped(self) -> int:
        """How many tokens the network has processed."""
        return int(self._turn.run(
            lambda: number_of(c_uint64, lib.kinglet_beam_stepped, self._turn.handle)))

    def cancel(self) -> None:
        """Ends the running call, or else the next one, with Cancelled; from any thread."""
        check(lib.kinglet_beam_cancel(self._turn.handle))
