#!/usr/bin/env python3
"""The scores of a corpus are the same bits however a job is divided and run: one factor at a time.

    corpus_hashes.py [--documents 20000] [--shards 64] [--ray]

Prints, for each way, SHA-256 of the hexadecimal scores sorted by id, documents and seconds; ends
with an error if any differs. The corpus is that of examples/corpus.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import argparse
import gzip
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time

from host_support import ROOT, demo, needs

sys.path.insert(0, str(ROOT / "examples" / "corpus"))
needs("datatrove", "orjson", "regex")

import digest_of_scores
import make_corpus
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from loguru import logger

import kinglet_lm
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations.datatrove import LocalExecutor, PerplexityFilter, WorkerDied


class OtherProcessor:
    """Gives each worker's process another set of instructions, before it opens the model."""

    def __init__(self, names, seen):
        self.names, self.seen = names, seen

    def __call__(self, data, rank, world_size):
        if "KINGLET_CPU" not in os.environ:
            # A file for each process: the next one takes the next set.
            for name in self.names:
                try:
                    os.close(os.open(f"{self.seen}/{name}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os.environ["KINGLET_CPU"] = name
                break
        yield from data


class KillOnce:
    """Kills its own process, once, when it sees a document."""

    def __init__(self, id, mark):
        self.id, self.mark = id, mark

    def __call__(self, data, rank, world_size):
        for doc in data:
            if doc.id == self.id and not os.path.exists(self.mark):
                with open(self.mark, "w"):
                    pass
                os.kill(os.getpid(), signal.SIGKILL)
            yield doc


def pipeline(path, source, out, lanes=16, before=(), after=()):
    return [JsonlReader(source, add_file_path=False), *before,
            PerplexityFilter(path, most=600.0, lanes=lanes,
                             exclusion_writer=JsonlWriter(f"{out}/dropped")),
            *after, JsonlWriter(f"{out}/kept")]


def local(path, source, out, tasks=64, workers=2, lanes=16, **steps):
    LocalExecutor(pipeline(path, source, out, lanes, **steps), tasks=tasks, workers=workers,
                  logging_dir=f"{out}/log").run()


def one_process(path, source, out):
    """Without a host: the reader, the scorer, a file."""
    scorer = DocumentScorer(path)
    os.makedirs(f"{out}/kept")
    with gzip.open(f"{out}/kept/all.jsonl.gz", "wt", compresslevel=1) as file:
        for shard in sorted(pathlib.Path(source).glob("*.gz")):
            with gzip.open(shard, "rt", encoding="utf-8") as rows:
                docs = [json.loads(row) for row in rows]
            for doc, score in zip(docs, scorer.score(doc["text"] for doc in docs)):
                file.write(json.dumps({**doc, "metadata": scorer.record(score)}) + "\n")


def command(path, source, out):
    """`kinglet score --lines`, a line for each document; compared to its printed digits."""
    rows = []
    for shard in sorted(pathlib.Path(source).glob("*.gz")):
        with gzip.open(shard, "rt", encoding="utf-8") as file:
            rows += [json.loads(row) for row in file]
    text = pathlib.Path(out) / "lines.txt"
    text.parent.mkdir()
    text.write_text("".join(row["text"] + "\n" for row in rows))
    printed = kinglet_lm.run_json("score", path, "--lines", "--lanes", 16, "--text", text)[:-1]
    return {row["id"]: f"{one['logprob']:.9g}" for row, one in zip(rows, printed)}


def killed(path, source, out, id):
    """A worker dies in the middle of a task: the job ends, and a second run completes it."""
    steps = {"before": [KillOnce(id, f"{out}.mark")]}
    started = time.perf_counter()
    try:
        local(path, source, out, **steps)
    except WorkerDied as error:
        assert "run the same again" in str(error), error
        completed = len(os.listdir(f"{out}/log/completions")) if os.path.isdir(
            f"{out}/log/completions") else 0
        print(f"   killed: ended after {time.perf_counter() - started:.1f} s, {completed} of 64 "
              "tasks completed; relaunched", flush=True)
    else:
        raise AssertionError("expected the killed worker to end the job")
    local(path, source, out, **steps)


def ray_data(path, source, out, folder):
    """Ray Data, two actors, one of them killed once."""
    import ray

    from kinglet_lm.integrations import ray as adapter

    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    dataset = ray.data.read_json(source, file_extensions=None)
    rows = adapter.score(dataset, path, actors=2).take_all()
    os.makedirs(f"{out}/kept")
    with gzip.open(f"{out}/kept/all.jsonl.gz", "wt", compresslevel=1) as file:
        for row in rows:
            file.write(json.dumps({"id": str(row["id"]),
                                   "metadata": {"kinglet_hex": str(row["kinglet_hex"])}}) + "\n")


def datatrove_on_ray(path, source, out, folder):
    from datatrove.executor import RayPipelineExecutor

    RayPipelineExecutor(pipeline(path, source, out), tasks=8, workers=2, mem_per_cpu_gb=0.25,
                        logging_dir=f"{out}/log").run()


def start_ray(folder):
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    import ray

    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.dirname(__file__)])
    ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False,
             log_to_driver=False, logging_level="ERROR", _temp_dir=f"{folder}/r",
             runtime_env={"env_vars": {"PYTHONPATH": paths}})
    return ray


def table(folder, count, shards, with_ray=False):
    """Runs every way; returns their common digest."""
    path = str(demo(folder))
    source = f"{folder}/corpus"
    make_corpus.write(pathlib.Path(source), shards, count)
    first = None
    number = 0

    def way(name, call, *arguments, **options):
        nonlocal first, number
        number += 1
        out = f"{folder}/out{number}"
        started = time.perf_counter()
        call(path, source, out, *arguments, **options)
        wall = time.perf_counter() - started
        found = digest_of_scores.scores(out)
        digest = digest_of_scores.digest(found)
        first = first or digest
        print(f"{digest[:16]} {len(found):6} {wall:6.1f} s  {name}", flush=True)
        assert len(found) == count and digest == first, f"{name}: expected {first}"
        shutil.rmtree(out)
        return found

    values = way("one process, no host", one_process)
    printed = command(path, source, f"{folder}/command")
    assert printed == {id: f"{float.fromhex(value):.9g}" for id, value in values.items()}
    print(f"{'its nine digits':16} {len(printed):6}           kinglet score --lines", flush=True)
    way("datatrove: 64 tasks, 2 workers, 16 lanes", local)
    way(".. 1 worker", local, workers=1)
    for tasks in (1, 7):
        way(f".. {tasks} task{'s' if tasks > 1 else ''}", local, tasks=tasks)
    for lanes in (1, 64):
        way(f".. {lanes} lane{'s' if lanes > 1 else ''}", local, lanes=lanes)
    seen = f"{folder}/seen"
    os.mkdir(seen)
    known = kinglet_cpus()
    way(f".. KINGLET_CPU {', '.join(known[:2])}", local, before=[OtherProcessor(known[:2], seen)])
    assert len(os.listdir(seen)) == 2, os.listdir(seen)
    way(".. a worker killed, relaunched", killed, sorted(values)[count // 3])
    if with_ray:
        ray = start_ray(folder)
        way("datatrove on Ray: 8 tasks, 2 workers", datatrove_on_ray, folder)
        way("Ray Data: 2 actors", ray_data, folder)
        ray.shutdown()
    return first


def kinglet_cpus():
    """The sets of instructions of this machine, the slowest first."""
    model = ROOT / "tests" / "data" / "micronet-small-fp32"
    with tempfile.TemporaryDirectory() as folder:
        kinglet_lm.convert(model, f"{folder}/m.kgl")
        os.environ["KINGLET_CPU"] = "none"
        try:
            kinglet_lm.Model(f"{folder}/m.kgl")
        except kinglet_lm.Unsupported as error:
            return error.expected.removeprefix("one of ").removesuffix(
                " on this machine").split(", ")[::-1]
        finally:
            del os.environ["KINGLET_CPU"]
    raise AssertionError("expected KINGLET_CPU=none to be refused")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=20000)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    logger.remove()
    with tempfile.TemporaryDirectory(prefix="kc") as folder:
        print(table(folder, options.documents, options.shards, options.ray))


if __name__ == "__main__":
    main()
