"""Handles that threads close and cancel while others use them, interrupts anywhere, and copies.

    handles_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import copy
import gc
import inspect
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time

import kinglet_lm
from kinglet_lm import _handle
from support import refused, small

INTERRUPTS = 10_000


def race(path, seconds=3.0):
    """Threads cancel sessions and step them while another one closes them."""
    sys.setswitchinterval(1e-6)
    model = kinglet_lm.Model(path)
    held, over = [model.session()], threading.Event()
    failed = []

    def use(call):
        while not over.is_set():
            try:
                call(held[0])
            except (kinglet_lm.Cancelled, kinglet_lm.Busy, kinglet_lm.WrongOrder):
                pass
            except BaseException as error:
                failed.append(error)
                return

    calls = [lambda session: session.cancel(), lambda session: session.cancel(),
             lambda session: session.step(1), lambda session: session.top_k(3)]
    others = [threading.Thread(target=use, args=(call,)) for call in calls]
    for other in others:
        other.start()
    end = time.monotonic() + seconds
    closed = 0
    while time.monotonic() < end:
        with model.session() as session:
            held[0] = session
            try:
                session.step(1)
            except (kinglet_lm.Cancelled, kinglet_lm.Busy):
                pass
        refused(kinglet_lm.WrongOrder, lambda session=session: session.step(1), "closed")
        refused(kinglet_lm.WrongOrder, lambda session=session: session.cancel(), "closed")
        session.close()
        closed += 1
    over.set()
    for other in others:
        other.join()
    assert not failed, failed
    print(f"{closed} sessions closed")


class Interrupts:
    """Raises KeyboardInterrupt at any point of the main thread, again after each interval."""

    def __init__(self, interval=97e-6):
        self.count = 0
        self.armed = False
        # Python prints a destructor's exception instead of raising it.
        sys.unraisablehook = lambda ignored: None
        signal.signal(signal.SIGALRM, self.on_alarm)
        signal.setitimer(signal.ITIMER_REAL, interval, interval)

    def on_alarm(self, number, frame):
        if self.armed:
            self.armed = False
            self.count += 1
            raise KeyboardInterrupt

    def during(self, call):
        """Whether the call ended; a refusal, such as Busy, is an error."""
        try:
            self.armed = True
            call()
            return True
        except KeyboardInterrupt:
            return False
        finally:
            self.armed = False

    def end(self):
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = sys.__unraisablehook__


def interrupts(path):
    model = kinglet_lm.Model(path)
    session, embedding = model.session(), model.embedding()
    generation = model.generate(tokens=2**40)
    session.step(1)
    state = session.save()
    calls = [
        lambda: session.step(3), lambda: session.log_probability(5), lambda: session.top_k(2),
        lambda: session.restore(state), lambda: session.position(), lambda: next(generation),
        lambda: embedding.vectors([3]), lambda: model.session().close(), lambda: session.save(),
        lambda: model.compress(b"the film"),
    ]
    source = Interrupts()
    ended = at = 0
    limit = time.monotonic() + 60
    while source.count < INTERRUPTS and time.monotonic() < limit:
        ended += source.during(calls[at % len(calls)])
        at += 1
    source.end()
    for call in calls:
        call()
    print(f"{source.count} interrupts, {ended} calls that ended")
    assert source.count == INTERRUPTS, source.count


def long_calls(path):
    """An interrupted long call ends before another one begins, and leaves no pending cancel."""
    model = kinglet_lm.Model(path)
    session = model.session()
    ids = [at % 20 for at in range(400)]
    source = Interrupts(0)
    cancelled = 0
    for at in range(300):
        signal.setitimer(signal.ITIMER_REAL, 1e-5 * (at + 1))
        if not source.during(lambda: session.step_many(ids)):
            cancelled += 0 < session.position() < len(ids)
        session.reset()
        session.step(1)
        session.log_probability(2)
    source.end()
    print(f"{source.count} interrupts of long calls, {cancelled} in their middle")
    assert cancelled > 0


def given_up(path):
    """A call that is interrupted before its thread runs does not take the turn of a later one."""
    session = kinglet_lm.Model(path).session()
    turn, worked, taken = session._turn, [], []
    turn.pop = lambda place: taken.append(place) or turn.free.pop(place)
    call = _handle._LongCall(turn, worked.append)
    assert not call.give_up(), "expected a call that has not begun"
    call.run()
    assert call.failed is None and not worked and not taken, "expected that the turn is not taken"
    call = _handle._LongCall(turn, lambda handle: worked.append(call.give_up()) or 0)
    call.run()
    assert call.failed is None and worked[0] and taken, "expected a call that has begun"
    assert call.ended and not turn.taken(), "expected a call that has ended"


def interrupted_at_each_line(path):
    """Ctrl-C at any line of a long call in the main thread is KeyboardInterrupt, nothing else."""
    session = kinglet_lm.Model(path).session()
    ids = [at % 20 for at in range(400)]
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        file = frame.f_code.co_filename
        # Turn.run begins its `finally` with a call in C, before which no signal is handled.
        own = file.endswith("_handle.py") and frame.f_code is not _handle.Turn.run.__code__
        if event == "line" and (own or file.endswith("threading.py")):
            lines += 1
            if lines == wanted:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    for wanted in range(1, 1000):
        lines = 0
        sys.settrace(trace)
        try:
            session.step_many(ids)
            assert lines < wanted, "expected KeyboardInterrupt, found an end"
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        session.reset()
        session.step(1)
    sys.settrace(None)
    print(f"interrupted at each of {lines} lines")
    assert 10 < lines < 999, lines


def copies(path):
    model = kinglet_lm.Model(path)
    session, embedding, generation = model.session(), model.embedding(), model.generate(tokens=4)
    coder = model.compressor()
    for one in (session, embedding, generation, coder):
        for call in (copy.copy, copy.deepcopy, pickle.dumps):
            refused(TypeError, lambda call=call, one=one: call(one), "found a")
    session.step(3)
    state = session.save()
    # An object with a handle is its own copy, or of a class in the list above.
    owners = [one for one in gc.get_objects() if any(
        isinstance(value, (_handle.Handle, _handle.Turn))
        for value in getattr(one, "__dict__", {}).values())]
    kinds = {type(one) for one in owners if not inspect.isclass(one)}
    assert kinds >= {kinglet_lm.Model, kinglet_lm.State, kinglet_lm.Session, kinglet_lm.Embedding,
                     kinglet_lm.Generation, kinglet_lm.Coder}, kinds
    for one in (model, state):
        assert copy.copy(one) is one and copy.deepcopy(one) is one
    words = copy.copy(model.vocabulary)
    handle = state.handle
    refused((TypeError, ValueError), lambda: pickle.dumps(handle))
    kept = bytes(state)
    del model, state
    gc.collect()
    assert len(words) == len(session.model.vocabulary)
    assert handle.value and session.model.state(kept).position == 1


def memory(path):
    """close() frees at once, even while an exception from the session is referenced."""
    model = kinglet_lm.Model(path)
    destroyed = []
    session = model.session()
    handle = session._turn.handle
    handle._destroy = lambda pointer, destroy=handle._destroy: (
        destroyed.append(pointer), destroy(pointer))
    del handle
    held = [refused(kinglet_lm.IdOutOfRange, lambda: session.step(10**6)),
            refused(kinglet_lm.IdOutOfRange, lambda: session.rank(10**6)),
            refused(kinglet_lm.IdOutOfRange, lambda: session.step_many([10**6] * 300))]
    session.close()
    assert len(destroyed) == 1 and len(held) == 3


def main():
    if sys.argv[1:]:
        race(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = small(folder)
        done = subprocess.run([sys.executable, "-B", __file__, path], check=False)  # it may crash
        assert done.returncode == 0, f"a race ended the process: {done.returncode}"
        copies(path)
        memory(path)
        interrupts(path)
        long_calls(path)
        given_up(path)
        interrupted_at_each_line(path)


if __name__ == "__main__":
    sys.exit(main())
