"""kinglet_lm.kenlm behaves as KenLM's own module: one set of expectations, run over both.

    kenlm_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

KenLM's own (0.3.0, over tiny.arpa) is compared where it is installed; ours always.
"""

import contextlib
import copy
import io
import math
import os
import pathlib
import pickle
import sys
import tempfile
import warnings

import kinglet_lm
from kinglet_lm import kenlm as ours
from support import demo, refused

SENTENCE = "the film was a success"
NAMES = {"ARPALoadComplain", "Config", "FullScoreReturn", "LanguageModel", "LoadMethod", "Model",
         "State"}


def near(a, b):
    return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)


def sentences(m):
    score = m.score(SENTENCE)
    assert score < 0 and score == m.score(SENTENCE.encode()) == m.score(SENTENCE, True, True)
    full = m.full_scores(SENTENCE)
    assert iter(full) is full
    full = list(full)
    assert len(full) == 6 and near(sum(p for p, _, _ in full), score)
    assert all(type(p) is float and type(n) is int and oov is False for p, n, oov in full)
    assert [oov for _, _, oov in m.full_scores("the zzqx", eos=False)] == [False, True]
    assert near(m.perplexity(SENTENCE), 10 ** (-score / 6))
    assert near(m.perplexity(""), 10 ** -m.score(""))
    assert len(list(m.full_scores(""))) == 1 and m.score("", False, False) == 0.0
    for text in ("the\tfilm", "the\nfilm", "the\x0bfilm", "  the \r film ", "the film\0 was"):
        assert m.score(text) == m.score("the film"), text
    for text in ("the\u00a0film", "the\u2003film"):
        assert [oov for _, _, oov in m.full_scores(text, eos=False)] == [True], text
    assert near(m.score("the </s>", eos=False), m.score("the"))
    assert next(m.full_scores("<s> the", eos=False))[0] <= -99.0
    refused(TypeError, lambda: m.score(3))
    refused(TypeError, lambda: m.score(SENTENCE, 1, 2, 3))


def words(m):
    for word in ("the", b"the", "<s>", "</s>"):
        assert word in m, word
    for word in ("zzqx", "<unk>", ""):
        assert word not in m, word


def states(k, m):
    a, b, c = k.State(), k.State(), k.State()
    m.BeginSentenceWrite(a)
    total = 0.0
    for word in [*SENTENCE.split(), "</s>"]:
        total += m.BaseScore(a, word, b)
        a, b = b, a
    assert near(total, m.score(SENTENCE))
    m.BeginSentenceWrite(a)
    first = m.BaseScore(a, "the", b)
    assert first == m.BaseScore(a, "the", c) and b == c and hash(b) == hash(c) and not b != c
    assert type(hash(b)) is int and copy.copy(b) == b and copy.copy(b) is not b
    second = m.BaseScore(b, "film", c)
    assert c != b and (b < c) != (c < b)
    assert m.BaseScore(b, "film", b) < 0 and second < 0 and b == c  # in place
    answer = m.BaseFullScore(a, "zzqx", b)
    assert answer.oov is True and type(answer.ngram_length) is int
    assert answer.log_prob == m.BaseScore(a, "zzqx", b) == m.BaseScore(a, "<unk>", c) and b == c
    assert m.BaseFullScore(a, "the", b).oov is False
    m.NullContextWrite(c)
    assert m.BaseScore(c, "the", b) < 0
    refused(TypeError, lambda: m.BaseScore(a, b"the", b))
    refused(TypeError, lambda: a == 3)
    refused(TypeError, lambda: copy.deepcopy(a))
    refused(TypeError, lambda: pickle.dumps(a))


def models(k, m, path):
    refused(TypeError, lambda: k.Model(pathlib.Path(path)))
    refused(OSError, lambda: k.Model("none.arpa"), "none.arpa")
    assert k.LanguageModel is k.Model or issubclass(k.LanguageModel, k.Model)
    assert m.path == os.path.abspath(path).encode() and type(m.order) is int
    assert repr(m) == f"<Model from {os.path.basename(path).encode()!r}>", repr(m)
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m), k.Model(path.encode()),
                  k.Model(path, k.Config()), k.Model(path, config=k.Config()),
                  type("Sub", (k.Model,), {})(path)):
        assert other.score(SENTENCE) == m.score(SENTENCE)
    refused(AttributeError, lambda: setattr(m, "x", 1))
    config = k.Config()
    assert config.load_method == k.LoadMethod.POPULATE_OR_READ
    config.load_method, config.show_progress = k.LoadMethod.LAZY, False
    config.arpa_complain = k.ARPALoadComplain.NONE
    assert [getattr(k.LoadMethod, n) for n in ("LAZY", "POPULATE_OR_LAZY", "POPULATE_OR_READ",
                                               "READ", "PARALLEL_READ")] == [0, 1, 2, 3, 4]
    assert {n: getattr(k.ARPALoadComplain, n) for n in ("ALL", "EXPENSIVE", "NONE")} == {
        "ALL": 0, "EXPENSIVE": 1, "NONE": 2}


def behaviour(k, path):
    """Expectations that both modules meet."""
    assert {name for name in NAMES if hasattr(k, name)} == NAMES
    m = k.Model(path)
    sentences(m)
    words(m)
    states(k, m)
    models(k, m, path)


def splits_words(m, path):
    """A word that the model's tokenizer splits has the product of its tokens, and is known."""
    model = kinglet_lm.Model(path)
    pieces = [model.vocabulary[id] for id in model.tokenize("didn't")]
    assert len(pieces) == 2 and "didn't" not in model.vocabulary and "didn't" in m
    one, two = list(m.full_scores("he didn't", eos=False)), list(
        m.full_scores(" ".join(["he", *pieces]), eos=False))
    assert near(one[1][0], two[1][0] + two[2][0]) and one[1][2] is False
    assert m.score("he didn't go") == m.score(" ".join(["he", *pieces, "go"]))
    assert "kinglet's" not in m


def only_ours(path):
    """Differences of a network, and states that hosts copy and restore."""
    m = ours.Model(path)
    splits_words(m, path)
    assert m.order == 127
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours._warned = False
        assert m.score("the", bos=False) == m.score("the") == m.score("the", False)
    assert len(caught) == 1 and "bos=False" in str(caught[0].message), caught
    # In place the score is that of two states; KenLM 0.3.0 answers p(film) there.
    a, b = ours.State(), ours.State()
    assert (a == None) is False and (a != None) is True  # noqa: E711
    m.BeginSentenceWrite(a)
    assert m.BaseScore(a, "film", b) == m.BaseScore(a, "film", a) and a == b
    # A beam that returns to earlier states scores like sentences.
    start = ours.State()
    m.BeginSentenceWrite(start)
    beam = {"": (start, 0.0)}
    for _ in range(3):
        found = {}
        for text, (state, score) in beam.items():
            for word in ("the", "film", "zzqx"):
                after = ours.State()
                found[f"{text} {word}"] = after, score + m.BaseScore(state, word, after)
        beam = found
    for text, (_, score) in beam.items():
        assert near(score, m.score(text, eos=False)), text
    assert len({state for state, _ in beam.values()}) == 27


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = str(demo(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            behaviour(ours, path)
        only_ours(path)
        try:
            import kenlm
        except ImportError:
            print("kinglet_lm.kenlm as expected; KenLM's own is not installed (pip install kenlm)")
            return
        with contextlib.redirect_stderr(io.StringIO()):
            behaviour(kenlm, str(pathlib.Path(__file__).parent / "tiny.arpa"))
        print("kinglet_lm.kenlm and KenLM's own as expected")


if __name__ == "__main__":
    sys.exit(main())
