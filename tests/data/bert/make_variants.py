#!/usr/bin/env python3
"""Writes the checkpoints of this folder: BERT models with random weights, as Hugging Face's classes save theirs
(config.json, model.safetensors, vocab.txt), texts for them, and the answers in float64.

The network is written here from the equations of Devlin et al. 2019 and Vaswani et al. 2017, one token and one head
after the other. It shares nothing with kinglet. Needs numpy.

    python3 make_variants.py          writes beside itself

tokens.txt and segments.txt: a text a line, [CLS] and [SEP] in it, and the segment number of each token. Lines count
from 0 in the answers, positions from the [CLS]. Each file of answers is there only if the model has that part:
    golden.tsv          line, position, id, ln p of the token with [MASK] in its place
    golden_pooled.tsv   line, pooled vector
    golden_scores.tsv   line, position, logits: of classes or the next sentence at position 0, or the start and the end
                        of a span at each position
"""
import json
import math
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import write_lines, write_safetensors  # noqa: E402

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)
ACTIVATIONS = {
    "gelu": lambda x: x / 2 * (1 + numpy.array([math.erf(value / math.sqrt(2)) for value in x])),
    "relu": lambda x: numpy.maximum(x, 0),
    "silu": lambda x: x / (1 + numpy.exp(-x)),
}
ACTIVATIONS["swish"] = ACTIVATIONS["silu"]


class Shape:
    def __init__(self, width=12, layers=2, heads=3, inner=20, words=31, positions=11, segments=2, activation="gelu",
                 epsilon=1e-12):
        self.width, self.layers, self.heads, self.inner, self.words = width, layers, heads, inner, words
        self.positions, self.segments, self.activation, self.epsilon = positions, segments, activation, epsilon


class Weights:
    """Tensors by the names that a task's model gives them, in order of their making."""

    def __init__(self, shape, seed, prefix="bert."):
        self.shape, self.prefix, self.tensors = shape, prefix, {}
        self.random = numpy.random.RandomState(seed)

    def add(self, name, *size):
        scale = 1.3 / math.sqrt(size[-1]) if len(size) == 2 else 0.4
        self.tensors[name] = (self.random.standard_normal(size) * scale).astype(numpy.float32)

    def table(self, name, rows):
        self.tensors[name] = self.random.standard_normal((rows, self.shape.width)).astype(numpy.float32)

    def linear(self, name, rows, columns):
        self.add(name + ".weight", rows, columns)
        self.add(name + ".bias", rows)

    def norm(self, name):
        gain = 1 + 0.3 * self.random.standard_normal(self.shape.width)
        self.tensors[name + ".weight"] = gain.astype(numpy.float32)
        self.add(name + ".bias", self.shape.width)

    def network(self, pooler):
        s, at = self.shape, self.prefix
        self.table(at + "embeddings.word_embeddings.weight", s.words)
        self.table(at + "embeddings.position_embeddings.weight", s.positions)
        self.table(at + "embeddings.token_type_embeddings.weight", s.segments)
        self.norm(at + "embeddings.LayerNorm")
        for i in range(s.layers):
            layer = f"{at}encoder.layer.{i}."
            for part in ("query", "key", "value"):
                self.linear(layer + "attention.self." + part, s.width, s.width)
            self.linear(layer + "attention.output.dense", s.width, s.width)
            self.norm(layer + "attention.output.LayerNorm")
            self.linear(layer + "intermediate.dense", s.inner, s.width)
            self.linear(layer + "output.dense", s.width, s.inner)
            self.norm(layer + "output.LayerNorm")
        if pooler:
            self.linear(at + "pooler.dense", s.width, s.width)

    def masked_words(self):
        self.linear("cls.predictions.transform.dense", self.shape.width, self.shape.width)
        self.norm("cls.predictions.transform.LayerNorm")
        self.add("cls.predictions.bias", self.shape.words)


class Network:
    """A forward pass in float64."""

    def __init__(self, shape, tensors, prefix):
        self.s, self.prefix = shape, prefix
        self.w = {name: tensor.astype(numpy.float64) for name, tensor in tensors.items()}

    def linear(self, name, x):
        return self.w[name + ".weight"] @ x + self.w[name + ".bias"]

    def norm(self, name, x):
        mean = sum(x) / len(x)
        variance = sum((x - mean) ** 2) / len(x)
        return (x - mean) / math.sqrt(variance + self.s.epsilon) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def attention(self, name, hidden):
        size = self.s.width // self.s.heads
        queries, keys, values = ([self.linear(name + "self." + part, x) for x in hidden]
                                 for part in ("query", "key", "value"))
        attended = []
        for query in queries:
            heads = []
            for h in range(self.s.heads):
                chunk = slice(h * size, (h + 1) * size)
                scores = numpy.array([query[chunk] @ key[chunk] for key in keys]) / math.sqrt(size)
                shares = numpy.exp(scores - scores.max())
                shares /= shares.sum()
                heads.append(sum(share * value[chunk] for share, value in zip(shares, values)))
            attended.append(numpy.concatenate(heads))
        return [self.norm(name + "output.LayerNorm", x + self.linear(name + "output.dense", a))
                for x, a in zip(hidden, attended)]

    def hidden(self, ids, segments):
        """The last layer's vectors."""
        at, act = self.prefix + "embeddings.", ACTIVATIONS[self.s.activation]
        rows = [self.w[at + "word_embeddings.weight"][word] + self.w[at + "position_embeddings.weight"][t]
                + self.w[at + "token_type_embeddings.weight"][segments[t]] for t, word in enumerate(ids)]
        rows = [self.norm(at + "LayerNorm", x) for x in rows]
        for i in range(self.s.layers):
            layer = f"{self.prefix}encoder.layer.{i}."
            rows = self.attention(layer + "attention.", rows)
            rows = [self.norm(layer + "output.LayerNorm", x + self.linear(
                layer + "output.dense", act(self.linear(layer + "intermediate.dense", x)))) for x in rows]
        return rows

    def log_probabilities(self, x):
        head = "cls.predictions."
        x = ACTIVATIONS[self.s.activation](self.linear(head + "transform.dense", x))
        x = self.norm(head + "transform.LayerNorm", x)
        table = self.w.get(head + "decoder.weight", self.w[self.prefix + "embeddings.word_embeddings.weight"])
        logits = table @ x + self.w[head + "bias"]
        return logits - logits.max() - math.log(numpy.exp(logits - logits.max()).sum())

    def pooled(self, hidden):
        return numpy.tanh(self.linear(self.prefix + "pooler.dense", hidden[0]))


def texts(shape):
    """Ids and segments: 2 tokens, 3 tokens, a pair, and as many as there are positions."""
    def words(first, count):
        return [5 + (first + 7 * i) % (shape.words - 5) for i in range(count)]

    whole = shape.positions
    lines = [[CLS, SEP], [CLS, 9, SEP], [CLS, *words(3, 3), SEP, *words(8, 2), SEP],
             [CLS, *words(1, whole - 2), SEP], [CLS, UNK, *words(2, 2), SEP, 9, MASK, SEP, PAD][:whole],
             [CLS, *words(4, (whole - 3) // 2), SEP, *words(4, whole - 3 - (whole - 3) // 2), SEP]]
    pairs = []
    for ids in lines:
        segments, segment = [], 0
        for word in ids:
            segments.append(segment)
            segment = min(segment + (word == SEP), shape.segments - 1)
        pairs.append((ids, segments))
    # The highest segment number everywhere.
    pairs.append((lines[2], [shape.segments - 1] * len(lines[2])))
    return pairs


def stored(tensor):
    return {"float32": "F32", "int64": "I64"}[str(tensor.dtype)], tensor.shape, tensor.tobytes()


def text_of(value):
    return f"{value:.17g}" if isinstance(value, float) else str(value)


def write_rows(path, rows):
    with open(path, "w") as out:
        out.writelines("\t".join(map(text_of, row)) + "\n" for row in rows)


def write_answers(folder, weights):
    network = Network(weights.shape, weights.tensors, weights.prefix)
    tensors, lines = weights.tensors, texts(weights.shape)
    for name, part in (("tokens", 0), ("segments", 1)):
        write_rows(f"{folder}/{name}.txt", [[" ".join(map(str, line[part]))] for line in lines])
    words, pooled, scores = [], [], []
    for i, (ids, segments) in enumerate(lines):
        if "cls.predictions.bias" in tensors:
            for t, word in enumerate(ids):
                if word not in (CLS, SEP):
                    hidden = network.hidden(ids[:t] + [MASK] + ids[t + 1:], segments)
                    words.append([i, t, word, float(network.log_probabilities(hidden[t])[word])])
        hidden = network.hidden(ids, segments)
        if "qa_outputs.weight" in tensors:
            scores += [[i, t, *map(float, network.linear("qa_outputs", x))] for t, x in enumerate(hidden)]
        elif weights.prefix + "pooler.dense.weight" in tensors:
            vector = network.pooled(hidden)
            pooled.append([i, " ".join(map(text_of, map(float, vector)))])
            for head in ("classifier", "cls.seq_relationship"):
                if head + ".weight" in tensors:
                    scores.append([i, 0, *map(float, network.linear(head, vector))])
    for name, rows in (("golden", words), ("golden_pooled", pooled), ("golden_scores", scores)):
        if rows:
            write_rows(f"{folder}/{name}.tsv", rows)


def config(architecture, shape, **more):
    return {"architectures": [architecture], "model_type": "bert", "hidden_size": shape.width,
            "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "intermediate_size": shape.inner,
            "hidden_act": shape.activation, "layer_norm_eps": shape.epsilon, "vocab_size": shape.words,
            "max_position_embeddings": shape.positions, "type_vocab_size": shape.segments, **more}


def variant(name, seed, shape=None, architecture="BertForMaskedLM", prefix="bert.", pooler=False, own_decoder=False,
            stored_copies=False, old=False, heads=(), settings=None):
    """stored_copies: of the parameters that are tied; old: as files of 2018 and 2019 are."""
    shape = shape or Shape()
    weights = Weights(shape, seed, prefix)
    weights.network(pooler)
    if architecture in ("BertForMaskedLM", "BertForPreTraining"):
        weights.masked_words()
    if own_decoder:
        weights.add("cls.predictions.decoder.weight", shape.words, shape.width)
    for head, rows in heads:
        weights.linear(head, rows, shape.width)
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    write_answers(folder, weights)

    saved = dict(weights.tensors)
    if own_decoder or stored_copies:
        saved["cls.predictions.decoder.bias"] = saved["cls.predictions.bias"]
    if stored_copies:
        saved["cls.predictions.decoder.weight"] = saved[prefix + "embeddings.word_embeddings.weight"]
    if not old:
        saved[prefix + "embeddings.position_ids"] = numpy.arange(shape.positions)[None]
    else:
        saved = {key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
                  for key, value in saved.items()}
    write_safetensors(folder + "/model.safetensors", {key: stored(tensor) for key, tensor in saved.items()},
                      separators=(",", ":"))
    settings = config(architecture, shape, **(settings or {}))
    with open(folder + "/config.json", "w") as out:
        json.dump({key: value for key, value in settings.items() if value is not None}, out, indent=1)
        out.write("\n")
    words = SPECIAL + [f"##w{i}" if i % 5 == 0 else f"w{i}" for i in range(len(SPECIAL), shape.words)]
    write_lines(folder, {"vocab.txt": words})


variant("mlm-tied", 1)
variant("mlm-tied-copies", 2, stored_copies=True)
variant("mlm-untied", 3, own_decoder=True, settings={"tie_word_embeddings": False})
variant("mlm-gamma-beta", 4, Shape(width=10, heads=5), old=True, stored_copies=True,
        settings={"architectures": None, "max_position_embeddings": 11})
variant("mlm-relu", 5, Shape(activation="relu"))
variant("mlm-swish", 6, Shape(activation="swish", epsilon=1e-3))
variant("mlm-silu", 7, Shape(activation="silu", layers=1))
variant("mlm-one-layer", 8, Shape(width=16, layers=1, heads=1, inner=9),
        settings={"layer_norm_eps": None, "position_embedding_type": "absolute", "is_decoder": False})
variant("mlm-four-layers", 9, Shape(width=8, layers=4, heads=8, inner=16, positions=14))
variant("mlm-one-segment", 10, Shape(segments=1))
variant("mlm-three-segments", 11, Shape(segments=3, heads=4, positions=13))
variant("pretraining", 12, architecture="BertForPreTraining", pooler=True, heads=[("cls.seq_relationship", 2)])
variant("classifier-3", 13, architecture="BertForSequenceClassification", pooler=True, heads=[("classifier", 3)],
        settings={"num_labels": 3})
variant("classifier-1", 14, architecture="BertForSequenceClassification", pooler=True, heads=[("classifier", 1)],
        settings={"num_labels": 1})
variant("question-answering", 15, architecture="BertForQuestionAnswering", heads=[("qa_outputs", 2)])
variant("question-answering-unused-pooler", 16, Shape(layers=1), architecture="BertForQuestionAnswering", pooler=True,
        old=True, heads=[("qa_outputs", 2)])
variant("bare", 17, architecture="BertModel", prefix="", pooler=True)
