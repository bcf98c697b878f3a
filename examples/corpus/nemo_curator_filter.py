"""A filter by perplexity for NeMo Curator. Written from the source of nemo-curator 1.4.0.

    ScoreFilter(filter_obj=KingletPerplexity("m.kgl", most=600), text_field="text",
                score_field="kinglet_perplexity")

Its ScoreFilter runs with this class (tests/hosts/curators_test.py); a whole pipeline was not run.
Documents are scored one by one, in one lane: large corpora need kinglet_lm.integrations.ray.
"""

from __future__ import annotations

from nemo_curator.stages.text.filters.doc_filter import DocumentFilter

from kinglet_lm.integrations._documents import DocumentScorer


class KingletPerplexity(DocumentFilter):  # type: ignore[misc]
    """Keeps documents whose perplexity by token is at most `most`."""

    def __init__(self, path: str, most: float = 600.0) -> None:
        super().__init__()
        self.scorer = DocumentScorer(path, lanes=1)
        self.most = most
        self._name = "kinglet_perplexity"

    def score_document(self, text: str) -> float:
        """The perplexity by token."""
        return self.scorer.score([text])[0].perplexity

    def keep_document(self, scores: float) -> bool:
        """Whether a document of this perplexity is kept."""
        return scores <= self.most
