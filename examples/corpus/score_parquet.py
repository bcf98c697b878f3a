#!/usr/bin/env python3
"""Adds scores to the rows of a Parquet table, in memory for a thousand rows.

    score_parquet.py MODEL.kgl IN.parquet OUT.parquet [--column text] [--most-ppl 600]

OUT has all columns of IN, and kinglet_perplexity, kinglet_tokens, kinglet_oov and kinglet_hex; with
--most-ppl only the rows of at most that perplexity. A row without a text has null, and stays. OUT
gets its name when it is complete. Needs pyarrow.
"""

from __future__ import annotations

import argparse
import math
import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kinglet_lm.integrations._documents import DocumentScorer

TYPES = {"perplexity": pa.float64(), "tokens": pa.int64(), "oov": pa.int64(), "hex": pa.string()}


def scored(batch: Any, scorer: DocumentScorer, column: str) -> Any:
    texts = batch.column(column).to_pylist()
    found = iter(scorer.score(text for text in texts if text is not None))
    records = [{} if text is None else scorer.record(next(found)) for text in texts]
    for name, kind in TYPES.items():
        values = [record.get(f"kinglet_{name}") for record in records]
        batch = batch.append_column(f"kinglet_{name}", pa.array(values, kind))
    return batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("out")
    parser.add_argument("--column", default="text")
    parser.add_argument("--most-ppl", type=float, default=math.inf)
    parser.add_argument("--lanes", type=int, default=16)
    options = parser.parse_args()
    scorer = DocumentScorer(options.model, options.lanes)
    source = pq.ParquetFile(options.source)
    if options.column not in source.schema_arrow.names:
        parser.error(f"--column: expected one of {', '.join(source.schema_arrow.names)}, found "
                     f"{options.column}")
    schema = source.schema_arrow
    for name, kind in TYPES.items():
        schema = schema.append(pa.field(f"kinglet_{name}", kind))
    with pq.ParquetWriter(options.out + ".part", schema) as writer:
        for batch in source.iter_batches(1000):
            table = scored(batch, scorer, options.column)
            keep = [not (value is not None and value > options.most_ppl)
                    for value in table.column("kinglet_perplexity").to_pylist()]
            writer.write_batch(table.filter(pa.array(keep)))
    os.replace(options.out + ".part", options.out)


if __name__ == "__main__":
    main()
