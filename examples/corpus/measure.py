#!/usr/bin/env python3
"""What scoring a corpus costs on this machine: processor time by token, memory, and workers.

    measure.py MODEL.kgl [--rounds 5] [--documents 2000] [--many 16]

Prints the cost of a worker as t = a + b tokens for several numbers of lanes; the gain from one to
two workers and that from one to two processes of the command, interleaved; medians, and the
processor time by token of many workers on these processors. Needs no host: what hosts add is in
docs/SCALE.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pathlib
import queue
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from make_corpus import documents

import kinglet_lm


class Work(NamedTuple):
    """The measurements of a worker."""

    tokens: int
    start: float  # processor seconds until the first document
    busy: float  # processor seconds from then on
    began: float  # when that was
    ended: float
    memory: float  # MB of its own, plus its part of the memory that processes have in common


def pss() -> float:
    with open("/proc/self/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


def work(path: str, texts: list[str], lanes: int, ready: Any, answers: Any) -> None:
    from kinglet_lm.integrations._documents import DocumentScorer

    scorer = DocumentScorer(path, lanes)
    start = time.process_time()
    if ready is not None:
        ready.wait()
    before, began = time.process_time(), time.perf_counter()
    tokens = 0
    for at in range(0, len(texts), 256):  # a filter's batch
        tokens += sum(score.tokens for score in scorer.score(texts[at : at + 256]))
    answers.put(Work(tokens, start, time.process_time() - before, began, time.perf_counter(),
                     pss()))


def run(path: str, texts: list[str], workers: int, lanes: int) -> list[Work]:
    """Runs `workers` processes, each with its part of the texts, once all of them are ready."""
    context = multiprocessing.get_context("spawn")
    ready, answers = context.Barrier(workers), context.Queue()
    processes = [context.Process(target=work, args=(path, texts[at::workers], lanes, ready,
                                                    answers)) for at in range(workers)]
    for process in processes:
        process.start()
    found: list[Work] = []
    while len(found) < workers:
        try:
            found.append(answers.get(timeout=1.0))
        except queue.Empty:
            if any(process.exitcode for process in processes):
                for process in processes:
                    process.terminate()
                raise SystemExit("measure: a worker ended early; see above") from None
    for process in processes:
        process.join()
    return found


def rate(found: list[Work]) -> float:
    """Tokens a second from the first document to the last."""
    wall = max(w.ended for w in found) - min(w.began for w in found)
    return sum(w.tokens for w in found) / wall


def commands(path: str, texts: list[str], processes: int, folder: str) -> float:
    """Tokens a second of `processes` runs of `kinglet score --lines`, their start included."""
    running = []
    started = time.perf_counter()
    for at in range(processes):
        text, answers = (pathlib.Path(folder) / f"{at}.{kind}" for kind in ("txt", "json"))
        text.write_text("".join(line + "\n" for line in texts[at::processes]))
        with open(answers, "w") as file:  # a pipe without a reader would stop the others
            running.append((answers, subprocess.Popen(
                [kinglet_lm.command_path(), "score", path, "--lines", "--lanes", "16",
                 "--threads", "1", "--json", "--text", str(text)],
                stdout=file, stderr=subprocess.DEVNULL)))
    tokens = 0
    for answers, process in running:
        process.wait()
        tokens += int(json.loads(answers.read_text().splitlines()[-1])["scored"])
    return tokens / (time.perf_counter() - started)


def cost(path: str, texts: list[str], lanes: int) -> tuple[float, float, float]:
    """a in seconds and b in seconds a token by least squares over four sizes, and megabytes."""
    points = []
    memory = 0.0
    for share in (0.1, 0.4, 0.7, 1.0):
        (found,) = run(path, texts[: int(share * len(texts))], 1, lanes)
        points.append((float(found.tokens), found.start + found.busy))
        memory = max(memory, found.memory)
    line = statistics.linear_regression([x for x, _ in points], [y for _, y in points])
    return line.intercept, line.slope, memory


def rows(options: argparse.Namespace, texts: list[str], folder: str) -> Iterator[str]:
    path = options.model
    for lanes in (1, 16, 64):
        a, b, memory = cost(path, texts, lanes)
        yield (f"{lanes:2} lanes: t = {a:.2f} s + {1e6 * b:.1f} us a token: {1 / b:,.0f} tokens a "
               f"second and processor; {memory:.0f} MB a worker")
    gains: dict[str, list[float]] = {"command": [], "workers": []}
    for _ in range(options.rounds):
        one, two = (commands(path, texts, count, folder) for count in (1, 2))
        gains["command"].append(two / one)
        one, two = (rate(run(path, texts, count, 16)) for count in (1, 2))
        gains["workers"].append(two / one)
    ratios = [ours / theirs for ours, theirs in zip(gains["workers"], gains["command"])]
    yield (f"from one to two: workers {statistics.median(gains['workers']):.3f}, processes of the "
           f"command {statistics.median(gains['command']):.3f}, median of the ratios of "
           f"{options.rounds} rounds {statistics.median(ratios):.3f}")
    alone: list[float] = []
    many: list[float] = []
    for _ in range(max(1, options.rounds // 2)):
        for count, into in ((1, alone), (options.many, many)):
            found = run(path, texts, count, 16)
            into.append(sum(w.busy for w in found) / sum(w.tokens for w in found))
    one, other = statistics.median(alone), statistics.median(many)
    yield (f"{options.many} workers on {os.cpu_count()} processors: {1e6 * other:.1f} us of "
           f"processor a token, one worker {1e6 * one:.1f}: {other / one:.3f} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--many", type=int, default=16)
    options = parser.parse_args()
    texts = [row["text"] for row in documents(options.documents)]
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(options, texts, folder):
            print(row, flush=True)


if __name__ == "__main__":
    main()
