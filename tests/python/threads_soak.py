"""Threads that share a model, cancel each other's sessions and close them, for ThreadSanitizer.

    threads_soak.py MODEL [SECONDS]     (PYTHONPATH, KINGLET_LIBRARY: the package and library)

For SECONDS each: threads with a session of their own, of which every second one cancels another;
and threads that use, cancel and close one session (handles_test.py). scripts/soak threads runs it
with a library that ThreadSanitizer watches.
"""

import pathlib
import sys
import threading
import time

import handles_test

import kinglet_lm

THREADS = 16
ROUNDS = 10


def insist(call, *arguments):
    """Repeats a call until another thread does not cancel it."""
    while True:
        try:
            return call(*arguments)
        except kinglet_lm.Cancelled:
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
        found.append(insist(session.text_probability, " the"))
        found.append(model.detokenize(model.tokenize(f"the w{turn} ab")))
        found.append(list(model.embedding().vectors([turn])[0]))
        other = sessions[(number + 1) % THREADS]
        if other is not None:
            try:
                other.cancel()
            except kinglet_lm.Error:
                pass  # closed meanwhile
        sessions[number] = None
        session.close()
    answers[number] = found


def share(model):
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


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    model = kinglet_lm.Model(pathlib.Path(sys.argv[1]).read_bytes())
    end, times = time.monotonic() + seconds, 0
    while times == 0 or time.monotonic() < end:
        share(model)
        times += 1
    print(f"{times} times {THREADS} threads, {ROUNDS} sessions each, with equal answers")
    handles_test.race(sys.argv[1], seconds)
    handles_test.long_calls(sys.argv[1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
