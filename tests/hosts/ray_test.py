"""Ray Data with kinglet's actors: the bits of one process, also if an actor is killed.

    ray_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

With datatrove installed its executor for Ray runs kinglet's filter, too.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import math
import os
import pathlib
import signal
import sys
import tempfile

from host_support import ROOT, demo, needs, refused, versions

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_DATA_DISABLE_PROGRESS_BARS="1",
                  RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0", RAY_worker_niceness="0")
needs("ray", "ray.data", "numpy")

import numpy
import ray

import kinglet_lm
from kinglet_lm.integrations import ray as adapter
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations.ranks import Buckets

sys.path.insert(0, str(ROOT / "examples" / "corpus"))
import make_corpus

DOCUMENTS = 200


class KilledOnce(adapter.Perplexity):
    """Dies at its first batch, once."""

    def __init__(self, mark, *arguments, **options):
        super().__init__(*arguments, **options)
        self.mark = mark

    def __call__(self, batch):
        if not os.path.exists(self.mark):
            open(self.mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(batch)


def alone(path):
    """The actor's class without Ray."""
    actor = adapter.Perplexity(path)
    texts = numpy.array(["the film was a success", None, "a", 3.5], object)
    scored = actor({"id": numpy.arange(4), "text": texts})
    model = kinglet_lm.Model(path)
    assert scored["kinglet_hex"].tolist() == [model.score(texts[0]).hex(), "",
                                              model.score("a").hex(), ""]
    assert scored["kinglet_error"][1].endswith("NoneType") and scored["kinglet_error"][0] == ""
    assert numpy.isnan(scored["kinglet_log_probability"][[1, 3]]).all()
    assert set(scored["kinglet_digest"]) == {model.digest} and scored["id"].tolist() == [0, 1, 2, 3]
    refused(kinglet_lm.InvalidArgument, lambda: actor({"words": texts}), "column", "words")
    assert adapter.share_of_processor(2, 3) == 1.0 and adapter.share_of_processor(2, 2) == 0.5
    assert adapter.share_of_processor(1, 1) == 0.0 and adapter.share_of_processor(3, 2) * 3 <= 1


def main():
    with tempfile.TemporaryDirectory(prefix="kr", dir="/tmp") as folder:
        path = str(demo(folder))
        alone(path)
        refused(kinglet_lm.NotFound, lambda: adapter.score(None, f"{folder}/none.kgl"), "none.kgl")
        refused(kinglet_lm.InvalidArgument, lambda: adapter.score(None, path, actors=0), "actors")
        make_corpus.write(pathlib.Path(folder) / "corpus", 4, DOCUMENTS)
        rows = list(make_corpus.documents(DOCUMENTS))
        scores = DocumentScorer(path).score(row["text"] for row in rows)
        expected = {row["id"]: s.log_probability.hex() for row, s in zip(rows, scores)}
        paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.dirname(__file__)])
        ray.init(num_cpus=2, object_store_memory=100 << 20, include_dashboard=False,
                 log_to_driver=False, logging_level="ERROR", _temp_dir=f"{folder}/r",
                 runtime_env={"env_vars": {"PYTHONPATH": paths}})
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            data = ray.data.read_json(f"{folder}/corpus", file_extensions=None)
            found = adapter.score(data, path, actors=2, batch_size=32).take_all()
            assert {r["id"]: r["kinglet_hex"] for r in found} == expected
            assert len(found) == DOCUMENTS
            scored = ray.data.from_items(found)
            buckets = Buckets(row["kinglet_perplexity"] for row in scored.take_all())
            head = scored.map(buckets.row).filter(lambda row: row["kinglet_bucket"] == "head")
            assert head.count() == math.ceil(0.3 * DOCUMENTS)
            killed = data.map_batches(
                KilledOnce, fn_constructor_args=[f"{folder}/mark", path], batch_size=32,
                compute=ray.data.ActorPoolStrategy(size=1), num_cpus=0.5).take_all()
            assert os.path.exists(f"{folder}/mark") and len(killed) == DOCUMENTS
            assert {r["id"]: r["kinglet_hex"] for r in killed} == expected
        finally:
            ray.shutdown()
    print(f"Ray Data: {DOCUMENTS} documents, the bits of one process, an actor killed; "
          + versions("ray", "numpy"))


if __name__ == "__main__":
    main()
