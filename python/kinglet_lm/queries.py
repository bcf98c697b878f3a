"""Queries about the next token: the part of `Session` that changes no stream."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import addressof, c_double, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple

from kinglet_lm._buffers import (
    Floats,
    Ids,
    Uint32s,
    address,
    float32s,
    uint32s,
    uint64s,
    utf8,
    zeros,
)
from kinglet_lm._handle import LAST, Turn
from kinglet_lm._native import BUFFER_TOO_SMALL, DrawOptions, Work, check, lib, untyped
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.errors import InvalidArgument

Words = list[tuple[int, float]]

_log_probability = untyped("session_log_probability")

_MOST_WORDS = 1 << 20  # of one answer
NEXT_BYTE = 0x110000  # KINGLET_NEXT_BYTE
NEXT_END = 0x7FFFFFFF  # KINGLET_NEXT_END


class LastWork(NamedTuple):
    """The work of a query (`kinglet_work`)."""

    cache_computed: bool
    clusters_opened: int
    cluster_count: int
    multiplications: float
    additions: float
    others: float


class Queries:
    """Queries about the token that follows a lane's last step.

    Log-probabilities are natural; an impossible word has minus infinity. Before the lane's first
    step every query raises WrongOrder.
    """

    _turn: Turn
    vocabulary_size: int

    def _begin(self, vocabulary_size: int) -> None:
        self.vocabulary_size = vocabulary_size
        self._number = c_double()
        self._number_at: Any = c_void_p.from_param(addressof(self._number))
        # Buffers of a word id and a number for each answer, allocated at the first use.
        self._scratch: tuple[Any, Any] = (c_uint32 * 0)(), (c_double * 0)()

    def _do(self, call: Callable[..., int], *arguments: Any) -> None:
        turn = self._turn
        turn.run(lambda: check(call(turn.handle, *arguments)))

    def _buffers(self, count: int) -> tuple[Any, Any]:
        """The buffers, large enough for `count` words. Ctrl-C leaves both or neither changed."""
        if len(self._scratch[0]) < count:
            self._scratch = (c_uint32 * count)(), (c_double * count)()
        return self._scratch

    def _best(self, call: Callable[..., int], lane: int, k: int, *arguments: Any) -> Words:
        def best() -> Words:
            ids, values = self._buffers(min(k, self.vocabulary_size))
            count = c_uint32()
            check(call(self._turn.handle, lane, *arguments, addressof(ids), addressof(values),
                       len(ids), addressof(count)))
            return list(zip(ids[: count.value], values[: count.value]))

        return self._turn.run(best)

    def _ask_number(self, call: Callable[..., int], *arguments: Any) -> float:
        number = c_double()
        self._do(call, *arguments, addressof(number))
        return number.value

    def _ask_id(self, call: Callable[..., int], *arguments: Any) -> int:
        id = c_uint32()
        self._do(call, *arguments, addressof(id))
        return id.value

    def log_probability(self, id: int, lane: int = 0) -> float:
        """The log-probability of word `id`."""
        if type(id) is not int or type(lane) is not int or (id | lane) >> 32:
            id, lane = integer(id, "id"), _lane(lane)
        turn = self._turn
        mine: list[None] = []
        try:
            try:
                mine += map(turn.pop, LAST)
            except IndexError:
                raise turn.refusal() from None
            status = _log_probability(turn.pointer, lane, id, self._number_at)
            if status:
                turn.check(status)
            return self._number.value
        finally:
            turn.free.extend(mine)

    def log_probabilities(
        self, ids: Ids | None = None, lane: int = 0, out: Any = None
    ) -> Floats:
        """The log-probability of every word as float, or of the words `ids` as double.

        `out`, if given, is a writable buffer of floats (such as a NumPy array), which is filled
        and returned; numpy.asarray makes an array of the answer without copying it.
        """
        if ids is None:
            return self._distribution(lib.kinglet_session_log_probabilities, lane, out)
        if out is not None:
            raise InvalidArgument("kinglet: out: expected it without ids, found both")
        wanted = uint32s(ids)
        values = zeros("d", len(wanted))
        self._do(lib.kinglet_session_log_probabilities_of, _lane(lane), address(wanted),
                 len(wanted), address(values))
        return values  # type: ignore[no-any-return]

    def probabilities(self, lane: int = 0, out: Any = None) -> Floats:
        """The probability of every word; `out` as in `log_probabilities`."""
        return self._distribution(lib.kinglet_session_probabilities, lane, out)

    def _distribution(self, call: Callable[..., int], lane: int, out: Any) -> Floats:
        if out is None:
            out = zeros("f", self.vocabulary_size)
        at = float32s(out)
        self._do(call, _lane(lane), addressof(at), len(at))
        return out  # type: ignore[no-any-return]

    def top_k(self, k: int, lane: int = 0) -> Words:
        """The k most probable words as (id, log-probability), the most probable first."""
        k = integer(k, "k")
        return self._best(lib.kinglet_session_top_k, _lane(lane), k, k)

    def top_p(self, share: float, lane: int = 0) -> Words:
        """The fewest words whose probabilities add up to `share`, the most probable first."""
        return self._best(
            lib.kinglet_session_top_p, _lane(lane), self.vocabulary_size, float(share)
        )

    def rank(self, id: int, lane: int = 0) -> int:
        """The rank of word `id` in the order of `top_k`, from 1."""
        return self._ask_id(lib.kinglet_session_rank, _lane(lane), integer(id, "id"))

    def allowed_top_k(self, allowed: Ids, k: int, lane: int = 0) -> Words:
        """`top_k` of the words `allowed`."""
        k, words = integer(k, "k"), uint32s(allowed, "allowed")
        return self._best(lib.kinglet_session_allowed_top_k, _lane(lane), k, address(words),
                          len(words), k)

    def allowed_probability(self, allowed: Ids, lane: int = 0) -> float:
        """The sum of the probabilities of the words `allowed`."""
        words = uint32s(allowed, "allowed")
        return self._ask_number(lib.kinglet_session_allowed_probability, _lane(lane),
                                address(words), len(words))

    def prefix_top_k(self, prefix: str, k: int, lane: int = 0) -> Words:
        """`top_k` of the words that begin with `prefix`."""
        k, text = integer(k, "k"), utf8(prefix, "prefix")
        return self._best(lib.kinglet_session_prefix_top_k, _lane(lane), k, text, len(text), k)

    def prefix_probability(self, prefix: str, lane: int = 0) -> float:
        """The sum of the probabilities of the words that begin with `prefix`."""
        text = utf8(prefix, "prefix")
        return self._ask_number(lib.kinglet_session_prefix_probability, _lane(lane), text,
                                len(text))

    def next_characters(self, prefix: str, lane: int = 0) -> dict[str, float]:
        """The probability of each character after `prefix`; "" is the end of the word.

        A byte that begins no UTF-8 character is a lone surrogate (`surrogateescape`).
        """
        text = utf8(prefix, "prefix")
        return self._characters(lib.kinglet_session_next_characters, _lane(lane), text, len(text))

    def _characters(self, call: Callable[..., int], *arguments: Any) -> dict[str, float]:
        def characters() -> dict[str, float]:
            count = c_uint32(self.vocabulary_size)
            while True:
                capacity = max(1, count.value)
                codes, values = (c_uint32 * capacity)(), (c_double * capacity)()
                status = call(self._turn.handle, *arguments, addressof(codes), addressof(values),
                              capacity, addressof(count))
                if status != BUFFER_TOO_SMALL or count.value <= capacity:
                    break
            check(status)
            return {_character(codes[at]): values[at] for at in range(count.value)}

        return self._turn.run(characters)

    def text_probability(self, prefix: str, most_steps: int = 10_000, lane: int = 0) -> float:
        """The probability that the following text begins with `prefix`, in any tokens."""
        text = utf8(prefix, "prefix")
        return self._ask_number(
            lambda *given: lib.kinglet_session_text_probability(*given, None),
            _lane(lane), text, len(text), _steps(most_steps))

    def text_next_characters(
        self, prefix: str, most_steps: int = 10_000, lane: int = 0
    ) -> dict[str, float]:
        """The probability of the text `prefix` followed by each character; "" is an end."""
        text = utf8(prefix, "prefix")
        return self._characters(
            lambda *given: lib.kinglet_session_text_next_characters(*given, None),
            _lane(lane), text, len(text), _steps(most_steps))

    def text_words(
        self, prefix: str, k: int, beam: int = 32, most_steps: int = 10_000, lane: int = 0
    ) -> list[tuple[str, float]]:
        """The k most probable words that begin with `prefix`, with the space before them."""
        text, k = utf8(prefix, "prefix"), integer(k, "k", 0, _MOST_WORDS)
        beam, lane, most_steps = integer(beam, "beam"), _lane(lane), _steps(most_steps)
        offsets, values = (c_uint64 * (k + 1))(), (c_double * max(1, k))()
        count, needed = c_uint32(), c_uint64()

        def words() -> bytes:
            buffer = ctypes.create_string_buffer(1 << 16)
            while True:
                status = lib.kinglet_session_text_words(
                    self._turn.handle, lane, text, len(text), k, beam, most_steps,
                    addressof(buffer), len(buffer), addressof(needed), addressof(offsets),
                    addressof(values), addressof(count), None)
                if status != BUFFER_TOO_SMALL or needed.value <= len(buffer):
                    break
                buffer = ctypes.create_string_buffer(needed.value)
            check(status)
            return buffer.raw

        found = self._turn.run(words)
        return [(found[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "surrogateescape"),
                 values[at]) for at in range(count.value)]

    def interval(self, id: int, lane: int = 0) -> tuple[int, int]:
        """The interval [low, high) of word `id` in the integers below 2**32, for entropy coders."""
        low, high = c_uint64(), c_uint64()
        self._do(lib.kinglet_session_interval, _lane(lane), integer(id, "id"), addressof(low),
                 addressof(high))
        return low.value, high.value

    def word_at(self, point: int, lane: int = 0) -> int:
        """The word whose interval contains the integer `point`."""
        return self._ask_id(lib.kinglet_session_word_at, _lane(lane),
                            integer(point, "point"))

    def draw(
        self,
        seed: int,
        lane: int = 0,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        excluded: Ids = (),
    ) -> int:
        """Draws a word, which depends on the stream, the seed and the options alone."""
        options, keep = draw_options(temperature, top_k, top_p, excluded)
        answer = self._ask_id(lib.kinglet_session_draw, _lane(lane), _seed(seed),
                              addressof(options))
        del keep
        return answer

    def log_probability_lanes(self, lanes: Ids, ids: Ids) -> Floats:
        """The log-probability of word ids[i] in lane lanes[i], for all lanes at once."""
        where, words = _pairs(lanes, ids, "ids")
        values = zeros("d", len(words))
        self._do(lib.kinglet_session_log_probability_lanes, address(where), address(words),
                 len(words), address(values))
        return values  # type: ignore[no-any-return]

    def top_k_lanes(self, lanes: Ids, k: int) -> list[Words]:
        """`top_k` of each of these lanes."""
        where, k = uint32s(lanes, "lanes"), integer(k, "k")

        def best() -> list[Words]:
            ids, values = self._buffers(max(1, len(where) * min(k, self.vocabulary_size)))
            count = c_uint32()
            check(lib.kinglet_session_top_k_lanes(
                self._turn.handle, address(where), len(where), k, addressof(ids),
                addressof(values), len(ids), addressof(count)
            ))
            each = count.value
            return [
                list(zip(ids[at : at + each], values[at : at + each]))
                for at in range(0, each * len(where), each)
            ] if each else [[] for _ in where]

        return self._turn.run(best)

    def draw_lanes(
        self,
        lanes: Ids,
        seeds: Ids,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        excluded: Ids = (),
    ) -> list[int]:
        """`draw` with seed seeds[i] in lane lanes[i], for all lanes at once."""
        options, keep = draw_options(temperature, top_k, top_p, excluded)
        where = uint32s(lanes, "lanes")
        numbers = uint64s(seeds, "seeds")
        if len(numbers) != len(where):
            raise _lengths("seeds", len(where), len(numbers))
        out = (c_uint32 * len(numbers))()
        self._do(lib.kinglet_session_draw_lanes, address(where), address(numbers), len(where),
                 addressof(options), addressof(out))
        del keep
        return list(out)

    def compute_lanes(self, lanes: Ids) -> None:
        """Computes all that queries about these lanes (at most eight at a time) can need."""
        where = uint32s(lanes, "lanes")
        self._do(lib.kinglet_session_compute_lanes, address(where), len(where))

    def last_work(self, lane: int = 0) -> LastWork:
        """The work of the lane's last query."""
        work = Work(struct_size=ctypes.sizeof(Work))
        self._do(lib.kinglet_session_last_work, _lane(lane), addressof(work))
        return LastWork(bool(work.cache_computed), work.clusters_opened, work.cluster_count,
                        work.multiplications, work.additions, work.others)


def _lane(value: int) -> int:
    return integer(value, "lane")


def _seed(value: int) -> int:
    return integer(value, "seed", 0, MAX_UINT64)


def _steps(value: int) -> int:
    return integer(value, "most_steps", 0, MAX_UINT64)


def _character(code: int) -> str:
    if code == NEXT_END:
        return ""
    if code >= NEXT_BYTE:
        return bytes([code - NEXT_BYTE]).decode("utf-8", "surrogateescape")
    return chr(code)


def _lengths(name: str, expected: int, found: int) -> InvalidArgument:
    return InvalidArgument(f"kinglet: {name}: expected {expected} of them, found {found}")


def _pairs(lanes: Ids, ids: Ids, name: str) -> tuple[Uint32s, Uint32s]:
    where, words = uint32s(lanes, "lanes"), uint32s(ids, name)
    if len(where) != len(words):
        raise _lengths(name, len(where), len(words))
    return where, words


def draw_options(
    temperature: float, top_k: int, top_p: float, excluded: Ids
) -> tuple[DrawOptions, Uint32s]:
    """The options of a draw; the array must live as long as the options are in use."""
    options = DrawOptions()
    check(lib.kinglet_draw_options_init(addressof(options), ctypes.sizeof(options)))
    words = uint32s(excluded, "excluded")
    options.top_k, options.temperature, options.top_p = (
        integer(top_k, "top_k"), float(temperature), float(top_p))
    options.excluded, options.excluded_count = address(words) or None, len(words)
    return options, words
