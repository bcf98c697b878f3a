"""Common code of the package's tests: models made of bundled checkpoints, and refusals."""

import pathlib

import kinglet_lm

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "wikitext2"
DATA = ROOT / "tests" / "data"


def demo(folder, bits=9):
    """The demonstration's model, as scripts/demo converts it."""
    path = pathlib.Path(folder) / f"demo{bits}.kgl"
    if not path.exists():
        quantised = {"bits": bits, "calibrate": DEMO / "calibration.txt"} if bits else {}
        kinglet_lm.convert(DEMO, path, vocab=DEMO / "vocab.txt", tokenizer="wikitext", **quantised)
    return path


def small(folder):
    """A model that is opened, and makes sessions, within a millisecond."""
    path = pathlib.Path(folder) / "small.kgl"
    checkpoint = DATA / "micronet-small-fp32"
    kinglet_lm.convert(checkpoint, path, vocab=checkpoint / "vocab.txt", tokenizer="spaces")
    return path


def refused(kind, call, *parts):
    """Calls and expects this exception with these parts of its message; returns it."""
    try:
        answer = call()
    except kind as error:
        for part in parts:
            assert part in str(error), f"expected {part!r} in {error}"
        return error
    raise AssertionError(f"expected {kind.__name__}, found the answer {answer!r}")
