"""Threads that share a model, cancel each other's sessions and close them, for ThreadSanitizer.

    threads_soak.py MODEL        (PYTHONPATH, KINGLET_LIBRARY: the package and library)

scripts/soak threads runs it with a library that ThreadSanitizer watches.
"""

import pathlib
import sys
import threading

import kinglet

THREADS = 16
ROUNDS = 20


def insist(call, *arguments):
    """Repeats a call until another thread does not cancel it."""
    while True:
        try:
            return call(*arguments)
        except kinglet.Cancelled:
            pass


def work(model, sessions, number, answers):
    found = []
    for turn in range(ROUNDS):
        session = model.session(lanes=2)
        sessions[number] = session
        words = len(model.vocabulary)
        for token in range(12):
            insist(session.step, (token * 7 + turn) % words)
            found.append(insist(session.log_probability, token % words))
        session.restore(insist(session.save), lane=1)
        other = sessions[(number + 1) % THREADS]
        if other is not None:
            try:
                other.cancel()
            except kinglet.Error:
                pass  # closed meanwhile
        sessions[number] = None
        session.close()
    answers[number] = found


def main():
    model = kinglet.Model(pathlib.Path(sys.argv[1]).read_bytes())
    sessions, answers = [None] * THREADS, [None] * THREADS
    threads = [threading.Thread(target=work, args=(model, sessions, number, answers))
               for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers[0] is not None, "expected answers, found none"
    for number, found in enumerate(answers):
        assert found == answers[0], f"thread {number}: expected the answers of thread 0"
    print(f"{THREADS} threads, {ROUNDS} sessions each: {len(answers[0])} answers each, all equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
