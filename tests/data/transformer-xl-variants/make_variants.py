#!/usr/bin/env python3
"""Writes the checkpoints of this folder: Transformer-XL language models with random weights, saved as
kimiyoung/transformer-xl (whole modules: folders kimi-*) and Hugging Face's TransfoXL (folders hf-*: config.json,
weights, vocabulary) save theirs, with log-probabilities in float64. The network is written here from the equations
of Dai et al. 2019 (section 3.3 and appendix), one token after the other, keys and values recomputed from the
memory; check_with_transformers.py compares the hf-* folders with Hugging Face's own classes. Shares nothing with
kinglet. Needs PyTorch (made with 1.13: Debian's python3-torch).

    python3 make_variants.py          writes beside itself
"""
import collections
import json
import math
import os
import pickle
import sys

import torch

DOUBLE = torch.float64
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, named_class, write_answers, write_safetensors  # noqa: E402

CLASSES = {name: named_class("mem_transformer", name, torch.nn.Module) for name in (
    "MemTransformerLM", "AdaptiveEmbedding", "RelPartialLearnableDecoderLayer", "RelPartialLearnableMultiHeadAttn",
    "PositionwiseFF", "PositionalEmbedding")}
ProjectedAdaptiveLogSoftmax = named_class("proj_adaptive_softmax", "ProjectedAdaptiveLogSoftmax", torch.nn.Module)
Vocab = named_class("vocabulary", "Vocab")
# The legacy stream carries the source text of classes: a placeholder stands for it here.
torch.serialization.get_source_lines_and_file = lambda _: (["source text\n"], 1, "source.py")


class Shape:
    """One network. ties: for each bin None (no projection), True (the embedding's) or False (its own)."""
    def __init__(self, words, cutoffs, d, e, heads, head_size, inner, layers, mem_len, div_val=1, ties=None, tied=True,
                 same_length=True, clamp_len=-1, pre_lnorm=False, untie_r=False, zero_start=False, eps=1e-5,
                 forward_clusters=False, scale=1.0):
        self.__dict__.update(locals())
        del self.__dict__["self"]
        bounds = [0] + cutoffs + [words]
        self.bins = list(zip(bounds, bounds[1:]))
        self.ties = ties if ties is not None else [None] * len(self.bins)


def weights(shape, generator, dtype):
    """The state dict by kimiyoung's names; what is tied is one tensor under two names."""
    s, state = shape, collections.OrderedDict()

    def made(*size):
        scale = 1.2 / math.sqrt(size[-1]) if len(size) == 2 else 0.3
        return (torch.randn(size, generator=generator) * scale).to(dtype)

    def gain():
        return (1 + 0.2 * torch.randn(s.d, generator=generator)).to(dtype)

    widths = [s.e // s.div_val ** b for b in range(len(s.bins))]
    if s.div_val == 1:
        state["word_emb.emb_layers.0.weight"] = made(s.words, s.e)
        if s.d != s.e:
            state["word_emb.emb_projs.0"] = made(s.d, s.e)
    else:
        for b, (first, last) in enumerate(s.bins):
            state["word_emb.emb_layers.%d.weight" % b] = made(last - first, widths[b])
            state["word_emb.emb_projs.%d" % b] = made(s.d, widths[b])
    state["pos_emb.inv_freq"] = 1 / (10000 ** (torch.arange(0.0, s.d, 2.0) / s.d))
    state["pos_emb.inv_freq"] = state["pos_emb.inv_freq"].to(dtype)
    for u in ("r_w_bias", "r_r_bias"):
        if not s.untie_r:
            state[u] = made(s.heads, s.head_size)
    hd = s.heads * s.head_size
    for i in range(s.layers):
        layer = "layers.%d." % i
        for u in ("r_w_bias", "r_r_bias"):
            if s.untie_r:
                state[layer + "dec_attn." + u] = made(s.heads, s.head_size)
        state[layer + "dec_attn.qkv_net.weight"] = made(3 * hd, s.d)
        state[layer + "dec_attn.o_net.weight"] = made(s.d, hd)
        state[layer + "dec_attn.layer_norm.weight"], state[layer + "dec_attn.layer_norm.bias"] = gain(), made(s.d)
        state[layer + "dec_attn.r_net.weight"] = made(hd, s.d)
        state[layer + "pos_ff.CoreNet.0.weight"], state[layer + "pos_ff.CoreNet.0.bias"] = made(s.inner, s.d), made(s.inner)
        state[layer + "pos_ff.CoreNet.3.weight"], state[layer + "pos_ff.CoreNet.3.bias"] = made(s.d, s.inner), made(s.d)
        state[layer + "pos_ff.layer_norm.weight"], state[layer + "pos_ff.layer_norm.bias"] = gain(), made(s.d)
    if s.cutoffs:
        state["crit.cluster_weight"], state["crit.cluster_bias"] = made(len(s.cutoffs), s.e), made(len(s.cutoffs))
    for b, (first, last) in enumerate(s.bins):
        if s.div_val == 1 and b > 0:
            continue
        size = s.words if s.div_val == 1 else last - first
        table = "word_emb.emb_layers.%d.weight" % b
        state["crit.out_layers.%d.weight" % b] = state[table] if s.tied else made(size, widths[b])
        state["crit.out_layers.%d.bias" % b] = made(size)
    for b, tie in enumerate(s.ties):
        if tie is not None:
            source = "word_emb.emb_projs.%d" % (0 if s.div_val == 1 else b)
            state["crit.out_projs.%d" % b] = state[source] if tie else made(s.d, widths[b])
    return state


def norm(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + eps) * gain + bias


def embedding(s, w, word):
    for b, (first, last) in enumerate(s.bins):
        if first <= word < last:
            bin_, row = (0, word) if s.div_val == 1 else (b, word - first)
            x = w["word_emb.emb_layers.%d.weight" % bin_][row]
            projection = w.get("word_emb.emb_projs.%d" % bin_)
            return math.sqrt(s.d) * (x if projection is None else projection @ x)


def layer_output(s, w, i, inputs):
    """inputs: what the layer sees, the token itself last: [n, d]."""
    at = "layers.%d." % i
    attention, forward = at + "dec_attn.", at + "pos_ff."
    seen = inputs
    if s.pre_lnorm:
        seen = norm(seen, w[attention + "layer_norm.weight"], w[attention + "layer_norm.bias"], s.eps)
    wq, wk, wv = w[attention + "qkv_net.weight"].chunk(3, 0)
    n, h, k = len(seen), s.heads, s.head_size
    q, keys, values = (wq @ seen[-1]).view(h, k), (seen @ wk.t()).view(n, h, k), (seen @ wv.t()).view(n, h, k)
    distance = torch.arange(n - 1, -1, -1, dtype=DOUBLE)
    if s.clamp_len > 0:
        distance = distance.clamp(max=s.clamp_len)
    angles = distance[:, None] * w["pos_emb.inv_freq"][None]
    r = (torch.cat([angles.sin(), angles.cos()], 1) @ w[attention + "r_net.weight"].t()).view(n, h, k)
    own = attention if s.untie_r else ""
    content, position = q + w[own + "r_w_bias"], q + w[own + "r_r_bias"]
    scores = (torch.einsum("hk,nhk->hn", content, keys) + torch.einsum("hk,nhk->hn", position, r)) / math.sqrt(k)
    attended = torch.einsum("hn,nhk->hk", torch.softmax(scores, 1), values).reshape(-1)
    x = inputs[-1] + w[attention + "o_net.weight"] @ attended
    if not s.pre_lnorm:
        x = norm(x, w[attention + "layer_norm.weight"], w[attention + "layer_norm.bias"], s.eps)
    inner = norm(x, w[forward + "layer_norm.weight"], w[forward + "layer_norm.bias"], s.eps) if s.pre_lnorm else x
    inner = torch.relu(w[forward + "CoreNet.0.weight"] @ inner + w[forward + "CoreNet.0.bias"])
    x = x + w[forward + "CoreNet.3.weight"] @ inner + w[forward + "CoreNet.3.bias"]
    return x if s.pre_lnorm else norm(x, w[forward + "layer_norm.weight"], w[forward + "layer_norm.bias"], s.eps)


def log_probabilities(s, w, hidden):
    def logits(b, extra_weight=None, extra_bias=None):
        first, last = s.bins[b]
        own = (lambda t: t[first:last]) if s.div_val == 1 else (lambda t: t)
        layer = "crit.out_layers.%d." % (0 if s.div_val == 1 else b)
        weight, bias = own(w[layer + "weight"]), own(w[layer + "bias"])
        if extra_weight is not None:
            weight, bias = torch.cat([weight, extra_weight]), torch.cat([bias, extra_bias])
        projection = w.get("crit.out_projs.%d" % b)
        return weight @ (hidden if projection is None else projection.t() @ hidden) + bias

    if not s.cutoffs:
        return torch.log_softmax(logits(0), 0)
    head = torch.log_softmax(logits(0, w["crit.cluster_weight"], w["crit.cluster_bias"]), 0)
    out = [head[:s.cutoffs[0]]]
    for b in range(1, len(s.bins)):
        cluster = head[s.cutoffs[0] + b - 1] if s.forward_clusters else head[-b]
        out.append(cluster + torch.log_softmax(logits(b), 0))
    return torch.cat(out)


def run(s, state, ids):
    """Log-probabilities of the word after each token: [tokens, words]."""
    w = {key: value.to(DOUBLE) for key, value in state.items()}
    before = s.mem_len - 1 if s.same_length else s.mem_len
    zeros = [torch.zeros(s.d, dtype=DOUBLE)] * (before if s.zero_start else 0)
    memories, all_ = [list(zeros) for _ in range(s.layers)], []
    for word in ids:
        x = embedding(s, w, word)
        for i in range(s.layers):
            seen = memories[i][len(memories[i]) - min(before, len(memories[i])):] + [x]
            memories[i].append(x)
            x = layer_output(s, w, i, torch.stack(seen))
        all_.append(log_probabilities(s, w, x))
    return torch.stack(all_)


def nested(state, prefix):
    """The tensors below a prefix as modules; tensors that share in the state dict share a Parameter."""
    def parameter(tensor):
        if id(tensor) not in PARAMETERS:
            PARAMETERS[id(tensor)] = torch.nn.Parameter(tensor)
        return PARAMETERS[id(tensor)]

    module, below = torch.nn.Module(), collections.OrderedDict()
    for key, tensor in state.items():
        if not key.startswith(prefix):
            continue
        name = key[len(prefix):]
        if "." in name:
            below.setdefault(name.split(".")[0], None)
        else:
            module.register_parameter(name, parameter(tensor))
    for name in below:
        module.add_module(name, nested(state, prefix + name + "."))
    return module


PARAMETERS = {}


def as_class(module, kind, **attributes):
    module.__class__ = kind
    for name, value in attributes.items():
        setattr(module, name, value)
    return module


def whole_module(s, state, none_as_parameter):
    PARAMETERS.clear()
    model = nested(state, "")
    as_class(model, CLASSES["MemTransformerLM"], n_token=s.words, d_embed=s.e, d_model=s.d, n_head=s.heads,
             d_head=s.head_size, n_layer=s.layers, tgt_len=5, mem_len=s.mem_len, ext_len=0, max_klen=5 + s.mem_len,
             attn_type=0, sample_softmax=-1, same_length=s.same_length, clamp_len=s.clamp_len)
    ends = [0] + s.cutoffs + [s.words]
    as_class(model.word_emb, CLASSES["AdaptiveEmbedding"], n_token=s.words, d_embed=s.e, d_proj=s.d, div_val=s.div_val,
             cutoffs=s.cutoffs + [s.words], cutoff_ends=ends, emb_scale=s.d ** 0.5)
    as_class(model.crit, ProjectedAdaptiveLogSoftmax, n_token=s.words, d_embed=s.e, d_proj=s.d, div_val=s.div_val,
             cutoffs=s.cutoffs + [s.words], cutoff_ends=ends, shortlist_size=ends[1], n_clusters=len(s.cutoffs),
             head_size=ends[1] + len(s.cutoffs), keep_order=False)
    if not hasattr(model.crit, "out_projs"):
        model.crit.add_module("out_projs", torch.nn.ParameterList())
    for b, tie in enumerate(s.ties):
        if tie is None and none_as_parameter:  # as PyTorch <= 1.11 has it
            model.crit.out_projs._parameters[str(b)] = None
        elif tie is None:
            model.crit.out_projs.__dict__[str(b)] = None
    frequencies = model.pos_emb._parameters.pop("inv_freq").data
    as_class(model.pos_emb, CLASSES["PositionalEmbedding"], demb=s.d)
    model.pos_emb.register_buffer("inv_freq", frequencies)
    for layer in model.layers.children():
        as_class(layer, CLASSES["RelPartialLearnableDecoderLayer"])
        as_class(layer.dec_attn, CLASSES["RelPartialLearnableMultiHeadAttn"], n_head=s.heads, d_model=s.d,
                 d_head=s.head_size, dropout=0.1, scale=1 / s.head_size ** 0.5, pre_lnorm=s.pre_lnorm)
        as_class(layer.pos_ff, CLASSES["PositionwiseFF"], d_model=s.d, d_inner=s.inner, dropout=0.1,
                 pre_lnorm=s.pre_lnorm)
        for module in (layer.dec_attn.layer_norm, layer.pos_ff.layer_norm):
            as_class(module, torch.nn.LayerNorm, normalized_shape=(s.d,), eps=s.eps, elementwise_affine=True)
    return model


def kimi(name, shape, zip_file=False, dtype=torch.float32, config=None, saved=None, count=60):
    """saved: attributes of the module where they differ from the network evaluated (then config overrides them)."""
    folder = os.path.join(HERE, "kimi-" + name)
    os.makedirs(folder, exist_ok=True)
    state = weights(shape, torch.Generator().manual_seed(sum(map(ord, name))), dtype)
    ids = ids_of(shape.words, count)
    write_answers(folder, ids, run(shape, state, ids))
    model = whole_module(shape, state, none_as_parameter=not zip_file)
    for key, value in (saved or {}).items():
        setattr(model, key, value)
    torch.save(model, folder + "/model.pt", _use_new_zipfile_serialization=zip_file)
    if config:
        with open(folder + "/eval.yaml", "w") as out:
            out.write(config)


def stored(tensor):
    codes = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.float64: "F64"}
    words = tensor.contiguous().view(torch.int16) if tensor.element_size() == 2 else tensor.contiguous()
    return codes[tensor.dtype], tensor.shape, words.numpy().tobytes()


def hugging_face(name, shape, container, omit=False, vocabulary=None, dtype=torch.float32, count=60, extra=None):
    """container: "bin", "safetensors" or "shards". omit: what is tied is written once. vocabulary: "pkl" or "bin"."""
    s = shape
    folder = os.path.join(HERE, "hf-" + name)
    os.makedirs(folder, exist_ok=True)
    state = weights(s, torch.Generator().manual_seed(sum(map(ord, name))), dtype)
    ids = ids_of(s.words, count)
    write_answers(folder, ids, run(s, state, ids))
    saved = collections.OrderedDict()
    for key, tensor in state.items():
        tied = key.startswith("crit.out_") and any(tensor is other for k, other in state.items() if k != key)
        if not (omit and tied):
            saved[key if key.startswith("crit.") else "transformer." + key] = tensor
        if key in ("r_w_bias", "r_r_bias") and not omit:  # each layer refers to the pair of all
            for i in range(s.layers):
                saved["transformer.layers.%d.dec_attn.%s" % (i, key)] = tensor
    config = {"adaptive": True, "architectures": ["TransfoXLLMHeadModel"], "attn_type": 0, "clamp_len": s.clamp_len,
              "cutoffs": s.cutoffs, "d_embed": s.e, "d_head": s.head_size, "d_inner": s.inner, "d_model": s.d,
              "div_val": s.div_val, "dropatt": 0.0, "dropout": 0.1, "eos_token_id": 0, "init": "normal",
              "layer_norm_epsilon": s.eps, "mem_len": s.mem_len, "model_type": "transfo-xl", "n_head": s.heads,
              "n_layer": s.layers, "pre_lnorm": s.pre_lnorm, "same_length": s.same_length, "sample_softmax": -1,
              "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 250}},
              "tie_word_embeddings": s.tied, "tie_projs": [bool(t) for t in s.ties], "untie_r": s.untie_r,
              "vocab_size": s.words}
    config.update(extra or {})
    with open(folder + "/config.json", "w") as out:
        json.dump({k: v for k, v in config.items() if v is not None}, out, indent=2, sort_keys=True)
        out.write("\n")
    if container == "bin":
        torch.save(saved, folder + "/pytorch_model.bin", _use_new_zipfile_serialization=False)
    elif container == "safetensors":
        write_safetensors(folder + "/model.safetensors", {key: stored(tensor) for key, tensor in saved.items()})
    else:
        keys = list(saved)
        places = {}
        for i, part in enumerate((keys[:len(keys) // 2], keys[len(keys) // 2:])):
            file = "pytorch_model-%05d-of-00002.bin" % (i + 1)
            torch.save({key: saved[key] for key in part}, folder + "/" + file)
            places.update({key: file for key in part})
        with open(folder + "/pytorch_model.bin.index.json", "w") as out:
            json.dump({"metadata": {"total_size": 0}, "weight_map": places}, out, indent=1)
    if vocabulary:
        words = ["<eos>"] + ["w%d" % i for i in range(1, s.words - 1)] + ["caf\u00e9"]
        attributes = {"counter": collections.Counter(words[1:4]), "special": ["<eos>"], "min_freq": 0, "max_size": None,
                      "lower_case": False, "delimiter": None, "vocab_file": None, "idx2sym": words,
                      "sym2idx": collections.OrderedDict((w, i) for i, w in enumerate(words))}
        if vocabulary == "pkl":
            with open(folder + "/vocab.pkl", "wb") as out:
                pickle.dump(attributes, out, protocol=4)
        else:
            torch.save(attributes, folder + "/vocab.bin")


def main():
    kimi("base", Shape(51, [9, 20, 40], 16, 16, 2, 8, 16, 2, 12, clamp_len=7))
    kimi("divided-pre-norm-zip", Shape(57, [15, 30], 18, 24, 3, 5, 12, 2, 10, div_val=2, ties=[False, True, False],
                                       pre_lnorm=True, clamp_len=6), zip_file=True)
    kimi("projected", Shape(50, [12, 30], 14, 10, 2, 7, 17, 1, 9, ties=[True, False, True], same_length=False))
    kimi("untied", Shape(48, [10, 22], 16, 16, 4, 3, 16, 1, 11, div_val=4, ties=[False, False, False], tied=False,
                         clamp_len=30))
    kimi("plain-softmax", Shape(33, [], 12, 12, 1, 12, 19, 2, 1, same_length=False))
    kimi("plain-projected", Shape(29, [], 10, 6, 2, 4, 9, 1, 8, ties=[True]))
    kimi("untied-words-whole-table", Shape(40, [8, 25], 12, 12, 3, 4, 11, 1, 6, tied=False, pre_lnorm=True),
         zip_file=True)
    kimi("halves", Shape(45, [10], 8, 8, 2, 4, 16, 2, 7), dtype=torch.float16)
    kimi("evaluated-longer", Shape(37, [10], 8, 8, 2, 4, 12, 2, 20, clamp_len=9), saved=dict(
        mem_len=5, clamp_len=-1, same_length=False), config="mem_len: 20\nclamp_len: 9\nsame_length: true\n")
    kimi("smallest", Shape(2, [], 2, 2, 1, 1, 1, 1, 1))

    hugging_face("published", Shape(60, [10, 35], 16, 16, 2, 8, 24, 2, 14, div_val=4, ties=[False, True, True],
                                    clamp_len=8, untie_r=True, zero_start=True, forward_clusters=True), "bin",
                 vocabulary="bin")
    hugging_face("published-omitted-safetensors",
                 Shape(50, [10, 25, 40], 16, 24, 2, 7, 14, 2, 9, div_val=2, ties=[False, True, True, True], clamp_len=5,
                       zero_start=True, forward_clusters=True, same_length=False, eps=1e-3), "safetensors", omit=True,
                 vocabulary="pkl")
    hugging_face("pre-norm-shards", Shape(50, [12, 30], 12, 12, 3, 6, 15, 2, 10, ties=None, pre_lnorm=True,
                                          untie_r=True, zero_start=True, forward_clusters=True), "shards", omit=True)
    hugging_face("projected-bfloat16", Shape(44, [11, 30], 12, 8, 2, 5, 14, 1, 7, ties=[False, True, True],
                                             untie_r=True, zero_start=True, forward_clusters=True), "safetensors", omit=True,
                 dtype=torch.bfloat16, extra={"tie_projs": None})
    hugging_face("plain-untied", Shape(31, [], 10, 10, 2, 6, 12, 2, 6, tied=False, zero_start=True, clamp_len=3,
                                       forward_clusters=True), "bin")


if __name__ == "__main__":
    main()
