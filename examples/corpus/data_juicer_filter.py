"""A filter by perplexity for data-juicer. Written from the source of py-data-juicer 1.6.1.

Its class runs in the library (tests/hosts/curators_test.py). In a recipe, which was not run:

    custom_operator_paths: [examples/corpus/data_juicer_filter.py]
    process:
      - kinglet_perplexity_filter: {path: m.kgl, max_ppl: 600}

data-juicer's own perplexity_filter counts pieces of its SentencePiece models: thresholds differ.
"""

from __future__ import annotations

from typing import Any

from data_juicer.ops.base_op import OPERATORS, Filter
from data_juicer.utils.constant import Fields

from kinglet_lm.integrations._documents import DocumentScorer

NAME = "kinglet_perplexity_filter"


@OPERATORS.register_module(NAME)
class KingletPerplexityFilter(Filter):  # type: ignore[misc]
    """Keeps samples whose perplexity by token is at most `max_ppl`."""

    _batched_op = True

    def __init__(self, path: str, max_ppl: float = 600.0, lanes: int = 16, *args: Any,
                 **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scorer = DocumentScorer(path, lanes)
        self.max_ppl = max_ppl

    def compute_stats_batched(self, samples: Any, context: bool = False) -> Any:
        """Writes scores, the model's digest and the protocol into each sample's statistics."""
        scores = self.scorer.score(samples[self.text_key])
        for stats, score in zip(samples[Fields.stats], scores):
            stats.update(self.scorer.record(score))
        return samples

    def process_batched(self, samples: Any) -> list[bool]:
        """Whether each sample is kept."""
        return [stats["kinglet_perplexity"] <= self.max_ppl for stats in samples[Fields.stats]]
