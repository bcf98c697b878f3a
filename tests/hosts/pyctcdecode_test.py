"""pyctcdecode with a kinglet model: fewer wrong words, and every score the model's own.

    pyctcdecode_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import logging
import math
import multiprocessing
import os
import pickle
import sys
import tempfile
import types

from host_support import PASSAGE, demo, needs, refused, versions

needs("numpy", "pyctcdecode")
logging.disable(logging.WARNING)

import numpy
from ctc_logits import LABELS, logits_of, texts, word_errors
from pyctcdecode import BeamSearchDecoderCTC, build_ctcdecoder
from pyctcdecode.alphabet import Alphabet

import kinglet_lm
from kinglet_lm._histories import History
from kinglet_lm.integrations.pyctcdecode import BeamSearchDecoder, LanguageModel

COUNT = 12


def decoder_of(lm, kind=BeamSearchDecoder):
    return kind(Alphabet.build_alphabet(LABELS), lm)


def errors(decoder, items):
    return sum(word_errors(text, decoder.decode(logits)) for text, logits in items)


def scores(lm, model, decoder, items):
    """A beam's weighted score is alpha ln p + beta words, by the model itself, to the last bits."""
    for _, logits in items:
        text, state, _, sound, both = decoder.decode_beams(logits)[0]
        unknown = sum(not lm.words.knows(word) for word in text.split())
        expected = (0.5 * (model.score(text) - 10 * math.log(10) * unknown)
                    + 1.5 * len(text.split()))
        assert math.isclose(both - sound, expected, rel_tol=1e-9), (text, both - sound, expected)
        begin = model.vocabulary.begin
        assert state.ids() == [begin, *model.tokenize(text)], text  # the end is not in it
        assert pickle.loads(pickle.dumps(state)) == state


def together(model, items):
    """All words of a frame at once: the answers of the host's class, with fewer calls."""
    decoders = [decoder_of(LanguageModel(model), kind)
                for kind in (BeamSearchDecoder, BeamSearchDecoderCTC)]
    calls = [0, 0]
    for at, decoder in enumerate(decoders):
        reader = decoder._language_model.reader
        ask = reader.log_probabilities_of

        def counted(pairs, at=at, ask=ask):
            calls[at] += 1
            return ask(pairs)

        reader.log_probabilities_of = counted
    for _, logits in items:
        one, other = (decoder.decode_beams(logits) for decoder in decoders)
        assert one == other
    assert calls[0] < calls[1] / 2, calls
    return calls


def ends(lm, decoder, items):
    """After a space, or in silence, the end alone is scored; a stream continues from a state."""
    text, logits = items[0]
    space = numpy.full((2, len(LABELS)), -10, numpy.float32)
    space[:, 0] = 10
    plain, spaced = (decoder.decode_beams(a)[0] for a in (
        logits, numpy.concatenate([logits, space])))
    assert plain[0] == spaced[0]
    assert math.isclose(plain[-1] - plain[-2], spaced[-1] - spaced[-2], rel_tol=1e-9)
    silence = numpy.eye(len(LABELS), dtype=numpy.float32)[[-1] * 3] * 20
    nothing = decoder.decode_beams(silence)[0]
    end = lm.reader.log_probability(lm.reader.start, lm.reader.end)
    assert nothing[0] == "" and math.isclose(nothing[-1] - nothing[-2], 0.5 * end, rel_tol=1e-9)
    half = len(logits) // 2
    first = decoder.decode_beams(logits[:half])[0]
    second = decoder.decode_beams(logits[half:], lm_start_state=first[1])[0]
    assert second[1].ids()[: len(first[1].ids())] == first[1].ids()


def hotwords(decoder):
    """A word that the model lacks is found where it is named, and only there."""
    logits = logits_of("the kinglet was a success", seed=3)
    assert "kinglet" not in decoder.decode(logits).split()
    assert "kinglet" in decoder.decode(logits, hotwords=["kinglet"], hotword_weight=30.0).split()
    assert "kinglet" not in decoder.decode(logits).split()


def pools(decoder, items):
    """Forked workers use the model that the parent opened, before and after it was used."""
    one = [decoder.decode(logits) for _, logits in items]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert decoder.decode_batch(pool, [logits for _, logits in items]) == one


def lazy(lm, model):
    """Only states that are extended are computed."""
    lm.reader._beam = None
    states = [lm.score(lm.get_start_state(), word)[1] for word in ("the", "film", "was")]
    beam = lm.reader._beam
    assert beam.stepped == 1 and all(state.state is None for state in states)
    lm.score(states[1], "was")
    assert beam.stepped == 2 and states[1].state.beam is beam
    assert states[1] == History(lm.get_start_state(), model.vocabulary.id("film")) != states[0]
    assert len({*states, *[lm.score(lm.get_start_state(), "film")[1]]}) == 3


def folders(lm, path, folder):
    os.mkdir(f"{folder}/saved")
    lm.save_to_dir(f"{folder}/saved")
    again = LanguageModel.load_from_dir(f"{folder}/saved")
    assert again.score(again.get_start_state(), "the")[0] == lm.score(
        lm.get_start_state(), "the")[0]
    assert pickle.loads(pickle.dumps(again)).alpha == again.alpha
    saved = open(f"{folder}/saved/kinglet.json").read()
    changed = saved.replace(kinglet_lm.Model(path).digest, "0")
    open(f"{folder}/saved/kinglet.json", "w").write(changed)
    refused(kinglet_lm.Mismatch, lambda: LanguageModel.load_from_dir(f"{folder}/saved"), "digest 0")


def refusals(lm, folder):
    refused(kinglet_lm.NotFound, lambda: LanguageModel(f"{folder}/none.kgl"), "none.kgl")
    open(f"{folder}/bad.kgl", "w").write("no model")
    refused(kinglet_lm.DamagedFile, lambda: LanguageModel(f"{folder}/bad.kgl"), "bad.kgl",
            "expected")
    refused(kinglet_lm.InvalidArgument, lambda: lm.reset_params(alpha="x"), "alpha", "number",
            "str")
    lm.reset_params(alpha=2, score_boundary=False)
    assert lm.alpha == 2.0 and lm.score(lm.get_start_state(), "", True)[0] == 0.0
    lm.reset_params(alpha=0.5, score_boundary=True, beta=None)
    old = sys.modules["pyctcdecode.language_model"]
    sys.modules["pyctcdecode.language_model"] = types.ModuleType("pyctcdecode.language_model")
    del sys.modules["kinglet_lm.integrations.pyctcdecode"]
    try:
        refused(ImportError, lambda: __import__("kinglet_lm.integrations.pyctcdecode"),
                "AbstractLanguageModel", "pip install 'pyctcdecode==")
    finally:
        sys.modules["pyctcdecode.language_model"] = old


def main():
    spoken = texts(PASSAGE.read_text().splitlines(), COUNT)
    items = [(text, logits_of(text, seed)) for seed, text in enumerate(spoken)]
    words = sum(len(text.split()) for text in spoken)
    with tempfile.TemporaryDirectory() as folder:
        path = str(demo(folder))
        model = kinglet_lm.Model(path)
        lm = LanguageModel(model)
        lazy(lm, model)
        decoder = decoder_of(lm)
        alone, ours = errors(build_ctcdecoder(LABELS), items), errors(decoder, items)
        assert ours < alone / 2, (ours, alone)
        scores(lm, model, decoder, items)
        calls = together(model, items)
        ends(lm, decoder, items)
        hotwords(decoder)
        pools(decoder, items)
        few = decoder_of(LanguageModel(path, unigrams=[w for t in spoken for w in t.split()]))
        assert errors(few, items) <= ours
        folders(lm, path, folder)
        refusals(lm, folder)
    print(f"pyctcdecode: {alone} of {words} words wrong without, {ours} with the model; "
          f"{calls[0]} calls in place of {calls[1]}; "
          + versions("pyctcdecode", "numpy"))


if __name__ == "__main__":
    main()
