"""Statistics of perplexity for datatrove: `kinglet_lm.integrations.datatrove.PerplexityStats`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from kinglet_lm.integrations._datatrove import BATCH, PACKAGE, VERSION, annotate
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations._host import host

BaseStats: Any = host("datatrove.pipeline.stats.base", PACKAGE, VERSION, "BaseStats").BaseStats
_batched: Any = host("datatrove.utils.batching", PACKAGE, VERSION, "batched").batched


class PerplexityStats(BaseStats):
    """The host's statistics of perplexity, loss per token and fraction of unknown words.

    Takes the host's `groups_to_compute` ("summary", "histogram", ..) and its other options.
    """

    name = "kinglet perplexity stats"
    type = "STATS"

    def __init__(
        self,
        path: str | os.PathLike[str],
        output_folder: Any,
        lanes: int = 16,
        threads: int = 1,
        most_tokens: int | None = None,
        prefix: str = "kinglet",
        batch_size: int = BATCH,
        **options: Any,
    ) -> None:
        super().__init__(output_folder, **options)
        self.scorer = DocumentScorer(path, lanes, threads, most_tokens)
        self.prefix, self.batch_size = prefix, batch_size

    def extract_stats(self, doc: Any) -> dict[str, int | float]:
        """The statistics of a document."""
        if f"{self.prefix}_tokens" not in doc.metadata:
            annotate(self, self.scorer, [doc], self.prefix)
        metadata = doc.metadata
        tokens = metadata.get(f"{self.prefix}_tokens", 0)
        if not tokens:
            return {}
        return {
            f"{self.prefix}_perplexity": metadata[f"{self.prefix}_perplexity"],
            f"{self.prefix}_loss": -metadata[f"{self.prefix}_log_probability"] / tokens,
            f"{self.prefix}_oov_share": metadata[f"{self.prefix}_oov"] / tokens,
        }

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Any:
        """Scores documents in batches, then counts them one by one, as the host does."""
        return super().run(self._scored(data), rank, world_size)

    def _scored(self, data: Any) -> Iterator[Any]:
        for batch in _batched(data, self.batch_size):
            annotate(self, self.scorer, batch, self.prefix)
            yield from batch


__all__ = ["PerplexityStats"]
