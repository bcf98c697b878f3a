"""Perplexities in Ray Data.

    from kinglet_lm.integrations.ray import score
    scored = score(ray.data.read_json("in"), "model.kgl", actors=2)

adds columns to a dataset. `Perplexity` is the actor's class, for a `map_batches` of your own. Each
actor opens the model once; an actor that is killed is made again and its batch repeated. A document
never fails a batch: one without text gets NaN, and the reason in `kinglet_error`.
"""

from __future__ import annotations

import math
import os
from typing import Any

from kinglet_lm._numbers import integer
from kinglet_lm.errors import InvalidArgument
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations._host import host

_BATCH = 256


class Perplexity:
    """The class for `map_batches`, one object for each actor: adds columns to batches of arrays.

    `column` contains the texts; names of new columns begin with `prefix`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | DocumentScorer,
        column: str = "text",
        prefix: str = "kinglet",
        lanes: int = 16,
        threads: int = 1,
        most_tokens: int | None = None,
    ) -> None:
        self.scorer = path if isinstance(path, DocumentScorer) else DocumentScorer(
            path, lanes, threads, most_tokens)
        self.column, self.prefix = column, prefix

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The batch with each document's score, the model's digest and the protocol."""
        import numpy

        if self.column not in batch:
            raise InvalidArgument(f"kinglet: column: expected {self.column!r} among "
                                  f"{', '.join(sorted(batch))}, found none; name it: column=..")
        texts = list(batch[self.column])
        good = [at for at, text in enumerate(texts) if isinstance(text, str)]
        scores = dict(zip(good, self.scorer.score(texts[at] for at in good)))
        found = [scores.get(at) for at in range(len(texts))]
        prefix, scorer = self.prefix, self.scorer
        columns: dict[str, Any] = {
            "log_probability": numpy.array(
                [math.nan if s is None else s.log_probability for s in found], numpy.float64),
            "hex": numpy.array(["" if s is None else s.log_probability.hex() for s in found], "U"),
            "tokens": numpy.array([0 if s is None else s.tokens for s in found], numpy.int64),
            "oov": numpy.array([0 if s is None else s.oov for s in found], numpy.int64),
            "perplexity": numpy.array(
                [math.nan if s is None else s.perplexity for s in found], numpy.float64),
            "digest": numpy.array([scorer.digest] * len(texts), "U"),
            "protocol": numpy.array([scorer.protocol] * len(texts), "U"),
            "error": numpy.array(
                [f"text: expected str, found {type(text).__name__}" if s is None else ""
                 for s, text in zip(found, texts)], "U"),
        }
        return {**batch, **{f"{prefix}_{name}": values for name, values in columns.items()}}


def share_of_processor(actors: int, processors: float) -> float:
    """The logical processors of each actor; at least one is left for reading."""
    return min(1.0, max(0.0, math.floor(1000 * (processors - 1) / actors) / 1000))


def score(
    dataset: Any,
    path: str | os.PathLike[str],
    actors: int = 1,
    batch_size: int = _BATCH,
    **options: Any,
) -> Any:
    """The dataset with scores, computed by `actors` actors. Options are those of `Perplexity`.

    The actors request fewer processors than Ray has, so that at least one is left for reading: two
    actors of one processor each under `num_cpus=2` would wait for each other for ever.
    """
    ray = host("ray", "ray[data]", "2.60.0", "cluster_resources")
    data = host("ray.data", "ray[data]", "2.60.0", "ActorPoolStrategy")
    actors = integer(actors, "actors", 1)
    lanes = {name: options.pop(name) for name in ("lanes", "threads", "most_tokens")
             if name in options}
    scorer = DocumentScorer(path, **lanes)  # so that a bad file ends the job before it begins
    if not ray.is_initialized():
        ray.init()
    processors = float(ray.cluster_resources().get("CPU", 1.0))
    return dataset.map_batches(
        Perplexity, fn_constructor_args=[scorer], fn_constructor_kwargs=options,
        compute=data.ActorPoolStrategy(size=actors), batch_size=batch_size,
        num_cpus=share_of_processor(actors, processors))


__all__ = ["Perplexity", "score", "share_of_processor"]
