"""flashlight-text's decoders, and torchaudio's where it is installed, with a kinglet model.

    flashlight_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)

torchaudio's decoder is one file of Python over flashlight: KINGLET_TORCHAUDIO names an unpacked
wheel whose file is loaded by itself, with any version of torch.
"""

# ruff: noqa: E402  (a host is imported after the check that it is installed)

import importlib.util
import math
import os
import pathlib
import pickle
import sys
import tempfile
import types

from host_support import PASSAGE, demo, needs, refused, versions

needs("numpy", "flashlight.lib.text.decoder")

from ctc_logits import BLANK, LABELS, SPACE, log_softmax, logits_of, texts, word_errors
from flashlight.lib.text.decoder import (
    CriterionType,
    LexiconDecoder,
    LexiconDecoderOptions,
    LexiconFreeDecoder,
    LexiconFreeDecoderOptions,
    SmearingMode,
    Trie,
    ZeroLM,
)

import kinglet_lm
from kinglet_lm.integrations.flashlight import LanguageModel

COUNT = 12
INDEX = {label: at for at, label in enumerate(LABELS)}
WEIGHT, WORD = 0.8, 0.5


def decoder_of(lm, words, weight=WEIGHT):
    trie = Trie(len(LABELS), SPACE)
    start = lm.start(False)
    for at, word in enumerate(words[:-1]):
        spelling = [INDEX[letter] for letter in word] + [SPACE]
        trie.insert(spelling, at, lm.score(start, at)[1])
    trie.smear(SmearingMode.MAX)
    options = LexiconDecoderOptions(50, 10, 25.0, weight, WORD, -math.inf, 0.0, False,
                                    CriterionType.CTC)
    return LexiconDecoder(options, trie, lm, SPACE, BLANK, len(words) - 1, [], False)


def decoded(decoder, logits):
    sound = log_softmax(logits, boundary=True)
    return decoder.decode(sound.ctypes.data, *sound.shape)[0]


def text_of(best, words):
    return " ".join(words[at] for at in best.words if at >= 0)


def errors(decoder, words, items):
    return sum(word_errors(text, text_of(decoded(decoder, logits), words))
               for text, logits in items)


def scores(model, decoder, words, items):
    """lmScore is ln p of the words and the end, by the model itself."""
    for _, logits in items:
        best = decoded(decoder, logits)
        text = text_of(best, words)
        # The host keeps the sum in single precision.
        assert math.isclose(best.lmScore, model.score(text), rel_tol=1e-5), (text, best.lmScore)


def states(model, words):
    """The answers are the model's own bits, queried once or twice, at the start and later."""
    lm = LanguageModel(model, [*words, "zzqx"], unk_offset=-3.0)
    start = lm.start(False)
    session = model.session(empty_cache="normalised")
    session.step(model.vocabulary.begin)
    at = words.index("film")
    after, value = lm.score(start, at)
    assert value == session.log_probability(model.vocabulary.id("film"))
    session.step(model.vocabulary.id("film"))
    expected = session.log_probability(model.vocabulary.id("was"))
    for _ in range(2):
        further, value = lm.score(after, words.index("was"))
        assert value == expected
        assert lm.score(start, at)[0] is after
    assert lm.finish(further)[1] < 0
    unknown = lm.score(after, len(words))[1]
    assert unknown == session.log_probability(model.vocabulary.unknown) - 3.0
    refused(kinglet_lm.IdOutOfRange, lambda: lm.score(after, len(words) + 1), "lm_dict", "below")
    fresh = lm.start(False)
    assert lm.score(lm.score(fresh, at)[0], words.index("was"))[1] == expected


def free(model):
    """A lexicon-free decoder queries its labels: here each label has a word's probability."""
    lm = LanguageModel(model, ["of", *LABELS[1:-1], "the"])  # one word for each label
    options = LexiconFreeDecoderOptions(10, 5, 25.0, 0.2, 0.0, False, CriterionType.CTC)
    decoder = LexiconFreeDecoder(options, lm, SPACE, BLANK, [])
    best = decoded(decoder, logits_of("a film", 1))
    labels = []
    for before, at in zip([-1, *best.tokens], best.tokens):
        if at not in (before, BLANK):
            labels.append(at)
    assert 3 <= len(labels) <= 20 and best.lmScore < 0


def torchaudio_decoder():
    """torchaudio's module, installed or from an unpacked wheel; None without it."""
    folder = os.environ.get("KINGLET_TORCHAUDIO")
    try:
        if not folder:
            import torchaudio.models.decoder

            return torchaudio.models.decoder
        for name in ("torchaudio", "torchaudio.utils"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules["torchaudio.utils"]._download_asset = None
        path = pathlib.Path(folder) / "torchaudio" / "models" / "decoder" / "_ctc_decoder.py"
        spec = importlib.util.spec_from_file_location("ctc", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except ImportError as error:
        print(f"torchaudio: not run: {error}")
        return None


def torchaudio(model, words, items, folder):
    ctc = torchaudio_decoder()
    if ctc is None:
        return "torchaudio not run"
    import torch

    lm = LanguageModel(model)
    lm.write_words(f"{folder}/words")
    with open(f"{folder}/words") as file:
        assert file.read().split("\n")[:-1] == list(model.vocabulary)
    with open(f"{folder}/lexicon", "w") as file:
        file.writelines(f"{word} {' '.join(word)} |\n" for word in words[:-1])
    labels = ["|", *LABELS[1:-1], "-"]
    decoder = ctc.ctc_decoder(
        lexicon=f"{folder}/lexicon", tokens=labels, lm=lm, lm_dict=f"{folder}/words",
        unk_word=lm.unknown_word, beam_size=50, beam_size_token=10, beam_threshold=25,
        lm_weight=WEIGHT, word_score=WORD)
    del lm  # the decoder keeps it
    wrong = 0
    for text, logits in items:
        sound = torch.from_numpy(log_softmax(logits, boundary=True))[None]
        best = decoder(sound)[0][0]
        wrong += word_errors(text, " ".join(best.words))
    return f"by torchaudio {wrong}; torch {torch.__version__}"


def main():
    spoken = texts(PASSAGE.read_text().splitlines(), COUNT)
    items = [(text, logits_of(text, seed)) for seed, text in enumerate(spoken)]
    count = sum(len(text.split()) for text in spoken)
    with tempfile.TemporaryDirectory() as folder:
        model = kinglet_lm.Model(demo(folder))
        words = [word for word in model.vocabulary
                 if word.isascii() and word.isalpha() and word.islower()] + ["<unk>"]
        states(model, words)
        zero = ZeroLM()
        alone = errors(decoder_of(zero, words, 0.0), words, items)
        lm = LanguageModel(model, words)
        decoder = decoder_of(lm, words)
        ours = errors(decoder, words, items)
        assert ours < alone / 2, (ours, alone)
        scores(model, decoder, words, items)
        free(model)
        refused(TypeError, lambda: pickle.dumps(decoder), "pickle")
        refused(kinglet_lm.NotFound, lambda: LanguageModel(f"{folder}/none.kgl"), "none.kgl")
        report = torchaudio(model, words, items, folder)
    print(f"flashlight: {alone} of {count} words wrong without, {ours} with the model; {report}; "
          + versions("flashlight-text", "numpy"))


if __name__ == "__main__":
    main()
