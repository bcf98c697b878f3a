"""pyctcdecode's own class for KenLM runs over kinglet_lm.kenlm unchanged.

    pyctcdecode_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

Skipped where pyctcdecode is not installed.
"""

import logging
import math
import sys
import tempfile

import kinglet_lm.kenlm
from support import demo

TEXT = "the film was a success"
HEARD = "the film waz a zuccess"  # a little more probable by sound alone
LABELS = [" ", *"abcdefghijklmnopqrstuvwxyz", ""]


def main():
    try:
        sys.modules["kenlm"] = kinglet_lm.kenlm  # before the host imports it
        import numpy
        from pyctcdecode import build_ctcdecoder
    except ImportError as error:
        print(f"not run: {error} (pip install pyctcdecode)")
        return 77
    logging.disable(logging.WARNING)
    logits = numpy.full((2 * len(TEXT), len(LABELS)), -6.0, numpy.float32)
    for at, (true, heard) in enumerate(zip(TEXT, HEARD)):
        logits[2 * at, LABELS.index(true)] = 6.0
        logits[2 * at, LABELS.index(heard)] = 6.3
        logits[2 * at + 1, LABELS.index("")] = 8.0
    with tempfile.TemporaryDirectory() as folder:
        path = str(demo(folder))
        alone = build_ctcdecoder(LABELS).decode(logits)
        assert alone == HEARD, alone
        model = kinglet_lm.kenlm.Model(path)
        words = [*TEXT.split(), *HEARD.split(), "it", "with"]
        decoder = build_ctcdecoder(LABELS, path, unigrams=[w for w in words if w in model],
                                   alpha=0.5, beta=1.5)
        text, _, _, sound, both = decoder.decode_beams(logits)[0]
        assert text == TEXT, text
        expected = 0.5 * model.score(TEXT) * math.log(10) + 1.5 * len(TEXT.split())
        assert math.isclose(both - sound, expected, rel_tol=1e-9), (both - sound, expected)
    print("pyctcdecode's KenLM class over kinglet_lm.kenlm: the text, and the weighted score")
    return 0


if __name__ == "__main__":
    sys.exit(main())
