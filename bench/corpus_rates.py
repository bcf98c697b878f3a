#!/usr/bin/env python3
"""Documents a second of one processor in one datatrove pipeline: alone, with KenLM's filter, and with kinglet's.

    bench/corpus_rates.py MODEL.kgl MODEL.arpa [--documents 4000] [--rounds 3]

Needs datatrove, orjson, regex and kenlm (PyPI), and kinglet_lm. Documents are those of examples/corpus/make_corpus.py. Each run is one
task of datatrove's executor in this process: it reads packed JSON Lines, filters, and writes what it keeps. Runs alternate; medians.
"""
import argparse
import pathlib
import statistics
import sys
import tempfile
import time

import kenlm
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from loguru import logger

from kinglet_lm.integrations.datatrove import PerplexityFilter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples" / "corpus"))
import make_corpus  # noqa: E402


class KenlmFilter(BaseFilter):
    name = "kenlm"
    model = None  # of the process: the host copies its steps

    def filter(self, doc):
        return KenlmFilter.model.perplexity(doc.text) <= 600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("arpa")
    parser.add_argument("--documents", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logger.remove()
    KenlmFilter.model = kenlm.Model(options.arpa)
    with tempfile.TemporaryDirectory() as folder:
        make_corpus.write(pathlib.Path(folder) / "in", 4, options.documents)
        kinds = {"no filter": [], "KenLM": [KenlmFilter()],
                 **{f"kinglet, {lanes} lanes": [PerplexityFilter(options.model, most=600, lanes=lanes)] for lanes in (1, 16)}}
        times = {kind: [] for kind in kinds}
        for turn in range(options.rounds):
            for kind, filters in kinds.items():
                begin = time.process_time()
                LocalPipelineExecutor([JsonlReader(f"{folder}/in"), *filters, JsonlWriter(f"{folder}/{kind}{turn}")],
                                      logging_dir=f"{folder}/log {kind}{turn}").run()
                times[kind].append(time.process_time() - begin)
        for kind, found in times.items():
            print(f"{kind}: {options.documents / statistics.median(found):,.0f} documents a second of processor")


if __name__ == "__main__":
    main()
