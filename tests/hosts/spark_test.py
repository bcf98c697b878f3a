"""Spark with a kinglet model: the bits of one process, also if a worker is killed.

    spark_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

Needs a Java 17 runtime.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from host_support import ROOT, SKIPPED, demo, needs, refused, versions

needs("pyspark", "pandas", "pyarrow")
if shutil.which("java") is None:
    print("not run: needs a Java 17 runtime (Debian: openjdk-17-jre-headless)")
    sys.exit(SKIPPED)

import pandas
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

import kinglet_lm
from kinglet_lm.integrations import spark as adapter
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations.ranks import Buckets

sys.path.insert(0, str(ROOT / "examples" / "corpus"))
import make_corpus

DOCUMENTS = 200


def alone(path):
    """The function for mapInPandas without Spark."""
    scorer = DocumentScorer(path)
    frame = pandas.DataFrame({"text": ["the film was a success", None, "a"], "n": [1, 2, 3]})
    (scored,) = adapter.scored_frames(scorer, "text", "k")([frame])
    model = kinglet_lm.Model(path)
    assert scored["k_hex"].tolist()[::2] == [model.score(text).hex()
                                             for text in frame["text"].tolist()[::2]]
    assert scored["k_error"][1].startswith("text: expected str")
    assert scored["n"].tolist() == [1, 2, 3]
    assert set(scored["k_digest"]) == {model.digest}


def parquet(path, folder):
    """examples/corpus/score_parquet.py adds columns, and has the scores of one process."""
    texts = ["the film was a success", None, "a"] * 700
    table = pandas.DataFrame({"n": range(2100), "text": texts})
    table.to_parquet(f"{folder}/in.parquet")
    script = str(ROOT / "examples" / "corpus" / "score_parquet.py")
    subprocess.run([sys.executable, script, path, f"{folder}/in.parquet", f"{folder}/out.parquet"],
                   check=True)
    out = pandas.read_parquet(f"{folder}/out.parquet")
    assert out["n"].tolist() == list(range(2100)) and out["text"].isna().sum() == 700
    scores = DocumentScorer(path).score(["the film was a success", "a"])
    for place, score in zip((0, 2), scores):
        assert set(out["kinglet_perplexity"][place::3]) == {score.perplexity}
        assert set(out["kinglet_hex"][place::3]) == {score.log_probability.hex()}
    assert out["kinglet_perplexity"][1::3].isna().all()


def killing(mark):
    """Kills its process once, at its first frame."""
    def kill(frames):
        for frame in frames:
            if not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            yield frame

    return kill


def main():
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory(prefix="ks") as folder:
        path = str(demo(folder))
        alone(path)
        parquet(path, folder)
        make_corpus.write(pathlib.Path(folder) / "corpus", 4, DOCUMENTS)
        rows = list(make_corpus.documents(DOCUMENTS))
        scores = DocumentScorer(path).score(row["text"] for row in rows)
        expected = {row["id"]: s.log_probability.hex() for row, s in zip(rows, scores)}
        spark = (SparkSession.builder.master("local[2,3]")
                 .config("spark.driver.memory", "512m").config("spark.ui.enabled", "false")
                 .config("spark.sql.execution.arrow.maxRecordsPerBatch", "64")
                 .config("spark.sql.warehouse.dir", f"{folder}/w")
                 .config("spark.local.dir", f"{folder}/local").getOrCreate())
        try:
            spark.sparkContext.setLogLevel("OFF")
            data = spark.read.schema("id string, text string").json(f"{folder}/corpus")
            scored = adapter.score(data, path).cache()
            found = scored.collect()
            assert {r.id: r.kinglet_hex for r in found} == expected and len(found) == DOCUMENTS
            buckets = Buckets(row.kinglet_perplexity for row in found)
            thresholds = scored.approxQuantile("kinglet_perplexity", [0.3, 0.6], 0.0)
            assert thresholds == buckets.thresholds
            head = scored.where(udf(buckets.of)("kinglet_perplexity") == "head")
            assert head.count() == math.ceil(0.3 * DOCUMENTS)
            again = data.mapInPandas(killing(f"{folder}/mark"), data.schema)
            found = adapter.score(again, path).collect()
            assert os.path.exists(f"{folder}/mark") and len(found) == DOCUMENTS
            assert {r.id: r.kinglet_hex for r in found} == expected
            refused(kinglet_lm.NotFound, lambda: adapter.score(data, f"{folder}/none.kgl"),
                    "none.kgl")
            refused(kinglet_lm.InvalidArgument, lambda: adapter.score(data, path, "words"), "words")
        finally:
            spark.stop()
    print(f"Spark: {DOCUMENTS} documents, the bits of one process, a worker killed; "
          + versions("pyspark", "pandas", "pyarrow"))


if __name__ == "__main__":
    main()
