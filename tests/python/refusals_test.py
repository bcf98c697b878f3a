"""Bad input: an exception with the next step, or the right answer. Also pickles, threads, forks.

    refusals_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import array
import copy
import math
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time

import kinglet_lm
from support import DATA, demo, refused

SENTENCE = "the film was a success"


def files(folder, path):
    missing = refused(kinglet_lm.NotFound, lambda: kinglet_lm.Model(f"{folder}/none.kgl"),
                      "none.kgl")
    assert isinstance(missing, FileNotFoundError) and missing.status == 200
    whole = path.read_bytes()
    for bad in (whole[:-1], whole[: len(whole) // 2], b"", b"no model", whole[:5000] + b"x"
                + whole[5001:]):
        error = refused(kinglet_lm.DamagedFile, lambda bad=bad: kinglet_lm.Model(bad), "expected")
        assert error.status // 100 == 3 and error.place and error.expected and error.found, error
    assert kinglet_lm.Model(whole).score(SENTENCE) == kinglet_lm.Model(path).score(SENTENCE)
    refused(TypeError, lambda: kinglet_lm.Model(3), "path or the bytes")
    refused(kinglet_lm.InvalidArgument, lambda: kinglet_lm.Model("a\0b"), "NUL")
    refused(kinglet_lm.Unsupported, lambda: kinglet_lm.Model(path, backend="gpu"), "gpu")
    refused(kinglet_lm.OutOfMemory, lambda: kinglet_lm.Model(path, memory_limit=1000), "1000")
    for name in ("[run]", "[a,b]", "--json", "{}"):  # file names that look like options or lists
        refused(kinglet_lm.CommandFailed,
                lambda name=name: kinglet_lm.convert(name, f"{folder}/x.kgl"), name, "no such file")
    refused(kinglet_lm.CommandFailed,
            lambda: kinglet_lm.convert(f"{folder}/none", f"{folder}/x.kgl"), "none")


def ordinary_values(folder, path):
    """Empty lists, paths of bytes, None next to a state, words where ids are expected."""
    model = kinglet_lm.Model(os.fsencode(path))
    assert model.path == str(path)
    assert model.score(SENTENCE) == kinglet_lm.Model(path).score(SENTENCE)
    session = model.session(lanes=2)
    session.step(1)
    for empty in ([], (), array.array("I"), range(0)):
        assert model.detokenize(empty) == "" and list(session.step_many(empty)) == []
        assert session.top_k_lanes(empty, 3) == [] and session.draw_lanes(empty, empty) == []
        assert session.step_lanes(empty, empty) is None
        assert list(session.log_probability_lanes(empty, empty)) == []
        assert session.score_tree(empty, empty)[1] == 0
        assert list(model.score_lines(empty)) == [] and model.rescore(empty) == []
        assert model.embedding().vectors(empty) == []
    state = session.save()
    assert (state == None) is False and (state != None) is True and state not in [None, 3]  # noqa: E711
    refused(TypeError, lambda: model.score(["the", "film"]), "' '.join")
    refused(TypeError, lambda: model.rescore("the film"), "a list of texts")
    refused(kinglet_lm.InvalidArgument, lambda: model.rescore(["a"], [1, 2]), "expected 1 scores")
    for wrong in math.nan, math.inf, -math.inf:  # no order has these
        refused(kinglet_lm.InvalidArgument,
                lambda wrong=wrong: model.rescore(["a", "b"], [1, wrong]),
                "given: expected finite numbers")
        refused(kinglet_lm.InvalidArgument, lambda wrong=wrong: model.rescore(["a"], weight=wrong),
                "weights: expected finite numbers")
    for wrong in {4, 3}, frozenset({4}), {4: 1}:
        refused(TypeError, lambda wrong=wrong: model.score(wrong),
                "text: expected integers in order")
    # As `kinglet rescore`: G given + W log p + L tokens, and of equal scores the first.
    lines = [SENTENCE, "the film was", SENTENCE]
    best = model.rescore(lines, [0, 5, 0], weight=0.5, length_weight=2, given_weight=3)
    for answer in best:
        alone = model.score_details(lines[answer.position])
        assert math.isclose(answer.log_probability, alone.log_probability, rel_tol=1e-9)
        assert answer.tokens == len(alone.ids)
        given = 15 if answer.position == 1 else 0
        assert math.isclose(
            answer.score, given + 0.5 * alone.log_probability + 2 * answer.tokens, rel_tol=1e-9)
    assert [a.position for a in best if a.position != 1] == [0, 2]
    assert [a.score for a in best] == sorted((a.score for a in best), reverse=True)


def pickles(folder, path):
    model = kinglet_lm.Model(path)
    moving = pathlib.Path(folder) / "moving.kgl"
    shutil.copy(path, moving)
    moved = pickle.dumps(kinglet_lm.Model(moving))
    assert pickle.loads(moved).score(SENTENCE) == model.score(SENTENCE)
    kinglet_lm.convert(DATA / "micronet-small-fp32", moving,
                    vocab=DATA / "micronet-small-fp32" / "vocab.txt")
    refused(kinglet_lm.Mismatch, lambda: pickle.loads(moved), "digest", "changed since")
    moving.unlink()
    refused(kinglet_lm.NotFound, lambda: pickle.loads(moved), "moving.kgl")
    refused(TypeError, lambda: pickle.dumps(kinglet_lm.Model(path.read_bytes())), "path")
    refused(TypeError, lambda: pickle.dumps(model.session()), "session.save()")
    assert copy.deepcopy(model) is model
    session = model.session(lanes=2)
    session.step(5)
    state = session.save()
    assert pickle.loads(pickle.dumps(state)) == state and hash(state) == hash(copy.copy(state))
    session.step(6)
    assert session.save() != state and len({state, session.save(), session.save()}) == 2
    data = bytes(state)
    assert model.state(data) == state and model.state(data).position == 1
    refused(kinglet_lm.DamagedFile, lambda: model.state(data[:-1]))
    refused(kinglet_lm.DamagedFile, lambda: model.state(b""))
    refused(TypeError, lambda: model.state("text"), "bytes")
    session.fork(0, 1)
    session.restore(state, 1)
    assert session.position(1) == 1 and session.position(0) == 2
    refused(TypeError, lambda: session.restore(3), "State")
    error = refused(kinglet_lm.IdOutOfRange, lambda: session.step(10**6))
    error = pickle.loads(pickle.dumps(error))
    assert (error.status, error.found) == (101, "1000000")


def arguments(path):
    model = kinglet_lm.Model(path)
    session = model.session()
    refused(kinglet_lm.WrongOrder, lambda: session.top_k(3), "at least one token")
    session.step(1)
    for id in (len(model.vocabulary), 2**32 - 1):
        refused(kinglet_lm.IdOutOfRange, lambda id=id: session.log_probability(id), str(id))
    for id in (-1, 2**32, 2**32 + 5, 2**70):  # none may wrap around to a word
        refused(kinglet_lm.InvalidArgument, lambda id=id: session.step(id), str(id))
        refused(kinglet_lm.InvalidArgument, lambda id=id: session.log_probability(id), str(id))
        refused(kinglet_lm.InvalidArgument, lambda id=id: model.score([id]))
    refused(TypeError, lambda: session.step(1.0))
    refused(TypeError, lambda: session.step("the"))
    assert session.position() == 1
    for wrong in (math.nan, math.inf, -1.0):
        refused(kinglet_lm.InvalidArgument, lambda wrong=wrong: session.draw(1, temperature=wrong),
                "temperature")
    refused(kinglet_lm.InvalidArgument, lambda: session.top_p(math.nan))
    refused(kinglet_lm.InvalidArgument, lambda: session.step_lanes([0, 0], [1, 1]))
    refused(kinglet_lm.InvalidArgument, lambda: session.step_lanes([0], [1, 1]), "expected 1")
    refused(kinglet_lm.InvalidArgument, lambda: session.step(1, lane=1), "lane")
    refused(kinglet_lm.InvalidArgument, lambda: model.session(lanes=0), "lanes")
    refused(kinglet_lm.InvalidArgument, lambda: model.session(empty_cache="no"), "normalised")
    refused(TypeError, lambda: session.log_probabilities(out=bytearray(8)), "float32")
    refused(TypeError, lambda: session.log_probabilities(out=array.array("d", [0.0] * 40000)))
    refused(kinglet_lm.InvalidArgument,
            lambda: session.log_probabilities(out=array.array("f", [0.0])))
    every = session.log_probabilities()
    assert len(every) == len(model.vocabulary)
    best = session.top_k(len(every) + 5)
    assert len(best) == len(every) and best[0][1] == max(every)
    assert session.allowed_top_k([7, 7, 9], 5) == [x for x in best if x[0] in (7, 9)]
    assert session.top_k(0) == [] == session.allowed_top_k([], 3) == session.prefix_top_k("\1", 3)
    assert session.top_k_lanes([0], 2) == [session.top_k(2)]
    assert session.draw_lanes([0], [5], top_k=1) == [session.top_k(1)[0][0]]
    assert abs(math.fsum(session.next_characters("th").values())
               - session.prefix_probability("th")) < 1e-12
    following = session.text_next_characters(" fil")
    assert abs(math.fsum(following.values()) - session.text_probability(" fil")) < 1e-12
    assert all(word.startswith(" fil") and p < 0 for word, p in session.text_words(" fil", 3))
    low, high = session.interval(7)
    assert session.word_at(low) == session.word_at(high - 1) == 7
    for call in (model.score, model.tokenize, model.perplexity):
        refused(TypeError, lambda call=call: call(b"bytes"))
    refused(TypeError, lambda: model.vocabulary.id(b"the"), "decode")
    refused(TypeError, lambda: model.score_lines("one text"), "splits it")
    refused(kinglet_lm.UnknownWord, lambda: model.vocabulary.id("zzqx"))
    refused(kinglet_lm.InvalidArgument, lambda: model.score("a \ud800 b"), "surrogate")
    invalid = b"the \xff\xfe film".decode("utf-8", "surrogateescape")
    assert model.score_details(invalid).oov == 1
    assert model.score("") == model.score([]) < 0
    assert len(model.score_details("t").ids) == 2
    assert math.isnan(model.perplexity("")) and model.perplexity("t") > 1  # of its end
    assert list(model.score_lines([])) == []
    assert model.score("the \0 film") < 0
    vocabulary = model.vocabulary
    assert vocabulary[vocabulary.id("film")] == "film" and "film" in vocabulary
    assert len(vocabulary[:3]) == 3 and 3 not in vocabulary
    assert model.detokenize(model.tokenize(SENTENCE)) == SENTENCE
    assert [SENTENCE[a:b] for _, a, b in model.tokenize_with_ranges(SENTENCE)] == SENTENCE.split()
    embedding = model.embedding()
    assert [len(v) for v in embedding.vectors([3, 3])] == [embedding.width] * 2
    refused(kinglet_lm.Unsupported, lambda: embedding.classify([3]))
    refused(kinglet_lm.Unsupported, lambda: session.encode([3]))
    generation = model.generate(SENTENCE, tokens=4, streams=2, seed=1)
    assert len(list(generation)) == 4 and generation.ended(1)
    assert generation.ids(0) != generation.ids(1) and generation.text()
    with model.session() as closed:
        pass
    refused(kinglet_lm.WrongOrder, lambda: closed.step(1), "closed")


def long_text(path):
    """Tokenizes 10 MB; interrupts a call that would take minutes by Ctrl-C."""
    model = kinglet_lm.Model(path)
    text = "the film was a success . " * 400_000
    ids = model.tokenize(text)
    assert len(ids) == 2_400_000
    timer = threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    refused(KeyboardInterrupt, lambda: model.score_stream(ids))
    assert time.perf_counter() - begin < 20, "Ctrl-C had no effect"
    timer.join()
    assert model.score(SENTENCE) < 0


def threads(path):
    """A session of two threads at once is refused, one of another thread's cancels it."""
    model = kinglet_lm.Model(path)
    session = model.session()
    ids = [at % 1000 for at in range(300_000)]
    failed = []

    def long():
        try:
            session.score_tree([kinglet_lm.NO_PARENT, *range(len(ids) - 1)], ids)
        except kinglet_lm.Error as error:
            failed.append(error)

    other = threading.Thread(target=long)
    other.start()
    while not session._turn.taken():
        time.sleep(0.001)
    refused(kinglet_lm.Busy, lambda: session.step(1), "own")
    session.cancel()
    other.join()
    assert [type(error) for error in failed] == [kinglet_lm.Cancelled]
    session.step(1)


def in_child(path_or_model):
    model = path_or_model if isinstance(path_or_model, kinglet_lm.Model) else kinglet_lm.Model(
        path_or_model)
    return model.score(SENTENCE)


HELD = []


def held_session(_):
    model, session, threaded = HELD
    session.step(7)
    try:
        threaded.step(7)
    except kinglet_lm.WrongOrder as error:
        return model.score(SENTENCE), session.log_probability(5), str(error)
    return None


def processes(path):
    model = kinglet_lm.Model(path)
    expected = model.score(SENTENCE)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(in_child, [model, model, model], 1) == [expected] * 3
    session, threaded = model.session(), model.session(threads=2)
    HELD[:] = [model, session, threaded]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        score, value, message = pool.apply(held_session, (0,))
    session.step(7)
    threaded.step(7)
    assert (score, value) == (expected, session.log_probability(5)), "the child's bits"
    assert ("fork" in message) or os.cpu_count() == 1, message


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = demo(folder)
        files(folder, path)
        ordinary_values(folder, path)
        pickles(folder, path)
        arguments(path)
        threads(path)
        processes(path)
        long_text(path)
    print("refused, or answered")


if __name__ == "__main__":
    sys.exit(main())
