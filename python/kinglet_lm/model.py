"""Models."""

from __future__ import annotations

import array
import ctypes
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from ctypes import addressof, c_int32, c_uint32, c_uint64
from typing import Any

from kinglet_lm import scoring
from kinglet_lm._buffers import Bytes, Ids, TextOrIds, address, uint32s, utf8, zeros
from kinglet_lm._handle import Handle, watch_forks
from kinglet_lm._native import ModelOptions, check, lib, number_of, text_of
from kinglet_lm._numbers import MAX_UINT64, integer
from kinglet_lm.archives import Coder
from kinglet_lm.beam import Beam
from kinglet_lm.embedding import Embedding
from kinglet_lm.errors import InvalidArgument, Mismatch, Unsupported, WrongOrder
from kinglet_lm.generation import Generation
from kinglet_lm.keyboard import Keyboard
from kinglet_lm.ngrams import Scorer
from kinglet_lm.scoring import LOG10_E, Hypothesis, Score
from kinglet_lm.session import Session
from kinglet_lm.state import State, read_state
from kinglet_lm.vocabulary import Vocabulary

_open_models: weakref.WeakValueDictionary[tuple[str, str], Model] = weakref.WeakValueDictionary()


def _is_path(source: bytes) -> bool:
    """Whether the bytes name a file; a model file begins with others than any path."""
    return not source.startswith(b"KGL1") and b"\0" not in source and os.path.exists(source)


class Model:
    """A verified model, ready to run. Immutable; any number of threads may share one.

    `source` is the path of a model file (str, bytes or os.PathLike), or the file's bytes. `backend`
    is "cpu" (default), "onednn", "cuda", "ref" or "ref64". `memory_limit` is the most bytes that
    the model, its sessions and states may use;
    `session_memory_limit` the most bytes for the lanes of one session. With None the defaults
    apply: opening a file takes at most 64 MiB and 64 bytes for each byte of the file, and a
    session 4 GiB.

    A pickled model is its path and digest: the other process opens the file again, and raises
    Mismatch if the file has changed. A model made of bytes does not pickle. After a fork the
    child may continue to use models of the processor's backends, also those of the parent.
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | bytes,
        backend: str = "cpu",
        memory_limit: int | None = None,
        session_memory_limit: int | None = None,
    ) -> None:
        options = ModelOptions()
        check(lib.kinglet_model_options_init(addressof(options), ctypes.sizeof(options)))
        name = utf8(backend, "backend")
        options.backend = name
        for field, limit in (("memory_limit", memory_limit),
                             ("session_memory_limit", session_memory_limit)):
            if limit is not None:
                setattr(options, field, integer(limit, field, 1, MAX_UINT64))
        self._options = (backend, memory_limit, session_memory_limit)
        handle = Handle(lib.kinglet_model_close)
        self.path: str | None = None
        if isinstance(source, bytes) and not _is_path(source):
            check(lib.kinglet_model_open_memory(source, len(source), addressof(options),
                                                addressof(handle)))
        elif isinstance(source, (str, bytes, os.PathLike)):
            self.path = os.path.abspath(os.fsdecode(source))
            path = os.fsencode(os.fspath(source))
            if b"\0" in path:
                raise InvalidArgument(f"kinglet: path: expected no NUL in it, found {source!r}")
            check(lib.kinglet_model_open(path, addressof(options), addressof(handle)))
        else:
            raise TypeError(
                f"source: expected a path or the bytes of a model file, "
                f"found {type(source).__name__}")
        self._handle: Handle | None = handle
        self.digest: str = text_of(lib.kinglet_model_digest, self.handle).decode()
        self.backend: str = text_of(lib.kinglet_model_backend, self.handle).decode()
        self.vocabulary = Vocabulary(self)
        self._idle: list[Session] = []
        self._idle_lock = threading.Lock()
        _open_models[self.digest, self.backend] = self
        watch_forks(self)

    @property
    def handle(self) -> Handle:
        """The C interface's `kinglet_model*`."""
        if self._handle is None:
            raise WrongOrder(
                "kinglet: model: expected one opened in this process, found one of the backend "
                "cuda opened before a fork; open it in the child, or start processes by spawn")
        return self._handle

    def after_fork(self) -> None:
        """Releases a GPU's model in a child process: the driver does not survive a fork."""
        self._idle_lock = threading.Lock()
        self._idle = []
        if self.backend == "cuda" and self._handle is not None:
            self._handle.leave()
            self._handle = None

    # --- facts

    def __repr__(self) -> str:
        return f"<kinglet_lm.Model {self.path or 'of bytes'}, digest {self.digest}>"

    @property
    def start_token(self) -> int | None:
        """The token that training puts before each text; None if there is no such token."""
        return self._optional(lib.kinglet_model_start_token)

    @property
    def positions(self) -> int | None:
        """The number of tokens after which a stream's positions start again; None if unlimited."""
        return self._optional(lib.kinglet_model_positions)

    @property
    def longest_source(self) -> int:
        """The most tokens of a source, or of a masked model's text; 0 for other models."""
        return int(number_of(c_uint32, lib.kinglet_model_longest_source, self.handle))

    @property
    def pooled_width(self) -> int:
        """Of a masked model: the number of elements of a text's pooled vector; 0 without one."""
        return int(number_of(c_uint32, lib.kinglet_model_pooled_width, self.handle))

    @property
    def score_count(self) -> int:
        """Of a masked model: the number of scores of a text, or of each token; 0 without scores."""
        return int(number_of(c_uint32, lib.kinglet_model_score_count, self.handle))

    def _optional(self, call: Any) -> int | None:
        try:
            return int(number_of(c_uint32, call, self.handle))
        except Unsupported:
            return None

    @property
    def lane_bytes(self) -> int:
        """The most bytes that a session allocates for each lane."""
        return int(number_of(c_uint64, lib.kinglet_model_lane_bytes, self.handle))

    @property
    def state_bytes(self) -> int:
        """The largest size of bytes(state)."""
        return int(number_of(c_uint64, lib.kinglet_model_state_bytes, self.handle))

    # --- copies and pickles

    def identity(self) -> tuple[str | None, str, tuple[str, int | None, int | None]]:
        """Path, digest and options, from which another process opens the model again."""
        return self.path, self.digest, self._options

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: object) -> Model:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        if self.path is None:
            raise TypeError("model: expected one opened from a path, found one made of bytes; "
                            "pickle the bytes, or write them to a file and open that")
        return model_of_pickle, self.identity()

    # --- text

    def tokenize(self, text: str) -> list[int]:
        """The ids of a text, by the model's tokenizer or else split at white space.

        Words that the vocabulary lacks become the unknown word. Byte order marks at the beginning
        of a line and carriage returns at its end are omitted.
        """
        return list(self._tokens(text, False)[0])

    def tokenize_with_ranges(self, text: str) -> list[tuple[int, int, int]]:
        """The id of each token, and where its UTF-8 bytes begin and end in the text."""
        ids, ranges = self._tokens(text, True)
        return list(zip(ids, ranges[0::2], ranges[1::2]))

    @property
    def spells(self) -> bool:
        """Whether the model keeps a character CNN and so reads words that its vocabulary lacks."""
        return bool(number_of(c_int32, lib.kinglet_model_spells, self.handle))

    def spell(self, word: str) -> int:
        """The number by which sessions of a model that spells read a word.

        The word's id, or a number at or above `len(vocabulary)`, which `step` and its likes take as
        an id; queries take ids, and predict the unknown word in its place.
        """
        return self.vocabulary._find(lib.kinglet_model_spell, word)

    def spelled(self, text: str) -> list[int]:
        """`tokenize`, with `spell` of each unknown word in a model that spells."""
        unknown = self.vocabulary.unknown
        if not self.spells:
            return self.tokenize(text)
        data = utf8(text)
        return [self.spell(data[begin:end].decode("utf-8", "surrogateescape"))
                if id == unknown else id
                for id, begin, end in self.tokenize_with_ranges(text)]

    def segments(self, text: str) -> list[int]:
        """The segment of each token of a masked model's text: "A ||| B" is a pair, 0 and 1."""
        data = utf8(text)
        needed = c_uint64()
        call = lib.kinglet_model_text_segments
        check(call(self.handle, data, len(data), None, 0, addressof(needed)))
        found = zeros("I", max(needed.value, 1))
        check(call(self.handle, data, len(data), address(found), needed.value, None))
        return list(found[: needed.value])

    def _tokens(self, text: str, with_ranges: bool) -> tuple[Any, Any]:
        data = utf8(text)
        needed = c_uint64()
        # A text rarely has more tokens than bytes, so one call is usually enough.
        capacity = len(data) + 1
        ids = zeros("I", capacity)
        ranges = zeros("Q", 2 * capacity) if with_ranges else array.array("Q")
        call = lib.kinglet_model_tokenize
        status = call(self.handle, data, len(data), address(ids),
                      address(ranges) if with_ranges else None, capacity, addressof(needed))
        if needed.value > capacity:
            capacity = needed.value
            ids = zeros("I", capacity)
            ranges = zeros("Q", 2 * capacity) if with_ranges else array.array("Q")
            status = call(self.handle, data, len(data), address(ids),
                          address(ranges) if with_ranges else None, capacity, addressof(needed))
        check(status)
        return ids[: needed.value], ranges[: 2 * needed.value]

    def detokenize(self, ids: Ids) -> str:
        """The text of these tokens."""
        words = uint32s(ids)
        text = text_of(lib.kinglet_model_detokenize, self.handle, address(words), len(words))
        return text.decode("utf-8", "surrogateescape")

    def ids(self, text: TextOrIds) -> list[int]:
        """The ids of a text, or the given ids."""
        if isinstance(text, str):
            return self.tokenize(text)
        return uint32s(text, "text").tolist()

    def _with_line_ends(self, text: str) -> list[int]:
        """The ids of a text's lines, each followed by the token for its end, as files are read."""
        end = self.vocabulary.end
        ids: list[int] = []
        for line in text.removesuffix("\n").split("\n") if text else []:
            ids += self.spelled(line)
            if end is not None:
                ids.append(end)
        return ids

    # --- running it

    def session(
        self, lanes: int = 1, threads: int = 1, empty_cache: str = "reference"
    ) -> Session:
        """A session of `lanes` streams, computed by `threads` threads.

        `empty_cache` chooses the predictions of a model with a neural cache while the cache is
        empty: "reference" predicts as the framework, "normalised" by the network alone.
        """
        return Session(self, lanes, threads, empty_cache)

    def beam(
        self, lanes: int = 16, threads: int = 1, empty_cache: str = "reference",
        state_bytes: int = 64 << 20, scorer: Scorer | None = None
    ) -> Beam:
        """Hypotheses of a search, `lanes` of them computed together; the rest as for `session`.

        States of hypotheses beyond `state_bytes` are dropped, those used least recently first, and
        made again from their tokens when they are needed. The scores of a scorer take the place of
        log-probabilities in all answers.
        """
        return Beam(self, lanes, threads, empty_cache, state_bytes, scorer)

    def scorer(self, weight: float = 1.0, unknown_weight: float = 0.0) -> Scorer:
        """What a beam adds up for each token: the network, n-grams and phrases, which it is given.

        `weight` is that of the network's log-probability; the token of unknown words adds
        `unknown_weight`.
        """
        return Scorer(self, weight, unknown_weight)

    def state(self, data: bytes) -> State:
        """The state that bytes(state) wrote. Raises DamagedFile or Mismatch."""
        return read_state(self, data)

    def embedding(self) -> Embedding:
        """The vectors of the model's words, and its classifier."""
        return Embedding(self)

    def generate(
        self,
        prompt: TextOrIds = (),
        tokens: int = 100,
        streams: int = 1,
        seed: int = 0,
        *,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        excluded: Ids = (),
        stop: str = "",
        threads: int = 1,
    ) -> Generation:
        """Texts that continue from the prompt; each `next` draws a word for every text."""
        return Generation(self, self.ids(prompt), tokens, streams, seed, temperature, top_k,
                          top_p, excluded, stop, threads)

    # --- keyboards

    def keyboard(self) -> Keyboard:
        """Finds the words that touches on a keyboard mean."""
        return Keyboard(self)

    # --- archives of any bytes

    def compressor(self, *, threads: int = 1, block_size: int = 1 << 20,
                   fast: bool = False) -> Coder:
        """Makes an archive that only this model restores, as `kinglet compress` does."""
        return Coder(self, lib.kinglet_compressor_create, threads, block_size, fast)

    def decompressor(self, *, threads: int = 1, limit: int | None = None,
                     salvage: bool = False) -> Coder:
        """Restores an archive; a text of more than `limit` bytes is refused."""
        return Coder(self, lib.kinglet_decompressor_create, threads, limit=limit, salvage=salvage)

    def compress(self, data: Bytes, *, threads: int = 1, block_size: int = 1 << 20,
                 fast: bool = False) -> bytes:
        """The archive of these bytes."""
        coder = self.compressor(threads=threads, block_size=block_size, fast=fast)
        return coder.add(data) + coder.finish()

    def decompress(self, archive: Bytes, *, threads: int = 1,
                   limit: int | None = None) -> bytes:
        """The bytes that an archive was made of."""
        coder = self.decompressor(threads=threads, limit=limit)
        return coder.add(archive) + coder.finish()

    # --- scoring

    def _score(self, stream: list[int], empty_cache: str) -> Score:
        if empty_cache != "normalised":
            with self.session(empty_cache=empty_cache) as session:
                return scoring.score_streams(self, session, [stream])[0]
        with self._idle_lock:
            idle = self._idle.pop() if self._idle else None
        session = idle or self.session(empty_cache=empty_cache)
        score = scoring.score_streams(self, session, [stream])[0]
        with self._idle_lock:
            self._idle.append(session)
        return score

    def score_details(self, text: TextOrIds, bos: bool = True, eos: bool = True) -> Score:
        """Scores a sentence token by token, from a fresh state, with begin and end token.

        The numbers are those that `kinglet score --lines` prints for a line, bit for bit.
        """
        return self._score(scoring.framed(self, text, bos, eos), "normalised")

    def score(self, text: TextOrIds, bos: bool = True, eos: bool = True) -> float:
        """The natural log-probability of a sentence, including its end token."""
        return self.score_details(text, bos, eos).log_probability

    def score_log10(self, text: TextOrIds, bos: bool = True, eos: bool = True) -> float:
        """`score` in base 10."""
        return self.score(text, bos, eos) * LOG10_E

    def score_lines(
        self,
        lines: Iterable[TextOrIds],
        *,
        lanes: int = 16,
        threads: int = 1,
        bos: bool = True,
        eos: bool = True,
    ) -> Iterator[Score]:
        """`score_details` of each line without its line end, `lanes` at once.

        Bits do not depend on `lanes`. Lines are read as answers are taken; Ctrl-C ends the call.
        """
        if isinstance(lines, (str, bytes)):
            raise TypeError("lines: expected a file or a list of lines, found one text; "
                            "text.split(chr(10)) splits it")
        texts = (line.removesuffix("\n") if isinstance(line, str) else line for line in lines)
        return scoring.score_lines(self, texts, lanes, threads, bos, eos)

    def rescore(
        self,
        hypotheses: Iterable[TextOrIds],
        given: Iterable[float] | None = None,
        *,
        weight: float = 1.0,
        length_weight: float = 0.0,
        given_weight: float = 1.0,
        threads: int = 1,
    ) -> list[Hypothesis]:
        """The hypotheses of one list, best first, as `kinglet rescore` sorts them.

        `given` are the recogniser's scores, in the order of the hypotheses.
        """
        if isinstance(hypotheses, (str, bytes)):
            raise TypeError("hypotheses: expected a list of texts, found one text")
        return scoring.rescore(
            self, hypotheses, given, (given_weight, weight, length_weight), threads)

    def score_batch(
        self, sentences: Iterable[TextOrIds], *, lanes: int = 16, threads: int = 1,
        bos: bool = True, eos: bool = True,
    ) -> list[float]:
        """`score` of each sentence, `lanes` at once."""
        found = self.score_lines(sentences, lanes=lanes, threads=threads, bos=bos, eos=eos)
        return [score.log_probability for score in found]

    def score_batch_log10(
        self, sentences: Iterable[TextOrIds], *, lanes: int = 16, threads: int = 1,
        bos: bool = True, eos: bool = True,
    ) -> list[float]:
        """`score_batch` in base 10."""
        found = self.score_batch(sentences, lanes=lanes, threads=threads, bos=bos, eos=eos)
        return [value * LOG10_E for value in found]

    def score_stream(self, text: TextOrIds, empty_cache: str = "reference") -> Score:
        """Scores a text as one stream, like `kinglet score --text`.

        Without a start token the first token is not scored.
        """
        start = self.start_token
        ids = self._with_line_ends(text) if isinstance(text, str) else self.ids(text)
        return self._score(ids if start is None else [start, *ids], empty_cache)

    def perplexity(self, text: TextOrIds) -> float:
        """The perplexity of a text as `kinglet score --text` prints it; NaN if it has no tokens."""
        return self.score_stream(text).perplexity


def model_of_pickle(
    path: str | None, digest: str, options: tuple[str, int | None, int | None]
) -> Model:
    """The model of a pickle. Raises Mismatch if the file has changed."""
    if path is None:
        raise Mismatch(f"kinglet: pickle: expected an open model of digest {digest}, found none")
    model = Model(path, *options)
    if model.digest != digest:
        raise Mismatch(f"kinglet: pickle: {path}: expected digest {digest}, found {model.digest}; "
                       "the file has changed since: pickle a model of the new one",
                       Mismatch.status, Mismatch.status_name)
    return model


def state_of_pickle(
    path: str | None, digest: str, options: tuple[str, int | None, int | None], data: bytes
) -> State:
    """The state of a pickle, for an open model with the digest or for the file at the path."""
    model = _open_models.get((digest, options[0]))
    if model is None:
        model = model_of_pickle(path, digest, options)
    return read_state(model, data)
