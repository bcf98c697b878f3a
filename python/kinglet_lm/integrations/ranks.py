"""Percentiles and buckets of scores that a job has written, in any host.

    buckets = Buckets((row["kinglet_perplexity"] for row in scored), percents=(30, 60))
    buckets.thresholds  # nearest ranks: 30 percent of the scores are at most thresholds[0]
    buckets.of(612.5)   # "head", "middle" or "tail"; "unscored" for None and NaN

The first step of a job scores and writes; this is the second one, which needs no model. An object
is a list of numbers and names, and can be pickled.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kinglet_lm.errors import InvalidArgument


class Buckets:
    """The parts into which percentiles of `scores` divide documents; less is better.

    Scores of None and NaN have no rank. An infinite one ranks last.
    """

    def __init__(
        self,
        scores: Iterable[float | None],
        percents: Sequence[float] = (30, 60),
        names: Sequence[str] = ("head", "middle", "tail"),
        prefix: str = "kinglet",
    ) -> None:
        if len(names) != len(percents) + 1:
            raise InvalidArgument(f"kinglet: names: expected {len(percents) + 1} for "
                                  f"{len(percents)} percentiles, found {len(names)}")
        ranked = sorted(s for s in scores if s is not None and not math.isnan(s))
        if not ranked:
            raise InvalidArgument("kinglet: scores: expected some that are no NaN, found none; "
                                  "score the documents first")
        self.thresholds = [ranked[max(1, math.ceil(p * len(ranked) / 100)) - 1] for p in percents]
        self.names, self.prefix = list(names), prefix

    def of(self, score: float | None) -> str:
        """The name of the score's bucket."""
        if score is None or math.isnan(score):
            return "unscored"
        places = (i for i, most in enumerate(self.thresholds)
                  if math.isfinite(score) and score <= most)
        return self.names[next(places, len(self.thresholds))]

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with its bucket: for Ray's `map`."""
        score = row.get(f"{self.prefix}_perplexity")
        return {**row, f"{self.prefix}_bucket": self.of(score)}

    def documents(self, data: Iterable[Any], rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """A step of a datatrove pipeline, which writes the bucket into the metadata."""
        for document in data:
            document.metadata = self.row(document.metadata)
            yield document


__all__ = ["Buckets"]
