#!/usr/bin/env python3
"""Writes the checkpoints of this folder: language models with random weights, laid out as icefall,
ESPnet and SpeechBrain save them (names of tensors, containers, configurations, token lists), with
the log-probabilities that the published equations give in float64 (networks.py). Shares nothing with
the toolkits or kinglet, and needs nothing but Python.

    python3 make_variants.py          writes beside itself

Each folder: the checkpoint, what its toolkit leaves beside it, tokens.txt (ids; for icefall ids.txt) and
    golden_f64.tsv        position, id, log-probability, from the start token on
    sentences.txt         ids of a sentence a line
    golden_sentences.tsv  sentence, scored tokens, sum of negative log-probabilities
"""
import collections
import os
import pathlib
import random
import struct

import networks
from torch_save import Tensor, save

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, TOKENS = 13, 48


class Variant:
    """Collects the tensors of one network and writes its folder."""

    def __init__(self, name):
        self.name, self.random = name, random.Random(name)
        self.tensors = collections.OrderedDict()  # as saved
        self.values = {}                          # as networks.py reads them

    def add(self, name, *shape, low=-0.6, high=0.6):
        count = 1
        for n in shape:
            count *= n
        flat = [networks.single(self.random.uniform(low, high)) for _ in range(count)]
        self.put(name, shape, flat)

    def put(self, name, shape, flat, read_as=None):
        self.tensors[name] = Tensor(shape, flat)
        rows = shape[-2:] if len(shape) > 2 else shape
        if len(rows) == 2:
            value = [flat[i * rows[1]:(i + 1) * rows[1]] for i in range(rows[0])]
        else:
            value = flat if rows else flat[0]
        self.values[read_as or name] = value

    def linear(self, name, out, inputs):
        self.add(name + ".weight", out, inputs)
        self.add(name + ".bias", out)

    def norm(self, name, width):
        self.add(name + ".weight", width, low=0.7, high=1.3)
        self.add(name + ".bias", width, low=-0.3, high=0.3)

    def recurrent(self, prefix, gates, units, inputs, layers):
        for layer in range(layers):
            for what, columns in (("ih", inputs if layer == 0 else units), ("hh", units)):
                self.add(f"{prefix}weight_{what}_l{layer}", gates * units, columns)
                self.add(f"{prefix}bias_{what}_l{layer}", gates * units)

    def copy(self, name, other):
        """An equal tensor in a storage of its own."""
        tensor = self.tensors[other]
        self.put(name, tensor.shape, list(tensor.values))

    def tie(self, name, other):
        """One storage under two names."""
        tensor = self.tensors[other]
        self.put(name, tensor.shape, tensor.values)

    def path(self, name):
        path = os.path.join(HERE, self.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def golden(self, network, start, end, specials=(), ids_name="tokens.txt"):
        words = [i for i in range(WORDS) if i != start]
        ids = [self.random.choice(words) for _ in range(TOKENS)]
        for position, token in specials:
            ids[position] = token
        rows = network(self.values, [start] + ids[:-1])
        self.write(ids_name, " ".join(map(str, ids)) + "\n")
        self.write("golden_f64.tsv", "".join(
            f"{i}\t{token}\t{row[token]!r}\n" for i, (token, row) in enumerate(zip(ids, rows))))
        cuts = [0, 1, 8, 8, 20, 37]  # a sentence of one token, and one of none
        sentences = [ids[a:b] for a, b in zip(cuts, cuts[1:])]
        self.write("sentences.txt", "".join(" ".join(map(str, s)) + "\n" for s in sentences))
        lines = []
        for i, sentence in enumerate(sentences):
            rows = network(self.values, [start] + sentence)
            loss = -sum(row[token] for row, token in zip(rows, sentence + [end]))
            lines.append(f"{i}\t{len(sentence) + 1}\t{loss!r}\n")
        self.write("golden_sentences.tsv", "".join(lines))


def numbered(words=WORDS):
    return ["<blk>", "<sos/eos>", "<unk>"] + [f"\u2581w{i}" for i in range(3, words)]


# --- icefall

def icefall_tokens(v, extra=()):
    tokens = numbered() + list(extra)
    v.write("lang_bpe_13/tokens.txt", "".join(f"{t} {i}\n" for i, t in enumerate(tokens)))


def icefall_rnn(name, tied, width, parameters, file, end=1):
    v = Variant(name)
    v.add("input_embedding.weight", WORDS, width)
    v.recurrent("rnn.", 4, 8, width, 2)
    if tied:
        v.tie("output_linear.weight", "input_embedding.weight")
    else:
        v.add("output_linear.weight", WORDS, 8)
    v.add("output_linear.bias", WORDS)
    saved = collections.OrderedDict(v.tensors)
    if tied:  # Adam's state
        state = {0: {"step": 7, "exp_avg": Tensor((2, 2), [0.5, float("nan"), 1.0, 2.0])}}
        optimizer = {"state": state, "param_groups": [{"lr": 0.001, "params": [0]}]}
        saved = {"model": saved, "optimizer": optimizer, "scheduler": None, "grad_scaler": None,
                 "sampler": None, "exp_dir": pathlib.PosixPath("rnn_lm/exp"),
                 "env_info": {"k2-version": "1.24"}, "vocab_size": WORDS, **parameters}
    else:
        saved = {"model": saved, **parameters}
    save(saved, v.path(file))
    icefall_tokens(v, extra=["#0", "#1"])
    start = parameters.get("sos_id", 1)

    def network(w, ids):
        return networks.recurrent(w, ids, "lstm", 2, "input_embedding.weight", "rnn.",
                                  "output_linear")
    v.golden(network, start, end, ids_name="ids.txt")


def icefall_transformer(name):
    v = Variant(name)
    d, heads, inner, embedded = 8, 2, 10, 6

    def scaled(prefix, out, inputs, bias=True):
        v.add(prefix + ".weight", out, inputs)
        v.add(prefix + ".weight_scale", low=-0.3, high=0.3)
        if bias:
            v.add(prefix + ".bias", out)
            v.add(prefix + ".bias_scale", low=-0.3, high=0.3)

    v.add("input_embedding.weight", WORDS, embedded)
    scaled("encoder.embed", d, embedded)
    v.add("encoder.norm_before.eps", low=-2, high=0)
    for layer in range(2):
        p = f"encoder.encoder.layers.{layer}."
        scaled(p + "self_attn.in_proj", 3 * d, d)
        scaled(p + "self_attn.out_proj", d, d)
        scaled(p + "self_attn.linear_pos", d, d, bias=False)
        for bias in ("pos_bias_u", "pos_bias_v"):
            v.add(p + "self_attn." + bias, heads, d // heads)
            v.add(p + "self_attn." + bias + "_scale", low=-0.3, high=0.3)
        scaled(p + "feed_forward.0", inner, d)
        scaled(p + "feed_forward.4", d, inner)
        v.add(p + "norm_final.eps", low=-2, high=0)
    v.linear("output_linear", WORDS, d)
    save({"model": v.tensors}, v.path("pretrained.pt"))
    icefall_tokens(v)
    v.golden(lambda w, ids: networks.icefall_transformer(w, ids, 2, heads), 1, 1,
             ids_name="ids.txt")


# --- ESPnet

def espnet_config(v, lm, options):
    tokens = ["<blank>", "<unk>", "'on'", "'1'", "''''"] + [f"\u2581w{i}" for i in range(5, WORDS - 1)]
    text = "optim: adam\nbest_model_criterion:\n-   - valid\n    - loss\n    - min\nbeta:\n- 0.9\n"
    text += f"lm: {lm}\nlm_conf:" + ("".join(f"\n    {k}: {o}" for k, o in options) or " {}") + "\n"
    v.write("config.yaml", text + "token_list:\n" + "".join(f"- {t}\n" for t in tokens + ["<sos/eos>"]))


def espnet_rnn(name, kind, options, units, tied=False):
    v = Variant(name)
    gates = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}[kind]
    v.add("lm.encoder.weight", WORDS, units)
    v.recurrent("lm.rnn.", gates, units, units, 2)
    if tied:
        v.copy("lm.decoder.weight", "lm.encoder.weight")
    else:
        v.add("lm.decoder.weight", WORDS, units)
    v.add("lm.decoder.bias", WORDS)
    save(v.tensors, v.path("valid.loss.ave_2best.pth"))
    espnet_config(v, "seq_rnn", options)

    def network(w, ids):
        return networks.recurrent(w, ids, kind, 2, "lm.encoder.weight", "lm.rnn.", "lm.decoder")
    v.golden(network, WORDS - 1, WORDS - 1)


def espnet_transformer(name, positions, names, stored, options, layers=2):
    v = Variant(name)
    d, embedded, inner, heads = 8, 6, 10, 2
    embed, after = names
    v.add("lm.embed.weight", WORDS, embedded)
    v.linear(f"lm.encoder.{embed}.0", d, embedded)
    v.norm(f"lm.encoder.{embed}.1", d)
    if stored:
        v.add(f"lm.encoder.{embed}.4.pe", 1, 5, d)
    for layer in range(layers):
        p = f"lm.encoder.encoders.{layer}."
        for c in ("q", "k", "v", "out"):
            v.linear(p + "self_attn.linear_" + c, d, d)
        v.linear(p + "feed_forward.w_1", inner, d)
        v.linear(p + "feed_forward.w_2", d, inner)
        v.norm(p + "norm1", d)
        v.norm(p + "norm2", d)
    v.norm("lm.encoder." + after, d)
    v.linear("lm.decoder", WORDS, d)
    save(v.tensors, v.path("3epoch.pth"))
    espnet_config(v, "transformer",
                  [("embed_unit", embedded), ("att_unit", d), ("unit", inner), ("layer", layers)]
                  + options)
    v.golden(lambda w, ids: networks.espnet_transformer(w, ids, layers, heads, positions, names),
             WORDS - 1, WORDS - 1, specials=[(0, 0), (5, 0), (30, 0)])


# --- SpeechBrain

def sentence_pieces(tokens):
    """A SentencePiece model: pieces with a score and, of the first, a type; then other fields."""
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data

    data = b""
    for i, token in enumerate(tokens):
        piece = field(1, token.encode()) + b"\x15" + struct.pack("<f", -i)
        data += field(1, piece + (b"\x18\x02" if i == 0 else b""))
    return data + field(2, b"\x20\x01")


def speechbrain_files(v, hyper, folder=""):
    v.write("hyperparams.yaml", hyper)
    with open(v.path(folder + "tokenizer.ckpt"), "wb") as file:
        file.write(sentence_pieces(["<unk>"] + [f"\u2581w{i}" for i in range(1, WORDS)]))


def speechbrain_rnn(name, kind, hyper, activation, blocks, units, dense, embedded, file):
    v = Variant(name)
    gates = {"lstm": 4, "gru": 3, "relu": 1}[kind]
    v.add("embedding.Embedding.weight", WORDS, embedded)
    v.recurrent("rnn.rnn.", gates, units, embedded, 2)
    names, width = [], units
    for block in range(blocks):
        number = f"_{block - 1}" if block else ""
        names.append((f"dnn.linear{number}.w", f"dnn.norm{number}.norm"))
        v.linear(names[-1][0], dense, width)
        v.norm(names[-1][1], dense)
        width = dense
    v.linear("out.w", WORDS, width)
    save(v.tensors, v.path(file))
    speechbrain_files(v, hyper, os.path.dirname(file) + "/" if "/" in file else "")

    def network(w, ids):
        return networks.recurrent(w, ids, kind, 2, "embedding.Embedding.weight", "rnn.rnn.",
                                  "out.w", names, activation)
    v.golden(network, 0, 0)


def speechbrain_transformer(name, hyper, activation, pre_norm, embedded, specials):
    v = Variant(name)
    d, heads, inner, layers = 8, 2, 10, 2
    v.add("custom_src_module.emb.Embedding.weight", WORDS, embedded)
    if embedded != d:
        v.linear("embedding_proj.w", d, embedded)
    v.add("positional_encoding.pe", 1, 60, d)
    for layer in range(layers):
        p = f"encoder.layers.{layer}."
        v.add(p + "self_att.att.in_proj_weight", 3 * d, d)
        v.add(p + "self_att.att.in_proj_bias", 3 * d)
        v.linear(p + "self_att.att.out_proj", d, d)
        v.linear(p + "pos_ffn.ffn.0", inner, d)
        v.linear(p + "pos_ffn.ffn.3", d, inner)
        v.norm(p + "norm1.norm", d)
        v.norm(p + "norm2.norm", d)
    v.norm("encoder.norm.norm", d)
    v.linear("output_proj.layers.0.w", d, d)
    v.norm("output_proj.layers.1.norm", d)
    v.linear("output_proj.layers.2.w", WORDS, d)
    save(v.tensors, v.path("lm.ckpt"))
    speechbrain_files(v, hyper)
    v.golden(lambda w, ids: networks.speechbrain_transformer(w, ids, layers, heads, pre_norm,
                                                             activation), 1, 2, specials=specials)


RNN_BY_REFERENCE = """# as its author wrote it
output_neurons: 13
bos_index: 0
eos_index: 0
activation: !name:torch.nn.Tanh
units: !ref <rnn_neurons>
rnn_neurons: 8
__set_seed: !apply:torch.manual_seed [1986]
model: !new:speechbrain.lobes.models.RNNLM.RNNLM
    output_neurons: !ref <output_neurons>
    embedding_dim: 6
    activation: !ref <activation>
    rnn_class: !name:speechbrain.nnet.RNN.GRU
    rnn_neurons: !ref <units>
    dnn_blocks: 2
    dnn_neurons: 10
modules:
    model: !ref <model>
"""
RNN_RESOLVED = """# as a training saved it
bos_index: &id003 0
eos_index: *id003
rnn_class: &id001 !name:speechbrain.nnet.RNN.RNN
modules:
  model: &id002 !new:speechbrain.lobes.models.RNNLM.RNNLM

    output_neurons: 13
    rnn_class: *id001
    embedding_dim: 8
lm: *id002
"""
TRANSFORMER_PRE = """bos_index: 1
eos_index: 2
lm_model: !new:speechbrain.lobes.models.transformer.TransformerLM.TransformerLM
    vocab: 13
    d_model: 8
    d_embedding: 6
    nhead: 2
    num_encoder_layers: 2
    num_decoder_layers: 0
    d_ffn: 10
    activation: !name:torch.nn.SiLU
    normalize_before: True
    max_length: 60
"""
TRANSFORMER_POST = """bos_index: 1
eos_index: 2
normalize_before: False
heads: 2
lm_model: !new:speechbrain.lobes.models.transformer.TransformerLM.TransformerLM
    vocab: 13
    d_model: 8
    nhead: !ref <heads>
    activation: !name:torch.nn.GELU
    normalize_before: !ref <normalize_before>
"""


def main():
    icefall_rnn("icefall-rnn-tied", True, 8, {"sos_id": 1, "eos_id": 1, "num_layers": 2},
                "epoch-7.pt")
    icefall_rnn("icefall-rnn-untied-sos-2", False, 6, {"sos_id": 2, "eos_id": 3}, "checkpoint-90.pt",
                end=3)
    icefall_transformer("icefall-transformer")
    espnet_rnn("espnet-rnn-gru-averaged", "gru", [("unit", 8), ("rnn_type", "GRU"), ("tie_weights", "true")],
               8, tied=True)
    espnet_rnn("espnet-rnn-lstm", "lstm", [("unit", 6), ("nhid", "null")], 6)
    espnet_rnn("espnet-rnn-tanh", "tanh", [("unit", 6), ("rnn_type", "rnn_tanh")], 6)
    espnet_rnn("espnet-rnn-relu", "relu", [("unit", 6), ("rnn_type", "RNN_RELU")], 6)
    espnet_transformer("espnet-transformer", False, ("embed", "after_norm"), False,
                       [("pos_enc", "null")])
    espnet_transformer("espnet-transformer-sinusoidal-old-names", True, ("input_layer", "norm"), True,
                       [("pos_enc", "sinusoidal"), ("head", 2)])
    speechbrain_rnn("speechbrain-rnn-gru-references", "gru", RNN_BY_REFERENCE, "Tanh", 2, 8, 10, 6,
                    "save/CKPT+2024/model.ckpt")
    speechbrain_rnn("speechbrain-rnn-relu-resolved", "relu", RNN_RESOLVED, "LeakyReLU", 1, 8, 10, 8,
                    "lm.ckpt")
    speechbrain_transformer("speechbrain-transformer-pre", TRANSFORMER_PRE, "SiLU", True, 6,
                            [(3, 0), (20, 0)])
    speechbrain_transformer("speechbrain-transformer-post", TRANSFORMER_POST, "GELU", False, 8,
                            [(3, 0), (20, 0)])


if __name__ == "__main__":
    main()
