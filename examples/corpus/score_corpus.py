#!/usr/bin/env python3
"""Scores and filters a sharded corpus with datatrove, on this machine, on Ray or on Slurm.

    score_corpus.py MODEL.kgl IN OUT [--executor local|ray|slurm] [--tasks 64] [--workers 2] ..

IN holds .jsonl.gz files with "id" and "text". OUT/kept and OUT/dropped have the documents with
their scores, OUT/log what ran: start it again, and the tasks that are not completed are done.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
from typing import Any

from datatrove.pipeline.writers import JsonlWriter

from kinglet_lm.integrations.datatrove import LocalExecutor, PerplexityFilter, Utf8JsonlReader


def pipeline(options: argparse.Namespace) -> list[Any]:
    dropped = JsonlWriter(f"{options.out}/dropped")
    return [
        Utf8JsonlReader(options.source, add_file_path=False),
        PerplexityFilter(options.model, most=options.most, most_oov=options.most_oov,
                         lanes=options.lanes, exclusion_writer=dropped),
        JsonlWriter(f"{options.out}/kept"),
    ]


def on_ray(options: argparse.Namespace, log: str) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from datatrove.executor import RayPipelineExecutor

    if not ray.is_initialized():
        ray.init(num_cpus=options.workers, object_store_memory=100 << 20, include_dashboard=False,
                 log_to_driver=False)
    return RayPipelineExecutor(pipeline(options), tasks=options.tasks, workers=options.workers,
                               mem_per_cpu_gb=options.memory, logging_dir=log)


def on_slurm(options: argparse.Namespace, log: str) -> Any:
    from datatrove.executor import SlurmPipelineExecutor

    return SlurmPipelineExecutor(
        pipeline(options), tasks=options.tasks, workers=options.workers, time=options.time,
        partition=options.partition, mem_per_cpu_gb=options.memory, cpus_per_task=1,
        job_name="kinglet", logging_dir=log, env_command=options.env_command,
        sbatch_args={"mem-per-cpu": f"{math.ceil(1024 * options.memory)}M"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--executor", choices=("local", "ray", "slurm"), default="local")
    parser.add_argument("--tasks", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--most", type=float, default=600.0, help="perplexity by token")
    parser.add_argument("--most-oov", type=float, default=0.3, help="fraction of unknown words")
    parser.add_argument("--memory", type=float, default=0.5, help="GB a processor, Ray and Slurm")
    parser.add_argument("--partition", default="debug", help="Slurm's")
    parser.add_argument("--time", default="01:00:00", help="Slurm's limit of a task")
    parser.add_argument("--env-command", default="true", help="Slurm: what makes the environment")
    options = parser.parse_args()
    log = f"{options.out}/log"
    executor: Any
    if options.executor == "ray":
        executor = on_ray(options, log)
    elif options.executor == "slurm":
        executor = on_slurm(options, log)
    else:
        executor = LocalExecutor(pipeline(options), tasks=options.tasks, workers=options.workers,
                                 logging_dir=log)
    executor.run()


if __name__ == "__main__":  # workers import this file again
    main()
