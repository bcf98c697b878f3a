"""Perplexities in Spark.

    from kinglet_lm.integrations.spark import score
    scored = score(spark.read.json("in"), "model.kgl")

adds columns to a frame with `mapInPandas`. A Python worker opens the model once, for all of its
partitions and jobs. A row never fails a partition: one without text gets null, and the reason in
`kinglet_error`. Under the master `local[2]` a killed worker ends the job; `local[2,3]` repeats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kinglet_lm.errors import InvalidArgument
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations._host import host

_TYPES = {"log_probability": "double", "hex": "string", "tokens": "long", "oov": "long",
          "perplexity": "double", "digest": "string", "protocol": "string", "error": "string"}


def scored_frames(
    scorer: DocumentScorer, column: str, prefix: str
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function for `mapInPandas`, which adds columns to frames."""

    def scored(frames: Iterable[Any]) -> Iterator[Any]:
        for frame in frames:
            texts = frame[column].tolist()
            good = [at for at, text in enumerate(texts) if isinstance(text, str)]
            scores = dict(zip(good, scorer.score(texts[at] for at in good)))
            rows: list[dict[str, Any]] = []
            for at, text in enumerate(texts):
                if at in scores:
                    rows.append(scorer.record(scores[at], prefix))
                else:
                    rows.append({f"{prefix}_digest": scorer.digest,
                                 f"{prefix}_protocol": scorer.protocol,
                                 f"{prefix}_error": "text: expected str, found "
                                                    f"{type(text).__name__}"})
            yield frame.assign(**{
                f"{prefix}_{name}": [row.get(f"{prefix}_{name}") for row in rows]
                for name in _TYPES})

    return scored


def score(
    frame: Any,
    path: str | os.PathLike[str],
    column: str = "text",
    prefix: str = "kinglet",
    lanes: int = 16,
    threads: int = 1,
    most_tokens: int | None = None,
) -> Any:
    """The frame with columns of scores, the model's digest and the protocol.

    The path must be the same on every machine; a worker that finds another file there refuses.
    """
    types: Any = host("pyspark.sql.types", "pyspark", "4.3.0", "StructType", "DoubleType")
    if column not in frame.columns:
        raise InvalidArgument(f"kinglet: column: expected {column!r} among "
                              f"{', '.join(frame.columns)}, found none; name it: column=..")
    scorer = DocumentScorer(path, lanes, threads, most_tokens)
    kinds = {"double": types.DoubleType(), "string": types.StringType(), "long": types.LongType()}
    schema = types.StructType([
        *frame.schema.fields,
        *[types.StructField(f"{prefix}_{name}", kinds[kind], True)
          for name, kind in _TYPES.items()]])
    return frame.mapInPandas(scored_frames(scorer, column, prefix), schema)


__all__ = ["score", "scored_frames"]
