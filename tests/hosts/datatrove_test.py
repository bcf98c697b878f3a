"""datatrove with kinglet's filter, statistics and executor: the same bits however a job is divided;
a bad document or file does not end the job of the others.

    datatrove_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import glob
import gzip
import json
import math
import os
import pathlib
import pickle
import shutil
import sys
import tempfile

from host_support import demo, needs, refused, versions

needs("datatrove", "orjson", "regex", "zstandard")

import corpus_hashes
import zstandard
from datatrove.data import Document
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from loguru import logger

import kinglet_lm
from kinglet_lm.integrations import datatrove as adapter
from kinglet_lm.integrations._documents import DocumentScorer
from kinglet_lm.integrations.ranks import Buckets

DOCUMENTS, SHARDS = 320, 64


class Raise:
    """Raises at a document."""

    def __init__(self, id):
        self.id = id

    def __call__(self, data, rank, world_size):
        for doc in data:
            if doc.id == self.id:
                raise ValueError("bad step")
            yield doc


def scores(path):
    """A document's score is the model's own of its lines; batches and lanes do not matter."""
    model = kinglet_lm.Model(path)
    scorer = DocumentScorer(path, lanes=3)
    texts = ["the film was a success", "a", "", "the film\nwas a success", "the film\n", "\n"]
    found = scorer.score(texts)
    assert found[0].log_probability == model.score(texts[0]) and found[0].tokens == 6
    assert found[1].log_probability == model.score("a")
    assert found[2].log_probability == model.score("") and found[2] == found[5]
    end = model.vocabulary.end
    ids = [*model.tokenize("the film"), end, *model.tokenize("was a success")]
    assert found[3].log_probability == model.score(ids)
    assert found[4].log_probability == model.score("the film")
    assert [scorer.score([text])[0] for text in texts] == found
    again = pickle.loads(pickle.dumps(scorer))
    assert again.score(texts) == found and again.protocol == scorer.protocol
    bad = scorer.score(["the \ud800 film", "the \ufffd film"])
    assert bad[0].repaired and not bad[1].repaired and bad[0][:3] == bad[1][:3]
    first = DocumentScorer(path, most_tokens=2).score(["the film was", "the\nfilm", "the"])
    assert [s.tokens for s in first] == [2, 2, 2] and "first 2 tokens" in DocumentScorer(
        path, most_tokens=2).protocol
    assert first[2] == scorer.score(["the"])[0]
    refused(TypeError, lambda: scorer.score([b"the"]), "decode")
    refused(kinglet_lm.InvalidArgument, lambda: DocumentScorer(path, lanes=0), "lanes", "from 1 to")


def files(path, folder):
    """Missing, damaged, exchanged files: refused before the job, or by its first task."""
    refused(kinglet_lm.NotFound, lambda: adapter.PerplexityFilter(f"{folder}/none.kgl"), "none.kgl")
    damaged = pathlib.Path(folder) / "damaged.kgl"
    whole = pathlib.Path(path).read_bytes()
    damaged.write_bytes(whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1:])
    refused(kinglet_lm.DamagedFile, lambda: adapter.PerplexityFilter(damaged), "damaged.kgl")
    refused(kinglet_lm.InvalidArgument,
            lambda: adapter.PerplexityFilter(path, most=1, least=2), "most")
    moved = pathlib.Path(folder) / "moved.kgl"
    shutil.copy(path, moved)
    executor = adapter.LocalExecutor(
        corpus_hashes.pipeline(moved, f"{folder}/corpus", f"{folder}/moved"), tasks=2, workers=2,
        logging_dir=f"{folder}/moved/log")
    moved.write_bytes(demo(folder, 0).read_bytes())
    refused(kinglet_lm.Mismatch, executor.run, "moved.kgl", "make the job again")
    moved.unlink()
    refused(kinglet_lm.NotFound, executor.run, "moved.kgl")


def odd_documents(path, folder):
    """10 MB, one character, invalid UTF-8, no text, an empty shard: together with ordinary ones."""
    source = pathlib.Path(folder) / "odd"
    source.mkdir()
    with gzip.open(source / "0.jsonl.gz", "wb", compresslevel=1) as file:
        def write(id, text):
            file.write(json.dumps({"id": id, "text": text}).encode() + b"\n")

        write("good", "the film was a success")
        write("one", "a")
        write("huge", "the film was a success and " * (10_000_000 // 27))
        write("surrogate", "the \ud800 film")
        file.write(b'{"id": "bytes", "text": "the \xff film"}\n')
        write("number", 3)
        file.write(b"no json\n[3]\n")
        write("last", "the film was a success")
    gzip.open(source / "1.jsonl.gz", "wb").close()
    out = f"{folder}/odd_out"
    executor = adapter.LocalExecutor(
        [adapter.Utf8JsonlReader(str(source), add_file_path=False),
         adapter.PerplexityFilter(path, most_tokens=2000,
                                  exclusion_writer=JsonlWriter(f"{out}/no")),
         JsonlWriter(f"{out}/kept")], tasks=2, workers=2, logging_dir=f"{out}/log")
    executor.run()
    rows = {}
    for name in glob.glob(f"{out}/*/*.gz"):
        with gzip.open(name, "rt", encoding="utf-8", errors="surrogateescape") as file:
            rows.update((row["id"], row) for row in map(json.loads, file))
    assert sorted(rows) == ["bytes", "good", "huge", "last", "one", "surrogate"], rows
    metadata = {id: row["metadata"] for id, row in rows.items()}
    model = kinglet_lm.Model(path)
    for id in ("good", "last"):
        assert metadata[id]["kinglet_hex"] == model.score("the film was a success").hex()
        assert metadata[id]["kinglet_digest"] == model.digest
    unknown = DocumentScorer(path).score(["the \ufffd film"])[0].log_probability.hex()
    assert metadata["surrogate"]["kinglet_hex"] == metadata["bytes"]["kinglet_hex"] == unknown
    stats = json.loads(pathlib.Path(f"{out}/log/stats.json").read_text())
    assert stats[0]["stats"]["unreadable_lines"] == 3 or stats[0]["stats"]["unreadable_lines"][
        "total"] == 3
    assert metadata["one"]["kinglet_hex"] == model.score("a").hex()
    assert metadata["huge"]["kinglet_tokens"] == 2000
    assert len(os.listdir(f"{out}/log/completions")) == 2
    text_less = Document(text=None, id="none")
    step = adapter.PerplexityFilter(path, most_oov=1)
    assert step.filter_batch([text_less]) == [(False, "no_text")]
    assert "expected str" in text_less.metadata["kinglet_error"]
    broken = Document(text="the \ud800 film", id="broken")
    assert step.filter(broken) is True and broken.metadata["kinglet_repaired"]
    assert broken.text == "the \ufffd film"
    return sorted(rows)


def thresholds(path):
    step = adapter.PerplexityFilter(path, most=300, most_oov=0.3)
    good = Document(text="the film was a success", id="1")
    shuffled = Document(text="success the success was film film", id="2")
    foreign = Document(text="zq xw vvk qqp", id="3")
    assert step.filter_batch([good, shuffled, foreign]) == [
        True, (False, "perplexity"), (False, "unknown_words")], [
        d.metadata["kinglet_perplexity"] for d in (good, shuffled, foreign)]
    assert adapter.PerplexityFilter(path, least=300).filter(good) == (False, "perplexity")
    usual = adapter.PerplexityFilter(path)
    assert usual.filter(good) is True and usual.filter(foreign) == (False, "unknown_words")
    assert usual.filter(Document(text="", id="4")) == (False, "few_tokens")


def packed(folder):
    """zstd, as the program of that name writes it, in one frame and several; a truncated file."""
    place = pathlib.Path(folder) / "zstd"
    place.mkdir()
    rows = [{"id": str(i), "text": f"the film was a success {i}"} for i in range(300)]
    lines = [json.dumps(row).encode() + b"\n" for row in rows]
    plain = b"\xef\xbb\xbf" + b"".join(lines)
    frames = [zstandard.ZstdCompressor().compress(plain[at : at + 5000])
              for at in range(0, len(plain), 5000)]
    (place / "a.jsonl").write_bytes(plain)
    (place / "b.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(plain))
    (place / "c.jsonl.zst").write_bytes(b"".join(frames))
    (place / "truncated.jsonl.zst").write_bytes(b"".join(frames)[:-9])
    (place / "bad.jsonl.zst").write_bytes(frames[0] + b"other")
    reader = adapter.Utf8JsonlReader(str(place), add_file_path=False)
    for name in ("a.jsonl", "b.jsonl.zst", "c.jsonl.zst"):
        assert [doc.text for doc in reader.read_file(name)] == [row["text"] for row in rows], name
    for name in ("truncated.jsonl.zst", "bad.jsonl.zst"):
        refused(kinglet_lm.DamagedFile, lambda name=name: list(reader.read_file(name)), name,
                "again")


def executors(path, folder):
    """Under the host's own executor too; an exception ends the run and keeps completed tasks."""
    out = f"{folder}/theirs"
    LocalPipelineExecutor(corpus_hashes.pipeline(path, f"{folder}/corpus", out), tasks=8,
                          workers=2, logging_dir=f"{out}/log").run()
    theirs = corpus_hashes.digest_of_scores.scores(out)
    out = f"{folder}/raised"
    victim = sorted(theirs)[len(theirs) // 2]
    steps = corpus_hashes.pipeline(path, f"{folder}/corpus", out, before=[Raise(victim)])
    executor = adapter.LocalExecutor(steps, tasks=8, workers=2, logging_dir=f"{out}/log")
    refused(ValueError, executor.run, "bad step")
    done = len(os.listdir(f"{out}/log/completions"))
    assert 0 < done < 8
    steps = corpus_hashes.pipeline(path, f"{folder}/corpus", out)
    again = adapter.LocalExecutor(steps, tasks=8, workers=2, logging_dir=f"{out}/log")
    assert again.run() is not None and again.run() is None
    assert corpus_hashes.digest_of_scores.scores(out) == theirs
    out = f"{folder}/restarted"
    mark = f"{folder}/restarted.mark"
    steps = corpus_hashes.pipeline(path, f"{folder}/corpus", out,
                                   before=[corpus_hashes.KillOnce(victim, mark)])
    adapter.LocalExecutor(steps, tasks=8, workers=2, logging_dir=f"{out}/log", restarts=1).run()
    assert os.path.exists(mark) and corpus_hashes.digest_of_scores.scores(out) == theirs
    assert json.loads(pathlib.Path(f"{out}/log/stats.json").read_text())[1]["stats"]["total"]


def buckets(folder):
    """A second job divides what the first one scored, into a folder for each bucket."""
    scores = [d.metadata["kinglet_perplexity"] for part in ("kept", "dropped")
              for d in adapter.Utf8JsonlReader(f"{folder}/theirs/{part}")()]
    found = Buckets(scores)
    writer = JsonlWriter(f"{folder}/buckets", "${kinglet_bucket}/${rank}.jsonl.gz")
    reader = adapter.Utf8JsonlReader(f"{folder}/theirs/kept")
    adapter.LocalExecutor([reader, found.documents, writer], tasks=2, workers=2,
                          logging_dir=f"{folder}/buckets_log").run()
    kept = [d for name in found.names
            for d in adapter.Utf8JsonlReader(f"{folder}/buckets/{name}")()
            if d.metadata["kinglet_bucket"] == name == found.of(d.metadata["kinglet_perplexity"])]
    assert len(kept) == len(list(adapter.Utf8JsonlReader(f"{folder}/theirs/kept")())) > 0
    assert sum(score <= found.thresholds[0] for score in scores) == math.ceil(0.3 * DOCUMENTS)


def statistics(path, folder):
    try:
        stats = adapter.PerplexityStats(path, f"{folder}/stats", groups_to_compute=["summary"])
    except ImportError as error:
        print(f"PerplexityStats: not run: {error}")
        return
    adapter.LocalExecutor([JsonlReader(f"{folder}/corpus", add_file_path=False), stats],
                       tasks=2, workers=1, logging_dir=f"{folder}/stats_log").run()
    (found,) = pathlib.Path(f"{folder}/stats/summary/kinglet_loss").glob("00000.json")
    summary = json.loads(found.read_text())["summary"]
    total = summary["total"] if isinstance(summary, dict) else summary
    assert math.isfinite(total) and total > 0


def main():
    logger.remove()
    with tempfile.TemporaryDirectory(prefix="kt") as folder:
        path = str(demo(folder))
        scores(path)
        thresholds(path)
        packed(folder)
        digest = corpus_hashes.table(folder, DOCUMENTS, SHARDS)
        files(path, folder)
        odd = odd_documents(path, folder)
        executors(path, folder)
        buckets(folder)
        statistics(path, folder)
    print(f"datatrove: {DOCUMENTS} documents {digest[:16]} in every way; odd ones: "
          f"{', '.join(odd)}; " + versions("datatrove", "numpy"))


if __name__ == "__main__":
    sys.exit(main())
