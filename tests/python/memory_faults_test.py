"""The n-th allocation of the library fails, for every n: an exception of kinglet, or the answer.

    memory_faults_test.py FAULTS COMMAND_FAULTS     (PYTHONPATH, KINGLET_LIBRARY: what is tested)

FAULTS is the library of memory_faults.cc, with which this program restarts itself. Converting
and translating run the command: it gets COMMAND_FAULTS, which lets any of its allocations fail
(tests/fuzz/memory_faults_test.py), at about ten points.
"""

import ctypes
import gc
import os
import pathlib
import sys
import tempfile

if os.environ.get("LD_PRELOAD") != sys.argv[1]:
    environment = dict(os.environ, LD_PRELOAD=sys.argv[1])
    os.execve(sys.executable, [sys.executable, "-B", *sys.argv], environment)

import kinglet_lm
from support import DATA

FAULTS = ctypes.CDLL(sys.argv[1])
FAULTS.fail_memory.argtypes = [ctypes.c_int64, ctypes.c_int32]
FAULTS.blocks_held.restype = ctypes.c_int64
SMALL = DATA / "micronet-variants" / "one-bin"
TRANSLATOR = DATA / "opennmt" / "plain"


def attempt(call, good, every):
    """The answer as a list of one, or an empty list, and whether an allocation failed."""
    FAULTS.fail_memory(good, every)
    try:
        answer = call()
        return [answer], FAULTS.give_memory() != 0
    except kinglet_lm.OutOfMemory as error:
        FAULTS.give_memory()
        assert isinstance(error, MemoryError) and error.status == 400, error
        return [], True
    except BaseException:
        FAULTS.give_memory()
        raise


def sweep(name, call):
    expected = [call()]
    held = FAULTS.blocks_held()
    good = 0
    while True:
        answer, failed = attempt(call, good, 0)
        assert answer in ([], expected), f"{name}: another answer after {good}"
        answer, failed = attempt(call, good, 1)
        if not failed:
            break
        assert not answer, f"{name}: expected OutOfMemory after {good}, found {answer!r}"
        good += 1
        assert good < 10000, f"{name} never succeeded"
    assert answer == expected, name
    gc.collect()
    kept = FAULTS.blocks_held() - held
    assert kept < good / 2 + 10, f"{name}: {kept} blocks kept by {good} failures"
    print(f"{name}: {good} allocations")
    return good


def command_sweep(name, call, output=None):
    """`call` runs the command: the answer and a complete `output`, or CommandFailed and a complete
    file or none."""
    def run(kind, at):
        os.environ.update(FAULT_KIND=kind, FAULT_AT=str(at))
        if output is not None:
            pathlib.Path(output).unlink(missing_ok=True)
        return call()

    library = os.environ["LD_PRELOAD"]
    with tempfile.NamedTemporaryFile("r") as calls:
        os.environ.update(LD_PRELOAD=sys.argv[2], FAULT_CALLS=calls.name)
        expected = run("enomem", 10**9)
        whole = pathlib.Path(output).read_bytes() if output else b""
        allocations = int(calls.read())
        refusals = 0
        for kind in ("enomem", "enomem1"):
            for at in range(1, allocations + 1, allocations // 10):
                try:
                    assert run(kind, at) == expected, f"{name}: another answer, {kind} at {at}"
                except kinglet_lm.CommandFailed as error:
                    assert "memory" in str(error), f"{name}, {kind} at {at}: {error}"
                    refusals += 1
                if output and os.path.exists(output):
                    assert pathlib.Path(output).read_bytes() == whole, f"{name}: {kind} at {at}"
    os.environ["LD_PRELOAD"] = library
    assert allocations > 1000 and refusals > 10, (name, allocations, refusals)
    print(f"{name}: {allocations} allocations of the command, {refusals} failures tried")


def searched(beam):
    one, other = beam.step([beam.begin()] * 2, [3, 4])
    answers = [list(beam.log_probability([one, other], [5, 5]))]
    del one
    last = beam.step([other], [6])
    return [*answers, beam.top_k(last, 2), list(beam.log_probabilities(last)), last[0].tokens]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path, pairs = f"{folder}/m.kgl", f"{folder}/t.kgl"
        kinglet_lm.convert(SMALL, path, vocab=SMALL / "vocab.txt")
        kinglet_lm.convert(TRANSLATOR, pairs)
        command_sweep("convert",
                      lambda: kinglet_lm.convert(SMALL, f"{folder}/o.kgl", bits=8)["bytes"],
                      f"{folder}/o.kgl")
        command_sweep("translate", lambda: kinglet_lm.translate(pairs, ["s3 s4 s5"], max_length=5))
        translator = kinglet_lm.Model(pairs).session()
        model = kinglet_lm.Model(path)
        session = model.session(lanes=2)
        session.step(5)
        state = session.save()

        def after_step(ask):
            def call():
                session.restore(state)
                return ask()
            return call

        points = sum(sweep(name, call) for name, call in {
            "open": lambda: len(kinglet_lm.Model(path).vocabulary),
            "session": lambda: model.session(lanes=3).position(2),
            "step": after_step(lambda: session.step(7)),
            "step_many": after_step(lambda: list(session.step_many([3, 4, 5, 3]))),
            "encode": lambda: (translator.encode([3, 4, 5]), translator.step(2),
                               translator.top_k(3)),
            "top_k": after_step(lambda: session.top_k(5)),
            "log_probability": after_step(lambda: session.log_probability(9)),
            "draw": after_step(lambda: session.draw(seed=3)),
            "save": lambda: session.save() == state,
            "state": lambda: bytes(model.state(bytes(state))),
            "score": lambda: model.score([3, 4, 5, 3], bos=False, eos=False),
            "score_stream": lambda: model.score_stream([3, 4, 5, 3, 7, 9]),
            "score_tree": lambda: list(model.session(lanes=2).score_tree(
                [kinglet_lm.NO_PARENT, 0, 1, 1], [1, 2, 3, 4])[0]),
            "beam": lambda: searched(model.beam(lanes=2, state_bytes=1)),
        }.items())
        session.restore(state)
        assert session.save() == state
        print(f"{points} points")


if __name__ == "__main__":
    main()
