"""Perplexities in datatrove's pipelines: a filter, statistics, and an executor that sees deaths.

    from kinglet_lm.integrations.datatrove import LocalExecutor, PerplexityFilter, Utf8JsonlReader
    pipeline = [Utf8JsonlReader("in"), PerplexityFilter("model.kgl", most=300), JsonlWriter("out")]
    LocalExecutor(pipeline, tasks=64, workers=2, logging_dir="log").run()

The steps run under every executor of the host. A pickled step has no model: each process opens it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from kinglet_lm.errors import DamagedFile, Error, InvalidArgument, Unsupported
from kinglet_lm.integrations._datatrove import BATCH, PACKAGE, VERSION, annotate
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations._host import host

BaseFilter: Any = host(
    "datatrove.pipeline.filters.base_filter", PACKAGE, VERSION, "BaseFilter").BaseFilter
JsonlReader: Any = host(
    "datatrove.pipeline.readers.jsonl", PACKAGE, VERSION, "JsonlReader").JsonlReader
LocalPipelineExecutor: Any = host(
    "datatrove.executor.local", PACKAGE, VERSION, "LocalPipelineExecutor").LocalPipelineExecutor
PipelineStats: Any = host(
    "datatrove.utils.stats", PACKAGE, VERSION, "PipelineStats").PipelineStats
_multiprocess: Any = host("multiprocess", "multiprocess", "0.70.18", "get_context")
_connection: Any = host("multiprocess.connection", "multiprocess", "0.70.18", "wait")


_MARK = b"\xef\xbb\xbf"  # the byte order mark
_PACKED = 1 << 12  # bytes per read, which zstd may unpack to a hundred million


def _unpacked(file: Any, path: str) -> Iterator[bytes]:
    """The decompressed pieces of a zstd file, of all its frames."""
    try:
        import zstandard
    except ImportError:
        raise Unsupported(
            f"kinglet: {path}: expected the package zstandard, which reads zstd, found none; "
            "pip install zstandard") from None
    frame: Any = None
    while data := file.read(_PACKED):
        while data:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                yield frame.decompress(data)
            except zstandard.ZstdError as error:
                raise DamagedFile(f"kinglet: {path}: expected complete zstd data, found: {error}; "
                                  "copy or make the file again") from None
            data = b""
            if frame.eof:
                data, frame = frame.unused_data, None
    if frame is not None:
        raise DamagedFile(f"kinglet: {path}: expected more zstd data, found the end; the file is "
                          "truncated: copy or make it again")


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of a file that is read in pieces."""
    kept: list[bytes] = []
    for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for line in ended:
            yield b"".join([*kept, line])
            kept = []
        kept.append(rest)
    if last := b"".join(kept):
        yield last


class Utf8JsonlReader(JsonlReader):
    """The host's reader of JSON Lines, which also reads files with bytes that are not UTF-8.

    The host's own reader skips the rest of such a file, with a warning. Here each bad byte becomes
    U+FFFD; a line that is no object with a text is omitted and counted as `unreadable_lines`.
    Files of zstd, which the host's own cannot iterate, are read to the end of their last frame.
    """

    def _rows(self, filepath: str) -> Iterator[bytes]:
        is_zstd = self.compression in ("zstd", "zst") or (
            self.compression == "infer" and filepath.endswith((".zst", ".zstd")))
        compression = None if is_zstd else self.compression
        with self.data_folder.open(filepath, "rb", compression=compression) as file:
            yield from _lines(_unpacked(file, filepath)) if is_zstd else file

    def read_file(self, filepath: str) -> Iterator[Any]:
        """The documents of a file."""
        for number, line in enumerate(self._rows(filepath)):
            with self.track_time():
                try:
                    row = json.loads(line.removeprefix(_MARK).decode("utf-8", "replace"))
                except ValueError:
                    row = None
                document = None
                if isinstance(row, dict):
                    document = self.get_document_from_dict(row, filepath, number)
                if not isinstance(row, dict) or (
                        document and not isinstance(document.text, str)):
                    self.stat_update("unreadable_lines")
                    continue
            if document:  # the host skips documents without text
                yield document


class PerplexityFilter(BaseFilter):
    """Keeps documents whose perplexity per token is from `least` to `most`.

    `most_oov` is the fraction of unknown words above which a document is dropped: a closed
    vocabulary gives all of them one probability, so that text of another language has a low
    perplexity. A document of fewer than `least_tokens` tokens, the end included, is dropped too.
    The metadata of every document, kept or dropped, get its score, the model's digest and the
    protocol, under names that begin with `prefix`. `most_tokens` limits the scored tokens of each
    document.
    """

    name = "kinglet perplexity"
    type = "FILTER"

    def __init__(
        self,
        path: str | os.PathLike[str],
        most: float = float("inf"),
        least: float = 0.0,
        most_oov: float = 0.2,
        least_tokens: int = 3,
        lanes: int = 16,
        threads: int = 1,
        most_tokens: int | None = None,
        prefix: str = "kinglet",
        batch_size: int = BATCH,
        exclusion_writer: Any = None,
    ) -> None:
        super().__init__(exclusion_writer, batch_size)
        if not least <= most:
            raise InvalidArgument(
                f"kinglet: most: expected at least {least}, the least, found {most}")
        self.scorer = DocumentScorer(path, lanes, threads, most_tokens)
        self.most, self.least = most, least
        self.most_oov, self.least_tokens = most_oov, least_tokens
        self.prefix = prefix

    def filter(self, doc: Any) -> bool | tuple[bool, str]:
        """Whether a document is kept, and why not."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Any]) -> list[bool | tuple[bool, str]]:
        """Whether each document is kept, and why not."""
        answers: list[bool | tuple[bool, str]] = []
        for score in annotate(self, self.scorer, batch, self.prefix):
            if score is None:
                answers.append((False, "no_text"))
            elif score.tokens < self.least_tokens:
                answers.append((False, "few_tokens"))
            elif score.oov_share > self.most_oov:
                answers.append((False, "unknown_words"))
            elif not self.least <= score.perplexity <= self.most:
                answers.append((False, "perplexity"))
            else:
                answers.append(True)
        return answers


class WorkerDied(Error, RuntimeError):
    """A worker of a local run was killed: run it again, completed tasks are kept."""


def _work(connection: Any) -> None:
    """A worker's main function: runs tasks until the connection is closed."""
    while True:
        try:
            executor, rank, local_rank = connection.recv()
        except EOFError:  # the parent has closed the connection, or ended
            return
        stats, failed = None, None
        try:
            stats = executor._run_for_rank(rank, local_rank)
        except Exception as error:  # raised again in the parent
            failed = error
        connection.send((stats, failed))


class _Worker:
    """A process and its task."""

    def __init__(self, context: Any, number: int) -> None:
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs,), daemon=False)
        self.process.start()
        theirs.close()  # so that reads end with EOFError if the process dies
        self.number = number
        self.rank: int | None = None


class LocalExecutor(LocalPipelineExecutor):
    """The host's local executor, which ends if a worker is killed instead of waiting for ever.

    A task whose worker died is repeated by a new worker, at most `restarts` times in a run; then,
    or if a task raises, no further task begins, running tasks are completed, and the run ends with
    an exception. Completed tasks are kept: running the same again runs the others.
    """

    def __init__(self, *arguments: Any, restarts: int = 0, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.restarts = restarts

    def run(self) -> Any:
        """Runs the tasks that are not completed; returns the statistics, or None without any."""
        if self.depends or self.local_tasks == 0:
            return super().run()
        ranks = self.get_incomplete_ranks(
            range(self.local_rank_offset, self.local_rank_offset + self.local_tasks))
        self._launched = True
        if not ranks:
            return None
        self.save_executor_as_json()
        stats = self._run_ranks(ranks)
        total = sum(stats, start=PipelineStats())
        with self.logging_dir.open("stats.json", "wt") as file:
            total.save_to_disk(file)
        return total

    def _run_ranks(self, ranks: list[int]) -> list[Any]:
        context = _multiprocess.get_context(self.start_method)
        waiting = list(reversed(ranks))
        stats: list[Any] = []
        failed: BaseException | None = None
        died: list[int] = []
        workers: list[_Worker] = []
        restarts = self.restarts
        try:
            workers = [_Worker(context, number) for number in range(min(self.workers, len(ranks)))]
            for worker in workers:
                self._give(worker, waiting)
            while busy := {w.connection: w for w in workers if w.rank is not None}:
                for connection in _connection.wait(list(busy)):
                    worker = busy[connection]
                    try:
                        answer, error = connection.recv()
                    except (EOFError, OSError):
                        died.append(worker.rank or 0)
                        worker.process.join()
                        workers.remove(worker)
                        if restarts and failed is None:
                            restarts -= 1
                            waiting.append(died.pop())
                            workers.append(_Worker(context, worker.number))
                            self._give(workers[-1], waiting)
                        continue
                    if error is None:
                        stats.append(answer)
                    failed = failed or error
                    if died or failed:
                        worker.rank = None
                    else:
                        self._give(worker, waiting)
        except BaseException:
            for worker in workers:
                worker.process.terminate()
            raise
        finally:
            for worker in workers:
                worker.connection.close()
                worker.process.join()
        if failed is not None:
            raise failed
        if died:
            left = self.get_incomplete_ranks(ranks)
            raise WorkerDied(
                f"kinglet: datatrove: tasks {_few(died)}: expected their workers to live, found "
                "them gone (killed by a signal or for memory, or failed to start); run the same "
                f"again: {len(ranks) - len(left)} of {len(ranks)} tasks are completed and kept")
        return stats

    def _give(self, worker: _Worker, waiting: list[int]) -> None:
        """Sends the worker the next task, if there is one."""
        worker.rank = waiting.pop() if waiting else None
        if worker.rank is not None:
            try:
                worker.connection.send((self, worker.rank, worker.number))
            except OSError:
                pass  # the worker died, which the next read reports


def _few(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:10])) + (f" and {len(ranks) - 10} more" if ranks[10:] else "")


def __getattr__(name: str) -> Any:
    """Imports PerplexityStats at its first use: it needs more packages than the others."""
    if name == "PerplexityStats":
        from kinglet_lm.integrations._datatrove_stats import PerplexityStats

        return PerplexityStats
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["LocalExecutor", "PerplexityFilter", "Utf8JsonlReader", "WorkerDied"]
