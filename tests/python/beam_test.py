"""kinglet_lm.Beam: its answers are those of a session stepped from the start; what it refuses.

    beam_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import array
import copy
import gc
import pickle
import random
import tempfile
import threading

import kinglet_lm
from support import demo, refused


def searches(model):
    """Random steps and queries; the last reference to a state ends its hypothesis."""
    rows, choose = {}, random.Random(5)
    session = model.session()

    def row(tokens):
        if tokens not in rows:
            session.reset()
            for id in tokens:
                session.step(id)
            rows[tokens] = session.log_probabilities(), session.log_probability(7), session.top_k(2)
        return rows[tokens]

    for lanes, state_bytes in ((1, 1), (4, 1), (16, 64 << 20)):
        beam = model.beam(lanes=lanes, state_bytes=state_bytes)
        live = {(): beam.begin()}
        for _ in range(40):
            pairs = [(choose.choice(list(live)), choose.choice([3, 5])) for _ in range(3)]
            for (tokens, id), state in zip(pairs, beam.step(
                    [live[tokens] for tokens, _ in pairs], [id for _, id in pairs])):
                assert live.setdefault((*tokens, id), state) == state
                assert state.tokens == [*tokens, id]
            asked = [tokens for tokens in choose.sample(list(live), min(5, len(live))) if tokens]
            states = [live[tokens] for tokens in asked]
            found = beam.log_probabilities(states)
            size = beam.vocabulary_size
            for at, tokens in enumerate(asked):
                assert found[at * size : (at + 1) * size] == row(tokens)[0], tokens
            assert list(beam.log_probability(states, [7] * len(states))) == [
                row(tokens)[1] for tokens in asked]
            assert beam.top_k(states, 2) == [row(tokens)[2] for tokens in asked]
            for tokens in [tokens for tokens in live if tokens and choose.random() < 0.3]:
                del live[tokens]
        assert beam.stepped >= len({tokens for tokens in rows if tokens}) // 3
    return len(rows)


def values(model):
    beam = model.beam(lanes=2)
    first = beam.begin()
    one, same, other = beam.step([first] * 3, [4, 4, 5])
    assert one == same and hash(one) == hash(same) and one is not same
    assert one not in (other, first, 4) and copy.deepcopy(one) is one
    number = one.number
    del one
    gc.collect()
    assert beam.step([first], [4])[0].number == number  # `same` still holds it
    del same
    assert beam.step([first], [4])[0].number != number
    state = beam.save(other)
    assert state.position == 1
    later = model.beam(lanes=1)
    after = later.begin(state)
    assert after.tokens == [] and later.save(after) == state
    assert later.log_probability([after], [9]) == beam.log_probability([other], [9])
    out = array.array("f", bytes(4 * 2 * beam.vocabulary_size))
    assert beam.log_probabilities([other, other], out=out) is out
    assert out[: len(out) // 2] == out[len(out) // 2 :]
    assert beam.step([], []) == [] and beam.top_k([], 3) == []
    assert len(beam.log_probability([other] * 300, [9] * 300)) == 300  # in a thread of its own


def refusals(model):
    beam, other = model.beam(), model.beam()
    first = beam.begin()
    state = beam.step([first], [4])[0]
    foreign = other.begin()
    for call in (lambda: beam.step([foreign], [1]), lambda: beam.top_k([state, foreign], 1),
                 lambda: beam.log_probabilities([foreign])):
        refused(kinglet_lm.InvalidArgument, call, "of another")
    refused(TypeError, lambda: beam.step([state.number], [1]), "BeamState")
    refused(TypeError, lambda: pickle.dumps(state), "state.tokens")
    refused(TypeError, lambda: pickle.dumps(beam), "model.beam()")
    refused(TypeError, lambda: beam.begin(state), "kinglet_lm.State")
    refused(kinglet_lm.IdOutOfRange, lambda: beam.step([state], [beam.vocabulary_size]), "token 0")
    refused(kinglet_lm.InvalidArgument, lambda: beam.step([state, state], [1]), "expected 2")
    refused(kinglet_lm.WrongOrder, lambda: beam.top_k([first], 1))
    refused(kinglet_lm.InvalidArgument, lambda: model.beam(lanes=0), "lanes")
    refused(kinglet_lm.InvalidArgument, lambda: model.beam(empty_cache="none"), "normalised")
    refused(kinglet_lm.Error, lambda: beam.log_probabilities([state], out=array.array("f", [0])))
    refused(TypeError, lambda: beam.log_probabilities([state], out=array.array("d", [0])),
            "float32")
    beam.cancel()
    refused(kinglet_lm.Cancelled, lambda: beam.top_k([state], 1))
    assert beam.top_k([state], 1)
    with model.beam() as closed:
        begun = closed.begin()
    refused(kinglet_lm.WrongOrder, lambda: closed.step([begun], [1]), "closed")


def threads(model):
    """Each thread has a beam; states that end in another thread are dropped by the next call."""
    answers = []

    def search():
        beam = model.beam(lanes=2, state_bytes=1)
        states = [beam.begin()]
        for id in (3, 4, 3, 5):
            states = beam.step(states * 2, [id, id + 1, id, id + 1][: len(states) * 2])[:2]
        answers.append(list(beam.log_probability(states, [7] * len(states))))
        waiting.append(states)

    waiting = []
    workers = [threading.Thread(target=search) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    waiting.clear()  # in this thread
    assert len(answers) == 4 and all(one == answers[0] for one in answers)


def main():
    with tempfile.TemporaryDirectory() as folder:
        model = kinglet_lm.Model(demo(folder))
        compared = searches(model)
        values(model)
        refusals(model)
        threads(model)
    print(f"beams: {compared} histories as sessions answer them")


if __name__ == "__main__":
    main()
