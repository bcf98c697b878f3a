"""Common parts of integrations, and their errors without a host. No host is needed.

    integrations_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import importlib
import math
import pathlib
import pickle
import sys
import tempfile
import types

import kinglet_lm
from kinglet_lm import integrations
from kinglet_lm._histories import History, Reader, history_of
from kinglet_lm.integrations._host import host
from kinglet_lm.integrations._time_slices import granted, long_time_slices
from kinglet_lm.integrations._words import Words
from support import DATA, demo, refused


class Absent:
    """Finds no module of any host, installed or not."""

    hosts = ("datatrove", "espnet", "flashlight", "lm_eval", "pyctcdecode", "pyspark", "ray",
             "torch", "torchaudio")

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in self.hosts:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def imports():
    """Every integration imports, or names the package to install; kinglet_lm imports no host."""
    loaded = [name for name in sys.modules if name.startswith("kinglet_lm.integrations.")]
    assert all(name.split(".")[-1].startswith("_") for name in loaded), loaded
    folder = pathlib.Path(integrations.__file__).parent
    names = sorted(path.stem for path in folder.glob("[a-z]*.py"))
    assert "pyctcdecode" in names
    sys.meta_path.insert(0, Absent())
    refusing = 0
    for name in names:
        try:
            importlib.import_module(f"kinglet_lm.integrations.{name}")
        except ImportError as error:
            assert "pip install '" in str(error) and "found none" in str(error), error
            refusing += 1
    assert refusing >= 3
    del sys.meta_path[0]
    sys.modules["oldhost"] = types.ModuleType("oldhost")
    refused(ImportError, lambda: host("oldhost", "oldhost", "2.0", "Thing"), "expected Thing",
            "pip install 'oldhost==2.0'")
    assert host("math", "math", "3", "pi").pi > 3


def histories(model):
    reader = Reader(model)
    a = history_of([reader.start.id, 5, 6])
    b = History(History(reader.start, 5), 6)
    assert a == b and hash(a) == hash(b) and a is not b and a != a.before and a != 5
    assert pickle.loads(pickle.dumps(a)).ids() == [reader.start.id, 5, 6]
    refused(ValueError, lambda: history_of([]), "at least one")
    session = model.session(empty_cache="normalised")
    expected = {}
    for at in (a.before, a):
        session.reset()
        for id in at.ids():
            session.step(id)
        expected[at] = session.log_probability(7), session.log_probability(8)
    for at in (a, a.before, b, a, reader.start, b.before):  # there and back, saved and restored
        if at in expected:
            found = reader.log_probability(at, 7), reader.log_probability(at, 8)
            assert found == expected[at] == tuple(reader.log_probabilities(at, [7, 8]))
    again = pickle.loads(pickle.dumps(reader))
    assert again.log_probability(a, 7) == expected[a][0]
    long = history_of(range(5, 3000))
    assert len(long.ids()) == 2995 and long == history_of(range(5, 3000))
    del long  # however deep it is
    no_words = DATA / "micronet-small-fp32"
    with tempfile.TemporaryDirectory() as folder:
        kinglet_lm.convert(no_words, f"{folder}/ids.kgl")
        refused(kinglet_lm.Unsupported, lambda: Reader(kinglet_lm.Model(f"{folder}/ids.kgl")),
                "--vocab")


def words(model, folder):
    found = Words(model)
    assert not found.of_pieces and found.knows("film") and not found.knows("kinglet")
    assert found.ids("film") == (model.vocabulary.id("film"),)
    assert model.vocabulary.unknown in found.ids("kinglet")
    assert found.begins("succ") and found.begins("film") and not found.begins("filmzq")
    assert not found.knows("<unk>") and not found.begins("<eos")
    ids = model.tokenize("didn't")  # the bundled model's tokenizer splits it into two words
    assert len(ids) == 2 and model.vocabulary.unknown not in ids
    assert found.ids("didn't") == tuple(ids) and found.knows("didn't")
    assert found.knows("well-known") and not found.knows("kinglet's")
    for part in ("didn", "didn'", "didn't", "well-", "well-kno"):
        assert found.begins(part), part
    for part in ("kinglet'", "didn'zq", "wellq-"):
        assert not found.begins(part), part
    few = Words(model, ["film", "kinglet"])
    assert few.knows("film") and not few.knows("was") and not few.knows("kinglet")
    assert few.begins("kin") and not few.begins("wa")


def slices():
    """Time slices are long while documents are scored, and reset after the end or an error."""
    before = granted()
    with long_time_slices():
        during = granted()
    assert granted() == before
    assert during == (100_000_000 if before else 0), (before, during)
    try:
        with long_time_slices():
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert granted() == before
    return before != 0


def ranks():
    """A threshold is the smallest score that a percentage of the scores does not exceed."""
    from kinglet_lm.integrations.ranks import Buckets

    scores = [(7 * i) % 61 + 0.5 for i in range(60)]
    odd = [None, math.nan, math.inf]
    for percents in ((30, 60), (1, 99), (0, 100), (12.5, 50)):
        buckets = pickle.loads(pickle.dumps(Buckets([*scores, *odd], percents)))
        for percent, most in zip(percents, buckets.thresholds):
            known = [*scores, math.inf]
            assert most == min(s for s in known if percent == 0 or 100 * sum(
                other <= s for other in known) >= percent * len(known))
        for score in scores:
            assert buckets.of(score) == ("head" if score <= buckets.thresholds[0] else "middle"
                                         if score <= buckets.thresholds[1] else "tail")
        assert [buckets.of(score) for score in odd] == ["unscored", "unscored", "tail"]
    assert buckets.row({"n": 1, "kinglet_perplexity": 0.0}) == {
        "n": 1, "kinglet_perplexity": 0.0, "kinglet_bucket": "head"}
    assert buckets.row({})["kinglet_bucket"] == "unscored"
    refused(kinglet_lm.InvalidArgument, lambda: Buckets(odd[:2]), "score the documents first")
    refused(kinglet_lm.InvalidArgument, lambda: Buckets(scores, (30,)), "names: expected 2")


def main():
    imports()
    ranks()
    if not slices():
        print("time slices: not run: this system does not report their length")
    with tempfile.TemporaryDirectory() as folder:
        model = kinglet_lm.Model(demo(folder))
        histories(model)
        words(model, folder)
    print("integrations: common parts, and errors without a host")


if __name__ == "__main__":
    main()
