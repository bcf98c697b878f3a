"""What a program asks about the next token: the half of `Session` that reads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import addressof, c_double, c_uint32, c_uint64, c_void_p
from operator import index
from typing import Any, NamedTuple

from kinglet._buffers import Floats, Ids, Uint32s, address, refused_id, uint32s, utf8, zeros
from kinglet._native import DrawOptions, Work, check, lib, untyped
from kinglet._turns import Turn
from kinglet.errors import InvalidArgument

Words = list[tuple[int, float]]

_log_probability = untyped("session_log_probability")

NEXT_BYTE = 0x110000  # KINGLET_NEXT_BYTE
NEXT_END = 0x7FFFFFFF  # KINGLET_NEXT_END


class LastWork(NamedTuple):
    """What a query computed (`kinglet_work`)."""

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

    def _begin(self, handle: int, vocabulary_size: int, what: str) -> None:
        self.vocabulary_size = vocabulary_size
        self._turn = Turn(handle, what)
        self._free = self._turn.free
        self._number = c_double()
        self._number_at: Any = c_void_p.from_param(addressof(self._number))
        self._id = c_uint32()
        self._id_at = addressof(self._id)
        self._count = c_uint64()
        self._count_at = addressof(self._count)
        # One scratch of a word and a number for every word of the vocabulary, made when first used.
        self._ids: Any = None
        self._values: Any = None

    def _room(self, count: int) -> int:
        """Makes the scratch large enough for `count` words; returns its size."""
        if self._ids is None or len(self._ids) < count:
            self._ids = (c_uint32 * count)()
            self._values = (c_double * count)()
        return len(self._ids)

    def _best(self, call: Callable[..., int], lane: int, k: int, *arguments: Any) -> Words:
        with self._turn as handle:
            room = self._room(min(index(k), self.vocabulary_size))
            ids, values = self._ids, self._values
            check(call(handle, lane, *arguments, addressof(ids), addressof(values), room,
                       self._id_at))
            count = self._id.value
            return list(zip(ids[:count], values[:count]))

    def _ask_number(self, call: Callable[..., int], *arguments: Any) -> float:
        with self._turn as handle:
            check(call(handle, *arguments, self._number_at))
            return self._number.value

    def _ask_id(self, call: Callable[..., int], *arguments: Any) -> int:
        with self._turn as handle:
            check(call(handle, *arguments, self._id_at))
            return self._id.value

    def log_probability(self, id: int, lane: int = 0) -> float:
        """The log-probability of word `id`."""
        if type(id) is not int or type(lane) is not int:
            id, lane = index(id), index(lane)
        if (id | lane) >> 32:
            raise refused_id(id if id >> 32 else lane)
        try:
            handle = self._free.pop()
        except IndexError:
            raise self._turn.refusal() from None
        try:
            status = _log_probability(handle, lane, id, self._number_at)
            if status:
                check(status)
            return self._number.value
        finally:
            self._free.append(handle)

    def log_probabilities(
        self, ids: Ids | None = None, lane: int = 0, out: Any = None
    ) -> Floats:
        """The log-probability of every word, in float, or in double of the words `ids`.

        `out`, if given, is a writable buffer of floats (an array of NumPy), which is filled and
        returned; numpy.asarray makes an array of the answer without copying it.
        """
        if ids is None:
            return self._distribution(lib.kinglet_session_log_probabilities, lane, out)
        if out is not None:
            raise InvalidArgument("kinglet: out: expected it without ids, found both")
        wanted = uint32s(ids)
        values = zeros("d", len(wanted))
        with self._turn as handle:
            check(lib.kinglet_session_log_probabilities_of(
                handle, _lane(lane), address(wanted), len(wanted), address(values)
            ))
        return values  # type: ignore[no-any-return]

    def probabilities(self, lane: int = 0, out: Any = None) -> Floats:
        """The probability of every word, as `log_probabilities`."""
        return self._distribution(lib.kinglet_session_probabilities, lane, out)

    def _distribution(self, call: Callable[..., int], lane: int, out: Any) -> Floats:
        if out is None:
            out = zeros("f", self.vocabulary_size)
        try:
            view = memoryview(out)
            if view.format != "f":
                raise TypeError(f"elements of format {view.format!r}")
            at = (ctypes.c_char * view.nbytes).from_buffer(out)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"out: expected a writable, contiguous buffer of float32, found {error}"
            ) from None
        with self._turn as handle:
            check(call(handle, _lane(lane), addressof(at), view.nbytes // 4))
        return out  # type: ignore[no-any-return]

    def top_k(self, k: int, lane: int = 0) -> Words:
        """The k most probable words as (id, log-probability), the most probable first."""
        return self._best(lib.kinglet_session_top_k, _lane(lane), _size(k), _size(k))

    def top_p(self, share: float, lane: int = 0) -> Words:
        """The fewest words that hold this share of all probability, the most probable first."""
        return self._best(
            lib.kinglet_session_top_p, _lane(lane), self.vocabulary_size, float(share)
        )

    def rank(self, id: int, lane: int = 0) -> int:
        """The place of word `id` in the order of `top_k`, from 1."""
        return self._ask_id(lib.kinglet_session_rank, _lane(lane), _size(id))

    def allowed_top_k(self, allowed: Ids, k: int, lane: int = 0) -> Words:
        """`top_k` of the words `allowed`."""
        words = uint32s(allowed, "allowed")
        return self._best(lib.kinglet_session_allowed_top_k, _lane(lane), _size(k), address(words),
                          len(words), _size(k))

    def allowed_probability(self, allowed: Ids, lane: int = 0) -> float:
        """The sum of the probabilities of the words `allowed`."""
        words = uint32s(allowed, "allowed")
        return self._ask_number(lib.kinglet_session_allowed_probability, _lane(lane),
                                address(words), len(words))

    def prefix_top_k(self, prefix: str, k: int, lane: int = 0) -> Words:
        """`top_k` of the words that begin with `prefix`."""
        text = utf8(prefix, "prefix")
        return self._best(lib.kinglet_session_prefix_top_k, _lane(lane), _size(k), text, len(text),
                          _size(k))

    def prefix_probability(self, prefix: str, lane: int = 0) -> float:
        """The sum of the probabilities of the words that begin with `prefix`."""
        text = utf8(prefix, "prefix")
        return self._ask_number(lib.kinglet_session_prefix_probability, _lane(lane), text,
                                len(text))

    def next_characters(self, prefix: str, lane: int = 0) -> dict[str, float]:
        """The probability of each character after `prefix`; "" is the end of the word.

        A byte that begins no character of UTF-8 is a lone surrogate, as everywhere.
        """
        text = utf8(prefix, "prefix")
        return self._characters(lib.kinglet_session_next_characters, _lane(lane), text, len(text))

    def _characters(self, call: Callable[..., int], *arguments: Any) -> dict[str, float]:
        with self._turn as handle:
            count = c_uint32(self.vocabulary_size)
            while True:
                room = max(1, count.value)
                characters, values = (c_uint32 * room)(), (c_double * room)()
                status = call(handle, *arguments, addressof(characters), addressof(values),
                              room, addressof(count))
                if status != 103 or count.value <= room:  # KINGLET_BUFFER_TOO_SMALL
                    break
            check(status)
        return {_character(characters[at]): values[at] for at in range(count.value)}

    def text_probability(self, prefix: str, most_steps: int = 10_000, lane: int = 0) -> float:
        """The probability that the text which follows begins so, in whatever pieces."""
        text = utf8(prefix, "prefix")
        return self._ask_number(
            lambda *given: lib.kinglet_session_text_probability(*given, None),
            _lane(lane), text, len(text), index(most_steps))

    def text_next_characters(
        self, prefix: str, most_steps: int = 10_000, lane: int = 0
    ) -> dict[str, float]:
        """The probability of the text `prefix` with each character behind it; "" is an end."""
        text = utf8(prefix, "prefix")
        return self._characters(
            lambda *given: lib.kinglet_session_text_next_characters(*given, None),
            _lane(lane), text, len(text), index(most_steps))

    def text_words(
        self, prefix: str, k: int, beam: int = 32, most_steps: int = 10_000, lane: int = 0
    ) -> list[tuple[str, float]]:
        """The k most probable words that begin so, with the space before them."""
        text = utf8(prefix, "prefix")
        offsets, values = (c_uint64 * (_size(k) + 1))(), (c_double * max(1, k))()
        count, needed = c_uint32(), c_uint64()
        buffer = ctypes.create_string_buffer(1 << 16)
        with self._turn as handle:
            while True:
                status = lib.kinglet_session_text_words(
                    handle, _lane(lane), text, len(text), k, _size(beam), index(most_steps),
                    addressof(buffer), len(buffer), addressof(needed), addressof(offsets),
                    addressof(values), addressof(count), None)
                if status != 103 or needed.value <= len(buffer):  # KINGLET_BUFFER_TOO_SMALL
                    break
                buffer = ctypes.create_string_buffer(needed.value)
            check(status)
        return [(buffer.raw[offsets[at] : offsets[at + 1] - 1].decode("utf-8", "surrogateescape"),
                 values[at]) for at in range(count.value)]

    def interval(self, id: int, lane: int = 0) -> tuple[int, int]:
        """The integers below 2**32 that belong to word `id`, for entropy coders: [low, high)."""
        low, high = c_uint64(), c_uint64()
        with self._turn as handle:
            check(lib.kinglet_session_interval(
                handle, _lane(lane), _size(id), addressof(low), addressof(high)))
        return low.value, high.value

    def word_at(self, point: int, lane: int = 0) -> int:
        """The word whose interval has the integer `point`."""
        return self._ask_id(lib.kinglet_session_word_at, _lane(lane), _size(point))

    def draw(
        self,
        seed: int,
        lane: int = 0,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        left_out: Ids = (),
    ) -> int:
        """Draws a word. It depends on the stream, the seed and the options alone."""
        options, keep = draw_options(temperature, top_k, top_p, left_out)
        answer = self._ask_id(lib.kinglet_session_draw, _lane(lane), _seed(seed),
                              addressof(options))
        del keep
        return answer

    def sample(self, seed: int, temperature: float = 1.0, lane: int = 0) -> int:
        """Draws from all words at a temperature."""
        return self._ask_id(lib.kinglet_session_sample, _lane(lane), _seed(seed),
                            float(temperature))

    def log_probability_lanes(self, lanes: Ids, ids: Ids) -> Floats:
        """The log-probability of word ids[i] in lane lanes[i], for all lanes at once."""
        where, words = _pairs(lanes, ids, "ids")
        values = zeros("d", len(words))
        with self._turn as handle:
            check(lib.kinglet_session_log_probability_lanes(
                handle, address(where), address(words), len(words), address(values)
            ))
        return values  # type: ignore[no-any-return]

    def top_k_lanes(self, lanes: Ids, k: int) -> list[Words]:
        """`top_k` of each of these lanes."""
        where = uint32s(lanes, "lanes")
        with self._turn as handle:
            room = self._room(max(1, len(where) * min(_size(k), self.vocabulary_size)))
            ids, values = self._ids, self._values
            check(lib.kinglet_session_top_k_lanes(
                handle, address(where), len(where), k, addressof(ids), addressof(values),
                room, self._id_at
            ))
            each = self._id.value
            return [
                list(zip(ids[at : at + each], values[at : at + each]))
                for at in range(0, each * len(where), each)
            ] if each else [[] for _ in where]

    def draw_lanes(
        self,
        lanes: Ids,
        seeds: Ids,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        left_out: Ids = (),
    ) -> list[int]:
        """`draw` with seed seeds[i] in lane lanes[i], for all lanes at once."""
        options, keep = draw_options(temperature, top_k, top_p, left_out)
        drawn = self._draw_lanes(lib.kinglet_session_draw_lanes, lanes, seeds, addressof(options))
        del keep
        return drawn

    def sample_lanes(self, lanes: Ids, seeds: Ids, temperature: float = 1.0) -> list[int]:
        """`sample` with seed seeds[i] in lane lanes[i], for all lanes at once."""
        return self._draw_lanes(lib.kinglet_session_sample_lanes, lanes, seeds, float(temperature))

    def _draw_lanes(
        self, call: Callable[..., int], lanes: Ids, seeds: Ids, options: Any
    ) -> list[int]:
        where = uint32s(lanes, "lanes")
        seed_list = [_seed(seed) for seed in seeds]
        if len(seed_list) != len(where):
            raise _lengths("seeds", len(where), len(seed_list))
        numbers = (c_uint64 * len(seed_list))(*seed_list)
        out = (c_uint32 * len(seed_list))()
        with self._turn as handle:
            check(call(handle, address(where), addressof(numbers), len(where), options,
                       addressof(out)))
        return list(out)

    def compute_lanes(self, lanes: Ids) -> None:
        """Computes what queries about these lanes (at most eight at a time) can need."""
        where = uint32s(lanes, "lanes")
        with self._turn as handle:
            check(lib.kinglet_session_compute_lanes(handle, address(where), len(where)))

    def last_work(self, lane: int = 0) -> LastWork:
        """What the lane's last query computed."""
        work = Work(struct_size=ctypes.sizeof(Work))
        with self._turn as handle:
            check(lib.kinglet_session_last_work(handle, _lane(lane), addressof(work)))
        return LastWork(bool(work.cache_computed), work.clusters_opened, work.cluster_count,
                        work.multiplications, work.additions, work.others)


def _size(value: int) -> int:
    value = index(value)
    if value >> 32:
        raise refused_id(value)
    return value


_lane = _size


def _seed(value: int) -> int:
    return index(value) & 0xFFFFFFFFFFFFFFFF


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
    temperature: float, top_k: int, top_p: float, left_out: Ids
) -> tuple[DrawOptions, Uint32s]:
    """The options of a draw; keep the array as long as they are in use."""
    options = DrawOptions()
    check(lib.kinglet_draw_options_init(addressof(options), ctypes.sizeof(options)))
    words = uint32s(left_out, "left_out")
    options.top_k, options.temperature, options.top_p = _size(top_k), temperature, top_p
    options.left_out, options.left_out_count = address(words) or None, len(words)
    return options, words
