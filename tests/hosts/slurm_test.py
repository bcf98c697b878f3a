"""A corpus on Slurm by datatrove: the bits of one process, also if tasks are killed.

    slurm_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

Starts a Slurm of its own on this machine (tests/hosts/slurm), if it can.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import os
import pathlib
import subprocess
import sys
import tempfile
import time

from host_support import ROOT, demo, needs, versions

needs("datatrove", "orjson", "regex")
if "SLURM_CONF" not in os.environ:
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    sys.exit(subprocess.run([ROOT / "tests" / "hosts" / "slurm", sys.executable, "-B", __file__],
                            check=False).returncode)

import corpus_hashes
from loguru import logger

DOCUMENTS, SHARDS, TASKS = 640, 16, 4
SCRIPT = ROOT / "examples" / "corpus" / "score_corpus.py"


def submit(path, source, out):
    subprocess.run(
        [sys.executable, "-B", SCRIPT, path, source, out, "--executor", "slurm", "--tasks",
         str(TASKS), "--workers", "2", "--memory", "0.3", "--time", "00:05:00"],
        check=True, stdout=subprocess.DEVNULL)


def wait(done, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, f"{what}: not after {seconds} s"
        time.sleep(0.3)


def queue():
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True,
                          check=True).stdout.split("\n")[:-1]


def cancel():
    """Ends all jobs of this Slurm, which is the test's own."""
    subprocess.run(["scancel", "-u", "root"], check=True)
    wait(lambda: not queue(), "an empty queue")


def completed(out):
    folder = pathlib.Path(out) / "log" / "completions"
    return len(list(folder.glob("*"))) if folder.exists() else 0


def main():
    logger.remove()
    with tempfile.TemporaryDirectory(prefix="kl", dir="/tmp") as folder:
        path, source = str(demo(folder)), f"{folder}/corpus"
        corpus_hashes.make_corpus.write(pathlib.Path(source), SHARDS, DOCUMENTS)
        corpus_hashes.one_process(path, source, f"{folder}/one")
        expected = corpus_hashes.digest_of_scores.scores(f"{folder}/one")
        submit(path, source, f"{folder}/whole")
        wait(lambda: completed(f"{folder}/whole") == TASKS, "tasks")
        assert corpus_hashes.digest_of_scores.scores(f"{folder}/whole") == expected
        cancel()  # the job that gathers the statistics
        # One of the tasks is killed while it runs, and the same command started again.
        submit(path, source, f"{folder}/killed")
        wait(lambda: any(" R " in line for line in queue()), "a running task")
        subprocess.run(["scancel", "--signal=KILL", "--full", "--state=RUNNING", "-u", "root"],
                       check=True)
        cancel()
        left = TASKS - completed(f"{folder}/killed")
        assert left > 0
        submit(path, source, f"{folder}/killed")
        wait(lambda: completed(f"{folder}/killed") == TASKS, "tasks")
        assert corpus_hashes.digest_of_scores.scores(f"{folder}/killed") == expected
        version = subprocess.run(["sbatch", "--version"], capture_output=True, text=True,
                                 check=True).stdout.strip()
    print(f"Slurm: {DOCUMENTS} documents in {TASKS} tasks, the bits of one process; {left} tasks "
          f"killed and done again; {version}; " + versions("datatrove"))


if __name__ == "__main__":
    main()
