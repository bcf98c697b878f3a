"""Common parts of the filter and the statistics for datatrove."""

from __future__ import annotations

from typing import Any

from kinglet_lm.integrations._documents import DocumentScore, DocumentScorer, repaired

VERSION = "0.10.1"
PACKAGE = "datatrove[io,processing]"
BATCH = 256  # documents that are scored together, so that the lanes stay full


def annotate(
    step: Any, scorer: DocumentScorer, batch: list[Any], prefix: str
) -> list[DocumentScore | None]:
    """Scores a batch and writes the scores into the metadata; None for documents without text."""
    good = [doc for doc in batch if isinstance(doc.text, str)]
    scores = iter(scorer.score(doc.text for doc in good))
    found: list[DocumentScore | None] = []
    for doc in batch:
        if not isinstance(doc.text, str):
            doc.metadata[f"{prefix}_error"] = (
                f"text: expected str, found {type(doc.text).__name__}")
            found.append(None)
            continue
        score = next(scores)
        if score.repaired:
            doc.text = repaired(doc.text)  # otherwise the writer would fail, and the job with it
        doc.metadata.update(scorer.record(score, prefix))
        found.append(score)
        step.stat_update("tokens", value=score.tokens)
    return found


__all__ = ["BATCH", "PACKAGE", "VERSION", "annotate"]
