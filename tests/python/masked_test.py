"""Masked models from Python: a small BERT with random weights, compared with its formulas.

    masked_test.py        (PYTHONPATH, KINGLET_LIBRARY, KINGLET_COMMAND: what is tested)
"""

import json
import math
import pathlib
import random
import struct
import sys
import tempfile

import kinglet_lm
from support import demo, refused

WIDTH, HEADS, INNER, LAYERS, POSITIONS, CLASSES = 8, 2, 12, 2, 9, 3
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "a", "success", "##es"]
TEXT = [2, 5, 4, 7, 3, 8, 9, 3]  # [CLS] the [MASK] was [SEP] a success [SEP]
SEGMENTS = [0, 0, 0, 0, 0, 1, 1, 1]


def shapes():
    """The parameters of transformers.BertForSequenceClassification, and the head of words."""
    sizes = {"bert.embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
             "bert.embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
             "bert.embeddings.token_type_embeddings.weight": (2, WIDTH),
             "cls.predictions.bias": (len(WORDS),)}
    layers = {"bert.pooler.dense": (WIDTH, WIDTH), "classifier": (CLASSES, WIDTH),
              "cls.predictions.transform.dense": (WIDTH, WIDTH)}
    norms = ["bert.embeddings.LayerNorm", "cls.predictions.transform.LayerNorm"]
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            layers[f"{at}attention.{part}"] = (WIDTH, WIDTH)
        layers[at + "intermediate.dense"] = (INNER, WIDTH)
        layers[at + "output.dense"] = (WIDTH, INNER)
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
    for name, shape in layers.items():
        sizes[name + ".weight"], sizes[name + ".bias"] = shape, shape[:1]
    for name in norms:
        sizes[name + ".weight"] = sizes[name + ".bias"] = (WIDTH,)
    return sizes


def checkpoint(folder, excluded=()):
    """Writes config.json, vocab.txt and model.safetensors; returns the weights."""
    draw = random.Random(7)
    header, data, weights = {}, b"", {}
    for name, shape in shapes().items():
        if name.startswith(tuple(excluded) or "no name"):
            continue
        centre = 1 if name.endswith("LayerNorm.weight") else 0
        values = struct.pack(f"<{math.prod(shape)}f",
                             *(centre + draw.gauss(0, 0.4) for _ in range(math.prod(shape))))
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
        flat = struct.unpack(f"<{math.prod(shape)}f", values)
        rows = [flat[at:at + shape[-1]] for at in range(0, len(flat), shape[-1])]
        weights[name] = rows if len(shape) == 2 else rows[0]
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in WORDS))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu",
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "vocab_size": len(WORDS),
        "layer_norm_eps": 1e-12}))
    return weights


class Bert:
    """Devlin et al. 2019 in doubles."""

    def __init__(self, weights):
        self.weights = weights

    def linear(self, name, x):
        rows, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(rows, bias)]

    def norm(self, name, x):
        gain, bias = self.weights[name + ".weight"], self.weights[name + ".bias"]
        mean = sum(x) / len(x)
        deviation = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-12)
        return [(v - mean) / deviation * g + b for v, g, b in zip(x, gain, bias)]

    def attention(self, at, xs):
        size = WIDTH // HEADS
        queries, keys, values = ([self.linear(f"{at}attention.self.{part}", x) for x in xs]
                                 for part in ("query", "key", "value"))
        out = []
        for query in queries:
            mixed = []
            for head in range(0, WIDTH, size):
                part = slice(head, head + size)
                shares = softmax([dot(query[part], key[part]) / math.sqrt(size) for key in keys])
                mixed += [sum(p * value[i] for p, value in zip(shares, values))
                          for i in range(head, head + size)]
            out.append(self.linear(at + "attention.output.dense", mixed))
        return out

    def vectors(self, ids, segments):
        tables = [self.weights[f"bert.embeddings.{name}_embeddings.weight"]
                  for name in ("word", "token_type", "position")]
        xs = [self.norm("bert.embeddings.LayerNorm", [sum(three) for three in zip(
            tables[0][id], tables[1][segment], tables[2][position])])
            for position, (id, segment) in enumerate(zip(ids, segments))]
        for i in range(LAYERS):
            at = f"bert.encoder.layer.{i}."
            xs = [self.norm(at + "attention.output.LayerNorm", add(x, y))
                  for x, y in zip(xs, self.attention(at, xs))]
            xs = [self.norm(at + "output.LayerNorm", add(x, self.linear(
                at + "output.dense", [gelu(v) for v in self.linear(at + "intermediate.dense", x)])))
                for x in xs]
        return xs

    def log_probabilities(self, vector):
        hidden = [gelu(v) for v in self.linear("cls.predictions.transform.dense", vector)]
        hidden = self.norm("cls.predictions.transform.LayerNorm", hidden)
        logits = [dot(row, hidden) + b for row, b in zip(
            self.weights["bert.embeddings.word_embeddings.weight"],
            self.weights["cls.predictions.bias"])]
        return [math.log(p) for p in softmax(logits)]

    def pooled(self, vector):
        return [math.tanh(v) for v in self.linear("bert.pooler.dense", vector)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b))


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def gelu(v):
    return v / 2 * (1 + math.erf(v / math.sqrt(2)))


def softmax(values):
    weights = [math.exp(v - max(values)) for v in values]
    return [w / sum(weights) for w in weights]


def close(found, wanted):
    assert len(found) == len(wanted), (len(found), len(wanted))
    assert all(abs(a - b) < 2e-5 for a, b in zip(found, wanted)), (list(found), wanted)


def numbers(model, bert):
    assert (model.pooled_width, model.score_count) == (WIDTH, CLASSES)
    assert model.longest_source >= len(TEXT)
    with model.session(lanes=2) as session:
        for lane, segments in ((0, None), (1, SEGMENTS)):
            session.read(TEXT, segments, lane=lane)
            vectors = bert.vectors(TEXT, segments or [0] * len(TEXT))
            for position, vector in enumerate(vectors):
                session.look_at(position, lane=lane)
                wanted = bert.log_probabilities(vector)
                close(session.log_probabilities(lane=lane), wanted)
                assert session.top_k(1, lane=lane)[0][0] == wanted.index(max(wanted))
            pooled = bert.pooled(vectors[0])
            close(session.pooled(lane=lane), pooled)
            close(session.scores(lane=lane), bert.linear("classifier", pooled))
        session.fork(1, 0)
        assert session.pooled(0) == session.pooled(1)


def texts(model):
    """A tokenizer of BERT adds [CLS] and [SEP]."""
    ids = model.tokenize("the [MASK] was a success")
    assert [WORDS[id] for id in ids] == "[CLS] the [MASK] was a success [SEP]".split()
    assert model.segments("the [MASK] was a success") == [0] * len(ids)
    assert model.segments("the ||| success") == [0, 0, 0, 1, 1]
    with model.session() as session:
        session.read(ids)
        session.look_at(ids.index(model.vocabulary.id("[MASK]")))
        assert abs(sum(session.probabilities()) - 1) < 1e-5


def refusals(model, bare, language):
    with model.session() as session:
        refused(kinglet_lm.WrongOrder, lambda: session.look_at(0), "text that was read")
        refused(kinglet_lm.WrongOrder, session.pooled)
        refused(kinglet_lm.WrongOrder, session.scores)
        refused(kinglet_lm.InvalidArgument, lambda: session.read([]))
        refused(kinglet_lm.InvalidArgument, lambda: session.read([2] * (POSITIONS + 1)))
        refused(kinglet_lm.InvalidArgument, lambda: session.read(TEXT, [0, 1]), "segments", "8")
        refused(kinglet_lm.IdOutOfRange, lambda: session.read([len(WORDS)]))
        refused(kinglet_lm.IdOutOfRange, lambda: session.read([2, 3], [0, 2]), "segment")
        refused(TypeError, lambda: session.read("the film"))
        session.read(TEXT)
        refused(kinglet_lm.WrongOrder, lambda: session.log_probability(5))
        for position in (len(TEXT), 1 << 63, 1 << 64, -1):
            refused(kinglet_lm.InvalidArgument, lambda at=position: session.look_at(at), "position")
        refused(kinglet_lm.InvalidArgument, lambda: session.scores(1), "position")
        refused(kinglet_lm.Unsupported, lambda: session.step(5), "masked")
    assert (bare.pooled_width, bare.score_count) == (0, 0)
    with bare.session() as session:
        session.read(TEXT)
        refused(kinglet_lm.Unsupported, session.pooled, "pooler")
        refused(kinglet_lm.Unsupported, session.scores, "scores")
    assert (language.pooled_width, language.score_count, language.longest_source) == (0, 0, 0)
    with language.session() as session:
        for call in (lambda: session.read([1]), lambda: session.look_at(0), session.pooled,
                     session.scores):
            refused(kinglet_lm.Unsupported, call, "masked")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bert = Bert(checkpoint(folder / "bert"))
        checkpoint(folder / "bare", ["bert.pooler", "classifier"])
        models = []
        for made in ("bert", "bare"):
            path = folder / f"{made}.kgl"
            kinglet_lm.convert(folder / made, path, tokenizer=folder / made / "vocab.txt")
            models.append(kinglet_lm.Model(path))
        numbers(models[0], bert)
        texts(models[0])
        refusals(*models, kinglet_lm.Model(demo(folder)))
    print(f"{2 * len(TEXT) * len(WORDS)} log-probabilities as the formulas have them")


if __name__ == "__main__":
    sys.exit(main())
