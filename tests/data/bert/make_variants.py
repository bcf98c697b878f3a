#!/usr/bin/env python3
"""Small random BERT checkpoints, one for each option, and what an independent program says of them.

The program is plain Python in double precision, written from the paper (Devlin et al. 2019) and from the description of
Hugging Face's modelling code, not from kinglet. Each folder gets

  config.json, model.safetensors   as save_pretrained writes them
  vocab.txt, tokens.txt, segments.txt
  golden.tsv      line, position, id, ln p of the id where [MASK] stands in its place (models with a masked-word head)
  pooled.tsv      line, the pooled vector (models with a pooler)
  scores.tsv      line, class or next-sentence logits; of question answering: start logits, then end logits

Lines and positions count from 0. Usage: make_variants.py [FOLDER]
"""
import json
import math
import pathlib
import random
import struct
import sys

LINES = [
    ([2, 7, 9, 3], [0, 0, 0, 0]),
    ([2, 3], [0, 0]),
    ([2, 5, 3], [0, 0, 1]),
    ([2, 8, 4, 1, 3, 12, 6, 3], [0, 0, 0, 0, 0, 1, 1, 1]),
    ([2, 11, 12, 6, 7, 8, 9, 10, 5, 3], [0] * 6 + [1] * 4),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(5, 13)]
PLAIN = {"d": 8, "heads": 2, "layers": 2, "inner": 10, "act": "gelu", "segments": 2, "eps": 1e-12}
VARIANTS = {
    "mlm-tied": {"heads_of": ["mlm"]},
    "mlm-untied": {"heads_of": ["mlm"], "tied": False},
    "mlm-gamma-beta": {"heads_of": ["mlm"], "old": True, "stored_decoder": True},
    "mlm-relu-one-layer": {"heads_of": ["mlm"], "act": "relu", "layers": 1, "heads": 1, "eps": 1e-5},
    "mlm-silu-four-layers": {"heads_of": ["mlm"], "act": "silu", "layers": 4, "heads": 4, "inner": 3},
    "mlm-one-segment": {"heads_of": ["mlm"], "segments": 1, "d": 6, "heads": 3},
    "pretraining": {"heads_of": ["mlm", "pooler", "next"], "segments": 3},
    "classifier": {"heads_of": ["pooler", "classifier"], "labels": 3},
    "classifier-one-label": {"heads_of": ["pooler", "classifier"], "labels": 1},
    "question-answering": {"heads_of": ["spans"]},
    "bare": {"heads_of": ["pooler"], "prefix": ""},
}


def rounded(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def matrix(rng, rows, columns, spread=0.5):
    return [[rounded(rng.uniform(-spread, spread)) for _ in range(columns)] for _ in range(rows)]


def vector(rng, count, centre=0.0, spread=0.4):
    return [rounded(centre + rng.uniform(-spread, spread)) for _ in range(count)]


def linear(x, weight, bias):
    return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(weight, bias)]


def layer_norm(x, gain, bias, eps):
    mean = sum(x) / len(x)
    variance = sum((v - mean) ** 2 for v in x) / len(x)
    return [(v - mean) / math.sqrt(variance + eps) * g + b for v, g, b in zip(x, gain, bias)]


def activate(name, x):
    if name == "gelu":
        return [v / 2 * (1 + math.erf(v / math.sqrt(2))) for v in x]
    if name == "relu":
        return [max(v, 0.0) for v in x]
    return [v / (1 + math.exp(-v)) for v in x]


def softmax(x):
    top = max(x)
    powers = [math.exp(v - top) for v in x]
    return [p / sum(powers) for p in powers]


class Bert:
    def __init__(self, name, spec):
        self.s = {**PLAIN, "tied": True, "old": False, "stored_decoder": False, "prefix": "bert.", **spec}
        self.rng = random.Random("kinglet " + name)
        self.t = {}  # tensors by name, without prefix
        s, rng, d = self.s, self.rng, self.s["d"]
        self.t["embeddings.word_embeddings.weight"] = matrix(rng, len(WORDS), d, 1)
        self.t["embeddings.position_embeddings.weight"] = matrix(rng, 10, d)
        self.t["embeddings.token_type_embeddings.weight"] = matrix(rng, s["segments"], d)
        self.norm("embeddings.LayerNorm")
        for i in range(s["layers"]):
            p = f"encoder.layer.{i}."
            for part in ("query", "key", "value"):
                self.dense(p + "attention.self." + part, d, d, 1)
            self.dense(p + "attention.output.dense", d, d)
            self.norm(p + "attention.output.LayerNorm")
            self.dense(p + "intermediate.dense", s["inner"], d)
            self.dense(p + "output.dense", d, s["inner"])
            self.norm(p + "output.LayerNorm")
        heads = s["heads_of"]
        if "pooler" in heads:
            self.dense("pooler.dense", d, d)
        if "mlm" in heads:
            self.dense("cls.predictions.transform.dense", d, d)
            self.norm("cls.predictions.transform.LayerNorm")
            self.t["cls.predictions.bias"] = vector(rng, len(WORDS))
            if not s["tied"]:
                self.t["cls.predictions.decoder.weight"] = matrix(rng, len(WORDS), d, 1)
        if "next" in heads:
            self.dense("cls.seq_relationship", 2, d)
        if "classifier" in heads:
            self.dense("classifier", s["labels"], d)
        if "spans" in heads:
            self.dense("qa_outputs", 2, d)

    def dense(self, name, rows, columns, spread=0.5):
        self.t[name + ".weight"] = matrix(self.rng, rows, columns, spread)
        self.t[name + ".bias"] = vector(self.rng, rows)

    def norm(self, name):
        self.t[name + ".weight"] = vector(self.rng, self.s["d"], 1)
        self.t[name + ".bias"] = vector(self.rng, self.s["d"])

    def apply(self, name, x):
        return linear(x, self.t[name + ".weight"], self.t[name + ".bias"])

    def ln(self, name, x):
        return layer_norm(x, self.t[name + ".weight"], self.t[name + ".bias"], self.s["eps"])

    def run(self, ids, segments):
        """The last layer's vectors of all tokens."""
        t, s = self.t, self.s
        size = s["d"] // s["heads"]
        xs = []
        for position, (i, segment) in enumerate(zip(ids, segments)):
            parts = (t["embeddings.word_embeddings.weight"][i], t["embeddings.position_embeddings.weight"][position],
                     t["embeddings.token_type_embeddings.weight"][segment])
            xs.append(self.ln("embeddings.LayerNorm", [sum(each) for each in zip(*parts)]))
        for layer in range(s["layers"]):
            p = f"encoder.layer.{layer}."
            q, k, v = ([self.apply(p + "attention.self." + part, x) for x in xs] for part in ("query", "key", "value"))
            after = []
            for a, x in zip(q, xs):
                attended = []
                for h in range(0, s["d"], size):
                    weights = softmax([sum(a[h + j] * b[h + j] for j in range(size)) / math.sqrt(size) for b in k])
                    attended += [sum(w * b[h + j] for w, b in zip(weights, v)) for j in range(size)]
                out = self.apply(p + "attention.output.dense", attended)
                x = self.ln(p + "attention.output.LayerNorm", [y + z for y, z in zip(out, x)])
                inner = activate(s["act"], self.apply(p + "intermediate.dense", x))
                out = self.apply(p + "output.dense", inner)
                after.append(self.ln(p + "output.LayerNorm", [y + z for y, z in zip(out, x)]))
            xs = after
        return xs

    def log_probability(self, ids, segments, position):
        masked = ids[:position] + [4] + ids[position + 1:]
        x = self.run(masked, segments)[position]
        x = activate(self.s["act"], self.apply("cls.predictions.transform.dense", x))
        x = self.ln("cls.predictions.transform.LayerNorm", x)
        table = "cls.predictions.decoder.weight" if not self.s["tied"] else "embeddings.word_embeddings.weight"
        logits = linear(x, self.t[table], self.t["cls.predictions.bias"])
        top = max(logits)
        return logits[ids[position]] - top - math.log(sum(math.exp(v - top) for v in logits))

    def pooled(self, ids, segments):
        return [math.tanh(v) for v in self.apply("pooler.dense", self.run(ids, segments)[0])]

    def tensors(self):
        """As they are stored."""
        out = {}
        for name, values in self.t.items():
            if self.s["old"]:
                name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            own = name.startswith(("cls.", "classifier", "qa_outputs"))
            out[name if own else self.s["prefix"] + name] = values
        if self.s["stored_decoder"]:
            out["cls.predictions.decoder.weight"] = self.t["embeddings.word_embeddings.weight"]
            out["cls.predictions.decoder.bias"] = self.t["cls.predictions.bias"]
        return out


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in tensors.items():
        rows = values if isinstance(values[0], list) else [values]
        flat = [v for row in rows for v in row]
        shape = [len(values), len(values[0])] if isinstance(values[0], list) else [len(values)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(flat)]}
        data += struct.pack(f"<{len(flat)}f", *flat)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(folder, name, spec):
    model, s = Bert(name, spec), {**PLAIN, **spec}
    folder.mkdir(parents=True, exist_ok=True)
    classes = {"mlm": "BertForMaskedLM", "classifier": "BertForSequenceClassification", "spans": "BertForQuestionAnswering"}
    kind = next((classes[head] for head in s["heads_of"] if head in classes), "BertModel")
    config = {"architectures": ["BertForPreTraining" if "next" in s["heads_of"] else kind], "hidden_act": s["act"],
              "hidden_size": s["d"], "intermediate_size": s["inner"], "layer_norm_eps": s["eps"],
              "max_position_embeddings": 10, "model_type": "bert", "num_attention_heads": s["heads"],
              "num_hidden_layers": s["layers"], "position_embedding_type": "absolute",
              "type_vocab_size": s["segments"], "vocab_size": len(WORDS)}
    if not model.s["tied"]:
        config["tie_word_embeddings"] = False
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    write_safetensors(folder / "model.safetensors", model.tensors())
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    lines = [(ids, [min(segment, s["segments"] - 1) for segment in segments]) for ids, segments in LINES]
    if s["segments"] == 3:
        lines.append(([2, 5, 3, 6, 3, 7, 3], [0, 0, 0, 1, 1, 2, 2]))
    for file, part in (("tokens.txt", 0), ("segments.txt", 1)):
        (folder / file).write_text("".join(" ".join(map(str, line[part])) + "\n" for line in lines))
    golden, pooled, scores = [], [], []
    for number, (ids, segments) in enumerate(lines):
        if "mlm" in s["heads_of"]:
            golden += [f"{number}\t{position}\t{i}\t{model.log_probability(ids, segments, position)!r}\n"
                       for position, i in enumerate(ids) if i not in (2, 3)]
        row = []
        if "pooler" in s["heads_of"]:
            vector_of_text = model.pooled(ids, segments)
            pooled.append("\t".join([str(number), *map(repr, vector_of_text)]) + "\n")
            for head, tensor in (("classifier", "classifier"), ("next", "cls.seq_relationship")):
                if head in s["heads_of"]:
                    row = model.apply(tensor, vector_of_text)
        if "spans" in s["heads_of"]:
            both = [model.apply("qa_outputs", x) for x in model.run(ids, segments)]
            row = [score for part in (0, 1) for score in (pair[part] for pair in both)]
        if row:
            scores.append("\t".join([str(number), *map(repr, row)]) + "\n")
    for file, text in (("golden.tsv", golden), ("pooled.tsv", pooled), ("scores.tsv", scores)):
        if text:
            (folder / file).write_text("".join(text))


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for name, spec in VARIANTS.items():
        write(root / name, name, spec)


if __name__ == "__main__":
    main()
