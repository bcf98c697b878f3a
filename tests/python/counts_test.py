"""Every count, id, seed and size of the package: values that do not fit are refused, not wrapped.

    counts_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

The parameters are found by their annotations, so that a new one is tested without being listed.
"""

import inspect
import sys
import tempfile

import kinglet_lm
from support import refused, small

try:
    import numpy
except ImportError:
    numpy = None

# The parameters for which 0 has no meaning, not even the default.
FROM_ONE = {"block_size", "lanes", "threads", "streams", "tokens", "memory_limit",
            "session_memory_limit", "state_bytes"}
WIDE = {"limit", "seed", "tokens", "most_steps", "position", "memory_limit", "session_memory_limit",
        "state_bytes"}
GIVEN = {
    "ids": [1, 2], "id": 1, "lanes": [0], "seeds": [3], "allowed": [1, 2], "prefix": "t", "k": 2,
    "share": 0.5, "point": 5, "source": 0, "target": 0, "parents": [kinglet_lm.NO_PARENT, 0],
    "word": "the", "text": "the", "sentence": "the", "lines": ["the"], "sentences": ["the"],
    "hypotheses": ["the"],
    "position": 0, "seed": 1, "index": 1, "segments": None, "out": None, "data": b"",
}
CALLED = {"index": "id"}  # in the message
LISTS = {"ids", "lanes", "seeds", "allowed", "excluded", "parents", "segments"}


def made(path):
    model = kinglet_lm.Model(path)
    session = model.session()
    session.step(1)
    GIVEN["state"] = session.save()
    GIVEN["archive"] = model.compress(b"the")
    return [model, session, model.vocabulary, model.embedding(), model.generate(tokens=1)]


def wrong(name):
    """Values that must be refused, and the exceptions."""
    least, most = name in FROM_ONE, 2**64 if name in WIDE else 2**32
    found = [(kinglet_lm.Error, value) for value in (-1, -(2**64) + 3, 2**64 + 3, most, 2**70)]
    if least:
        found.append((kinglet_lm.Error, 0))
    found += [(TypeError, value) for value in (True, False, 1.0, 3.5, "3", b"3", [3])]
    if numpy is not None:
        found += [(TypeError, numpy.float64(3.0)), (TypeError, numpy.bool_(True)),
                  (kinglet_lm.Error, numpy.int64(-1))]
        if most == 2**32:
            found.append((kinglet_lm.Error, numpy.uint64(2**32 + 3)))
    return found


def calls(one):
    """The public methods of an object, with all of their parameters."""
    for name, method in inspect.getmembers(one, callable):
        if not name.startswith("_") and name not in ("after_fork", "handle", "identity"):
            try:
                yield name, method, inspect.signature(method).parameters
            except ValueError:
                pass


def tried(method, parameters, changed, value):
    arguments, keywords = [], {}
    for name, parameter in parameters.items():
        given = value if name == changed else GIVEN.get(name, parameter.default)
        if name == "lanes" and parameter.annotation == "int" and name != changed:
            given = 1
        if name == "source" and parameter.annotation != "int" and name != changed:
            given = [1]
        if given is parameter.default and name != changed:
            continue
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            arguments.append(given)
        else:
            keywords[name] = given
    answer = method(*arguments, **keywords)
    return list(answer) if inspect.isgenerator(answer) else answer


def scalars(objects):
    count = 0
    for one in objects:
        for _, method, parameters in calls(one):
            for name, parameter in parameters.items():
                if parameter.annotation not in ("int", "int | None"):
                    continue
                for kind, value in wrong(name):
                    refused(kind, lambda: tried(method, parameters, name, value),  # noqa: B023
                            CALLED.get(name, name))
                    count += 1
    print(f"{count} wrong numbers refused")
    assert count > 500


def lists(objects):
    count = 0
    for one in objects:
        for _, method, parameters in calls(one):
            for name, parameter in parameters.items():
                if name not in LISTS or "Ids" not in str(parameter.annotation):
                    continue
                most = 2**64 if name == "seeds" else 2**32
                bad = [(kinglet_lm.Error, [number]) for number in (-1, most, 2**64 + 3)]
                bad += [(TypeError, [number]) for number in (True, 1.0, "1", None)]
                bad += [(TypeError, iter([0, False])), (TypeError, "12"), (TypeError, 3)]
                if numpy is not None:
                    bad += [(TypeError, numpy.array([True])), (TypeError, numpy.array([0.0]))]
                for kind, value in bad:
                    refused(kind, lambda: tried(method, parameters, name, value),  # noqa: B023
                            CALLED.get(name, name))
                    count += 1
    print(f"{count} wrong lists refused")
    assert count > 100


def figures(path):
    """Numbers that fit are not changed."""
    model = kinglet_lm.Model(path)
    generation = model.generate(tokens=3, streams=2, seed=2**64 - 1)
    assert len(list(generation)) == 3 and len(generation.ids(1)) <= 3 and generation.streams == 2
    for limit in ("memory_limit", "session_memory_limit"):
        for value in (0, -1, 2**64):
            refused(kinglet_lm.InvalidArgument,
                    lambda limit=limit, value=value: kinglet_lm.Model(
                        path, **{limit: value}), limit)
        refused(TypeError, lambda limit=limit: kinglet_lm.Model(path, **{limit: 1e9}), limit)
        assert kinglet_lm.Model(path, **{limit: 2**40}).digest == model.digest
    session = model.session()
    session.step(1)
    assert session.draw(2**64 - 1) == session.draw_lanes([0], [2**64 - 1])[0]
    assert session.top_k(2**32 - 1) == session.top_k(len(model.vocabulary))
    size = len(model.vocabulary)
    for only in (1, 5, size - 1):
        others = [id for id in range(size) if id != only]
        generation = model.generate(tokens=1, seed=only, excluded=others)
        next(generation)
        assert session.draw(only, excluded=others) == only == generation.ids()[0]
        assert session.draw_lanes([0], [only], excluded=others) == [only]
    session.step(2)
    session.probabilities()
    work = session.last_work()
    assert 0 < work.clusters_opened == 2**work.cluster_count - 1 and work.multiplications > 0, work
    refused(kinglet_lm.TooManySteps, lambda: session.text_probability(" the of", most_steps=0))
    message = str(refused(kinglet_lm.InvalidArgument, lambda: model.generate(tokens=0), "tokens"))
    assert message == (
        "kinglet: tokens: expected an integer from 1 to 18446744073709551615, found 0"), message


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = small(folder)
        figures(path)
        objects = made(path)
        scalars(objects)
        lists(objects)


if __name__ == "__main__":
    sys.exit(main())
