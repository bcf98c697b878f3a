"""kinglet_lm.Ngrams and Scorer: back-off n-grams and sums by their definition, pieces, refusals.

    ngrams_test.py      (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import array
import json
import math
import pathlib
import pickle
import random
import struct
import tempfile
import zipfile

import kinglet_lm
from support import DATA, refused, small

LN10 = math.log(10)
END = "<eos>"  # of the model; </s> of n-grams


def random_arpa(path, words, order, seed):
    """Random n-grams in an ARPA file; returns {words: (log10 p, back-off weight)}."""
    draw = random.Random(seed)
    levels = [{(word,): (-draw.random() * 3, draw.choice([0.0, -0.5, 0.25]))
               for word in ("<unk>", "<s>", "</s>", *words)}]
    for _ in range(order - 1):
        levels.append({(*before, draw.choice(words)): (-draw.random(), -draw.random())
                       for before in levels[-1] if draw.random() < 0.6})
    lines = ["\\data\\", *(f"ngram {i + 1}={len(level)}" for i, level in enumerate(levels))]
    for i, level in enumerate(levels):
        lines += ["", f"\\{i + 1}-grams:"]
        lines += [f"{p!r}\t{' '.join(ngram)}" + (f"\t{backoff!r}" if i + 1 < order else "")
                  for ngram, (p, backoff) in level.items()]
    path.write_text("\n".join([*lines, "", "\\end\\", ""]), encoding="utf-8")
    return {ngram: value for level in levels for ngram, value in level.items()}


def log_p(table, order, before, word):
    """ln p(word | before) by the definition of back-off models."""
    known = [one if (one,) in table else "<unk>" for one in (*before, word)]
    context = known[max(0, len(known) - order) : -1]
    total = 0.0
    while (*context, known[-1]) not in table:
        total += table.get(tuple(context), (0, 0))[1]
        context = context[1:]
    return (total + table[(*context, known[-1])][0]) * LN10


def opened(folder, words, order, seed, bits=None):
    arpa = folder / f"{order}.{seed}.arpa"
    table = random_arpa(arpa, words, order, seed)
    output = arpa.with_suffix(".kng")
    kinglet_lm.run("ngram", str(arpa), "-o", str(output), *(["--bits", str(bits)] if bits else []))
    return table, kinglet_lm.Ngrams(output)


def n_grams(folder):
    words = [f"w{i}" for i in range(9)]
    for order in (1, 2, 4):
        table, ngrams = opened(folder, words, order, 1)
        draw = random.Random(order)
        for _ in range(50):
            sentence = [draw.choice([*words, "never"]) for _ in range(draw.randrange(7))]
            state, before, total = ngrams.begin(), ["<s>"], 0.0
            for word in [*sentence, "</s>"]:
                value, after = ngrams.score(state, word)
                assert abs(value - log_p(table, order, before, word)) < 1e-5
                assert ngrams.score(state, ngrams.word(word)) == (value, after)
                state, total = after, total + value
                before.append(word)
            assert ngrams.sentence(" ".join(sentence)) == total
    assert ngrams.word("never") == ngrams.word("<unk>") != ngrams.word("w1")
    value, _ = ngrams.score(ngrams.begin(sentence=False), "w1")
    assert abs(value - table["w1",][0] * LN10) < 1e-6
    assert pickle.loads(pickle.dumps(ngrams)).sentence("w1 w2") == ngrams.sentence("w1 w2")


def bonus_of(phrases, text, ended):
    """The bonus of a text by its definition."""
    whole = sum(bonus * len(phrase) for phrase, bonus in phrases for at in range(len(text))
                if text[at : at + len(phrase)] == phrase)
    if ended:
        return whole
    for at in range(len(text)):
        rest = text[at:]
        if any(phrase[: len(rest)] == rest and phrase != rest for phrase, _ in phrases):
            return whole + sum(
                max(bonus for phrase, bonus in phrases if phrase[:length] == rest[:length])
                for length in range(1, len(rest) + 1))
    return whole


def scorers(model, folder):
    """A beam's scores are the formula's, however often phrases fail."""
    vocabulary = [model.vocabulary[id] for id in range(len(model.vocabulary))]
    words = [word for word in vocabulary if word not in (END, "<unk>")][:12]
    three, three_ngrams = opened(folder, words, 3, 5)
    two, two_ngrams = opened(folder, words, 2, 6)
    ids = [vocabulary.index(word) for word in words[:3]]
    phrases = [([ids[0], ids[1]], 1.5), ([ids[0], ids[1], ids[2]], 0.5), ([ids[1], ids[0]], 2.0)]
    scorer = model.scorer(0.7, -2.0).mix_ngrams(three_ngrams, 0.4).add_ngrams(two_ngrams, -0.3)
    for phrase, bonus in phrases:
        scorer.add_phrase(phrase, bonus)
    beam, plain = model.beam(scorer=scorer, lanes=4), model.beam(lanes=4)
    end, unknown = model.vocabulary.end, model.vocabulary.unknown
    draw = random.Random(7)
    for _ in range(4):
        at, same = beam.step([beam.begin()], [end]), plain.step([plain.begin()], [end])
        text, before = [], ["<s>"]
        for _ in range(12):
            network, scores = plain.log_probabilities(same), beam.log_probabilities(at)
            for id, word in enumerate(vocabulary):
                word = "</s>" if id == end else word
                expected = 0.7 * math.log(0.6 * math.exp(network[id]) +
                                          0.4 * math.exp(log_p(three, 3, before, word)))
                expected += -0.3 * log_p(two, 2, before, word) + (-2.0 if id == unknown else 0)
                expected += (bonus_of(phrases, text, True) if id == end
                             else bonus_of(phrases, [*text, id], False))
                expected -= bonus_of(phrases, text, False)
                assert abs(scores[id] - expected) < 1e-5, (word, scores[id], expected)
            best = sorted(range(len(vocabulary)), key=lambda id: -scores[id])[:3]
            assert [id for id, _ in beam.top_k(at, 3)[0]] == best
            next_id = draw.choice(ids)
            text.append(next_id)
            before.append(vocabulary[next_id])
            at, same = beam.step(at, [next_id]), plain.step(same, [next_id])


def pieces(folder):
    """LODR over the pieces of icefall's model: bigrams of pieces, and <sos/eos> is </s>."""
    checkpoint = DATA / "speech-lm-variants" / "icefall-rnn-tied" / "epoch-7.pt"
    kinglet_lm.convert(checkpoint, folder / "pieces.kgl", family="icefall-rnn-lm")
    model = kinglet_lm.Model(folder / "pieces.kgl")
    vocabulary = [model.vocabulary[id] for id in range(len(model.vocabulary))]
    spelt = [word for word in vocabulary if word.startswith("\u2581")]
    table, ngrams = opened(folder, spelt, 2, 8)
    beam, plain = model.beam(scorer=model.scorer().add_ngrams(ngrams, -0.2)), model.beam()
    before = ["<s>"]
    at, same = beam.begin(), plain.begin()
    for id in (model.vocabulary.begin, *(vocabulary.index(piece) for piece in spelt[:4])):
        (at,), (same,) = beam.step([at], [id]), plain.step([same], [id])
        before += [vocabulary[id]] if id != model.vocabulary.begin else []
        network, scores = plain.log_probabilities([same]), beam.log_probabilities([at])
        for next_id, word in enumerate(vocabulary):
            piece = "</s>" if next_id == model.vocabulary.end else word
            expected = network[next_id] - 0.2 * log_p(table, 2, before, piece)
            assert abs(scores[next_id] - expected) < 1e-5, (word, scores[next_id], expected)


def rescored(folder, name, texts, *options):
    """What `kinglet rescore` prints of a list of these texts."""
    with open(folder / "texts.txt", "w", encoding="utf-8") as file:
        file.writelines(f"utt-{at} {text}\n" for at, text in enumerate(texts, 1))
    printed = kinglet_lm.run(
        "rescore", name, folder / "texts.txt", "--format", "kaldi", "--all", "--json", *options)
    return {line["text"]: line for line in map(json.loads, printed.splitlines()) if "rank" in line}


def lattice_of(texts):
    """A lattice of which each text is a path, in Kaldi's form."""
    lines, state = ["utt"], 1
    for text in texts:
        at = 0
        for word in text.split():
            lines.append(f"{at} {state} {word} 0,0")
            at, state = state, state + 1
        lines.append(f"{at} 0,0")
    return "\n".join(lines) + "\n\n"


def write_npz(path, shapes):
    """Random float32 arrays of these shapes, as NumPy writes them."""
    draw = random.Random(3)
    with zipfile.ZipFile(path, "w") as file:
        for name, shape in shapes.items():
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
            header += " " * (-(len(header) + 11) % 64) + "\n"
            values = array.array("f", (draw.gauss(0, 0.5) for _ in range(math.prod(shape))))
            file.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header))
                          + header.encode() + values.tobytes())


def piece_model(folder, pieces, units=4):
    """icefall's LSTM with random weights over the pieces of a SentencePiece model."""
    data, at, count = pieces.read_bytes(), 0, 0
    while data[at] == 10:  # a piece; then its bytes, here fewer than 128
        at, count = at + 2 + data[at + 1], count + 1
    write_npz(folder / "bpe.npz", {
        "input_embedding.weight": (count, units), "rnn.weight_ih_l0": (4 * units, units),
        "rnn.weight_hh_l0": (4 * units, units), "rnn.bias_ih_l0": (4 * units,),
        "rnn.bias_hh_l0": (4 * units,), "output_linear.weight": (count, units),
        "output_linear.bias": (count,)})
    kinglet_lm.convert(folder / "bpe.npz", folder / "bpe.kgl", family="icefall-rnn-lm",
                       tokenizer=pieces)
    return kinglet_lm.Model(folder / "bpe.kgl")


def pieces_in_lists(folder):
    """`rescore --ngrams-of-tokens`: lists and lattices by the definition, added and mixed."""
    model = piece_model(folder, DATA / "segmentations" / "bpe.model")
    vocabulary = list(model.vocabulary)
    special = {model.vocabulary.begin, model.vocabulary.end, model.vocabulary.unknown}
    table, _ = opened(folder, [piece for id, piece in enumerate(vocabulary)
                               if id not in special and piece not in ("<s>", "</s>")][::2], 2, 9)
    draw = random.Random(4)
    texts = sorted({" ".join("".join(draw.choices("thefilmarond", k=draw.randrange(1, 6)))
                             for _ in range(draw.randrange(1, 5))) for _ in range(30)})
    assert sum(len(model.tokenize(text)) > len(text.split()) for text in texts) > 20
    arpa, share, weight = str(folder / "2.9.arpa"), 0.3, -0.25
    options = ("--ngrams-of-tokens", "--ngram", arpa, "--ngram-weight", str(weight), "--mix", arpa,
               "--share", str(share))
    found = rescored(folder, folder / "bpe.kgl", texts, *options)
    assert set(found) == set(texts)
    session = model.session()
    for text, line in found.items():
        ids = [*model.tokenize(text), model.vocabulary.end]
        session.reset()
        session.step(model.vocabulary.begin)
        added, mixed, before = 0.0, 0.0, ["<s>"]
        for id in ids:
            piece = "</s>" if id == model.vocabulary.end else vocabulary[id]
            value = log_p(table, 2, before, piece)
            added += value
            mixed += math.log((1 - share) * math.exp(session.log_probability(id))
                              + share * math.exp(value))
            session.step(id)
            before.append(piece)
        assert abs(line["ngram_logprobs"][0] - added) < 1e-4, (text, line, added)
        assert abs(line["mixed_logprob"] - mixed) < 1e-4, (text, line, mixed)
        assert abs(line["score"] - mixed - weight * added) < 1e-4
    (folder / "lattice.txt").write_text(lattice_of(texts), encoding="utf-8")
    printed = kinglet_lm.run(
        "rescore", folder / "bpe.kgl", folder / "lattice.txt", "--lattices", "--all", "--json",
        "--texts", 10, "--history", 100, "--hypotheses", 1000, *options)
    lines = [line for line in map(json.loads, printed.splitlines()) if "rank" in line]
    best = sorted(found.values(), key=lambda line: -line["score"])[:10]
    assert [line["text"] for line in lines] == [line["text"] for line in best]
    for line, expected in zip(lines, best):
        assert abs(line["score"] - expected["score"]) < 1e-4
    tuned = json.loads(kinglet_lm.run(
        "rescore", folder / "bpe.kgl", folder / "texts.txt", "--format", "kaldi",
        "--ngrams-of-tokens", "--ngram", arpa, "--tune", references(folder, texts)))
    assert "--ngrams-of-tokens" in tuned["command"]
    assert "n-grams of tokens" in tuned["protocol"]
    return len(texts)


def references(folder, texts):
    (folder / "references.txt").write_text(f"utt\t{texts[0]}\n", encoding="utf-8")
    return folder / "references.txt"


def refusals(model, folder):
    refused(kinglet_lm.NotFound, lambda: kinglet_lm.Ngrams(folder / "none.kng"), "none.kng")
    ngrams = kinglet_lm.Ngrams(next(folder.glob("*.kng")))
    refused(kinglet_lm.InvalidArgument, lambda: ngrams.score(b"", "w1"), "32 bytes, found 0")
    refused(kinglet_lm.InvalidArgument, lambda: ngrams.score(bytes(31) + b"\x20", "w1"),
            "a state of these n-grams")
    refused(kinglet_lm.IdOutOfRange, lambda: ngrams.score(ngrams.begin(), 1000))
    scorer = model.scorer()
    refused(TypeError, lambda: scorer.add_ngrams("x.kng", 1), "kinglet_lm.Ngrams, found str")
    refused(kinglet_lm.InvalidArgument, lambda: scorer.mix_ngrams(ngrams, 2), "0 to 1")
    refused(kinglet_lm.InvalidArgument, lambda: scorer.add_phrase([], 1), "at least one token")
    refused(kinglet_lm.InvalidArgument, lambda: model.scorer(math.inf), "a finite number")
    refused(TypeError, lambda: model.beam(scorer=ngrams), "kinglet_lm.Scorer, found Ngrams")
    other = kinglet_lm.Model(model.path)
    refused(kinglet_lm.InvalidArgument, lambda: other.beam(scorer=scorer), "a scorer of this model")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = kinglet_lm.Model(small(folder))
        n_grams(folder)
        scorers(model, folder)
        pieces(folder)
        texts = pieces_in_lists(folder)
        refusals(model, folder)
    print(f"n-grams, a scorer of all parts, n-grams of pieces ({texts} texts), refusals")


if __name__ == "__main__":
    main()
