"""The filters of examples/corpus for NeMo Curator and data-juicer, with the classes of these hosts.

    curators_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import importlib.util
import sys
import tempfile

from host_support import ROOT, SKIPPED, demo, versions
from kinglet_lm.integrations._documents import DocumentScorer

sys.path.insert(0, str(ROOT / "examples" / "corpus"))
TEXTS = ["the film was a success", "success the success was film film"]


def nemo_curator(path, between):
    import pandas
    from nemo_curator.stages.text.filters import ScoreFilter
    from nemo_curator.tasks import DocumentBatch
    from nemo_curator_filter import KingletPerplexity

    step = ScoreFilter(filter_obj=KingletPerplexity(path, most=between), text_field="text",
                       score_field="kinglet_perplexity")
    step.setup()
    made = step.process(DocumentBatch(dataset_name="d", data=pandas.DataFrame({"text": TEXTS})))
    return made.to_pandas().to_dict("records")


def data_juicer(path, between):
    from data_juicer.ops.base_op import OPERATORS
    from data_juicer.utils.constant import Fields
    from data_juicer_filter import NAME

    step = OPERATORS.modules[NAME](path=path, max_ppl=between)
    samples = step.compute_stats_batched({"text": TEXTS, Fields.stats: [{}, {}]})
    return [{"text": text, **stats} for text, stats, keep in zip(
        TEXTS, samples[Fields.stats], step.process_batched(samples)) if keep]


def main():
    hosts = [host for host in (nemo_curator, data_juicer)
             if importlib.util.find_spec(host.__name__)]
    if not hosts:
        print("not run: nemo_curator, data_juicer (scripts/test --hosts installs them)")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as folder:
        path = str(demo(folder))
        good, bad = (score.perplexity for score in DocumentScorer(path).score(TEXTS))
        assert good < bad
        for host in hosts:
            (row,) = host(path, (good + bad) / 2)
            assert row["text"] == TEXTS[0] and row["kinglet_perplexity"] == good, row
    print(f"curators: {', '.join(host.__name__ for host in hosts)}: one of two documents is kept; "
          + versions("nemo-curator", "py-data-juicer"))


if __name__ == "__main__":
    main()
