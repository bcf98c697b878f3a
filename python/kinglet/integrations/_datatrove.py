"""What the filter and the statistics for datatrove share."""

from __future__ import annotations

from typing import Any

from kinglet.integrations._documents import DocumentScore, DocumentScorer, repaired

VERSION = "0.10.1"
PACKAGE = "datatrove[io,processing]"
BATCH = 256  # documents that are scored together, so that the lanes stay full


def annotate(
    step: Any, scorer: DocumentScorer, batch: list[Any], prefix: str
) -> list[DocumentScore | None]:
    """Scores a batch and writes it into the metadata; None where a document has no text."""
    good = [doc for doc in batch if isinstance(doc.text, str)]
    scores = scorer.score(doc.text for doc in good)
    found: list[DocumentScore | None] = []
    told = iter(scores)
    for doc in batch:
        if not isinstance(doc.text, str):
            doc.metadata[f"{prefix}_error"] = (
                f"text: expected str, found {type(doc.text).__name__}")
            found.append(None)
            continue
        score = next(told)
        if score.repaired:
            doc.text = repaired(doc.text)  # else the writer would fail, and with it the job
        doc.metadata.update(scorer.record(score, prefix))
        found.append(score)
        step.stat_update("tokens", value=score.tokens)
    return found


__all__ = ["BATCH", "PACKAGE", "VERSION", "annotate"]
