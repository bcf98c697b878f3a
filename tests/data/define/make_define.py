#!/usr/bin/env python3
"""Writes this folder: DeFINE units with random weights and the tables that PyTorch's own functions give for them in
float64. Shares nothing with kinglet. Needs numpy and PyTorch (made with 1.13: Debian's python3-torch).

    python3 make_define.py          writes beside itself

unit_*.npy: one flat float64 array: the map [35, 12], each layer's weight, bias, norm gain and norm offset where it has
them (all float32 numbers), then the table [35, m]. tests/converters/passes/define/define_table_test.cc declares the
same units.
awd.pt, delight_*.pt, plain.pt: state dicts with the names of pranavajitnair/DeFINE-AWD-LSTM, of sacmehta/delight's
DExTraEmb and of the reference module; *_table.npy: their tables [words, m].
"""
import math
import os

import numpy
import torch

F = torch.nn.functional
HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, N = 35, 12

ACTIVATIONS = {"none": lambda x: x, "relu": F.relu, "gelu": F.gelu, "swish": F.silu, "tanh": torch.tanh,
               "sigmoid": torch.sigmoid}


class Source:
    """Random float32 numbers, kept in the order they are drawn."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.drawn = []

    def draw(self, *shape, spread=1.0, around=0.0):
        value = (torch.randn(*shape, generator=self.generator) * spread + around).float()
        self.drawn.append(value)
        return value.double()


def group_product(x, weight, groups):
    """weight is [groups or 1, out/g, in/g]."""
    chunks = x.view(len(x), groups, -1)
    return torch.matmul(chunks.transpose(0, 1), weight.transpose(1, 2)).transpose(0, 1).reshape(len(x), -1)


def transpose_features(x, groups):
    return x.view(len(x), groups, -1).transpose(1, 2).reshape(len(x), -1)


def join(e, previous, skip, groups, order):
    pair = [e, previous] if order == "input" else [previous, e]
    if skip == "concat":
        return torch.cat(pair, 1)
    return torch.cat([part.reshape(len(e), groups, -1) for part in pair], 2).reshape(len(e), -1)


def layer(source, e, previous, out, groups=1, shared=False, bias="group", shuffle=None, norm=None,
          eps=1e-5, gain=True, offset=True, act="none", skip=None, order="input", residual=None):
    x = previous if skip is None else join(e, previous, skip, groups, order)
    i, o = x.shape[1] // groups, out // groups
    y = group_product(x, source.draw(1 if shared else groups, o, i, spread=i ** -0.5), groups)
    if bias == "group":
        y = y + source.draw(out, spread=0.3)
    if bias == "shared":
        y = y + source.draw(o, spread=0.3).repeat(groups)
    if shuffle == "before_norm":
        y = transpose_features(y, groups)
    if norm is not None:
        parts = groups if norm == "group" else 1
        width = out // parts
        g = source.draw(width, spread=0.2, around=1) if gain else None
        b = source.draw(width, spread=0.2) if offset else None
        y = F.layer_norm(y.view(len(y), parts, width), (width,), g, b, eps).reshape(len(y), -1)
    if shuffle == "after_norm":
        y = transpose_features(y, groups)
    if residual == "before":
        y = y + previous
    y = ACTIVATIONS[act](y)
    return y + previous if residual == "after" else y


UNITS = {
    "linear": [dict(out=16), dict(out=20), dict(out=6)],
    "glt": [dict(out=16, groups=2), dict(out=24, groups=2, act="tanh"), dict(out=6)],
    "glt_shuffle": [dict(out=18, groups=3, shuffle="before_norm", norm="group", act="swish"),
                    dict(out=24, groups=3, shuffle="after_norm", norm="whole", eps=0.1, act="relu"), dict(out=6)],
    "hgt_concat": [dict(out=16, groups=4, act="relu"), dict(out=20, groups=2, act="relu", skip="concat"),
                   dict(out=24, act="relu", skip="concat", order="previous"), dict(out=6)],
    "hgt_mix": [dict(out=16, groups=4, act="gelu"), dict(out=20, groups=2, act="gelu", skip="mix"),
                dict(out=25, act="gelu", skip="mix"), dict(out=7)],
    "shared": [dict(out=16, groups=4, shared=True, bias="shared"),
               dict(out=20, groups=2, shared=True, bias="group", skip="mix", order="previous"),
               dict(out=24, groups=2, shared=True, bias="none", skip="mix", order="previous"),
               dict(out=6)],
    "residual": [dict(out=12, groups=2, act="relu", residual="before"),
                 dict(out=12, groups=3, act="sigmoid", residual="after"),
                 dict(out=12, skip="mix", groups=4, shuffle="after_norm", act="tanh", residual="after")],
    "no_reduce": [dict(out=18, groups=6, bias="shared", norm="group", gain=False, eps=0.01),
                  dict(out=24, groups=3, bias="none", skip="mix", norm="whole", offset=False)],
    "reduce_sees_e": [dict(out=16, groups=4, act="swish"), dict(out=24, groups=2, act="swish", skip="mix"),
                      dict(out=6, skip="concat", order="previous")],
}


def write_units():
    for seed, (name, layers) in enumerate(UNITS.items()):
        source = Source(seed)
        e = previous = source.draw(WORDS, N)
        for options in layers:
            previous = layer(source, e, previous, **options)
        write_unit(name, source, previous)
    # The first layer makes the e of the others; Map's output is scaled.
    source = Source(100)
    e = previous = layer(source, None, source.draw(WORDS, N) * 3.5, 8, norm="whole", act="swish")
    previous = layer(source, e, previous, 16, groups=4, act="swish")
    previous = layer(source, e, previous, 24, groups=2, act="swish", skip="mix")
    write_unit("entry", source, layer(source, e, previous, 6, skip="concat"))


def write_unit(name, source, table):
    flat = [value.double().flatten() for value in source.drawn] + [table.flatten()]
    numpy.save(os.path.join(HERE, f"unit_{name}.npy"), torch.cat(flat).numpy())


class State(dict):
    """A state dict that grows by drawing."""

    def __init__(self, seed):
        super().__init__()
        self.source = Source(seed)

    def add(self, name, *shape, **options):
        value = self.source.draw(*shape, **options)
        self[name] = value.float()
        return value

    def write(self, name, table):
        torch.save(dict(self), os.path.join(HERE, f"{name}.pt"))
        numpy.save(os.path.join(HERE, f"{name}_table.npy"), table.numpy())


def bands(state, table, projection, sizes, widths, n, scaled):
    rows = []
    for b, (words, width) in enumerate(zip(sizes, widths)):
        rows.append(F.linear(state.add(f"{table}.{b}.weight", words, width) * (math.sqrt(width) if scaled else 1),
                             state.add(f"{projection}.{b}.weight", n, width, spread=width ** -0.5)))
    return torch.cat(rows)


def write_awd():
    state, n, k, depth, m = State(200), 16, 64, 3, 10
    e = out = bands(state, "embeddings.embeds", "embeddings.projcs", (20, 12, 9), (16, 4, 1), n, False)
    step = (k - n) // depth
    for i in range(depth):
        g = 2 ** (depth - i)
        width_in, width_out = (n + i * step + (n if i else 0)) // g, (n + (i + 1) * step) // g
        chunks = out.view(len(e), g, -1)
        if i:
            chunks = torch.cat([chunks, e.view(len(e), g, -1)], 2)
        out = F.linear(chunks, state.add(f"define.weights.{i}.weight", width_out, width_in, spread=width_in ** -0.5),
                       state.add(f"define.weights.{i}.bias", width_out, spread=0.3)).reshape(len(e), -1)
    state.write("awd", F.linear(out, state.add("define.finalProj.weight", m, n + depth * step, spread=0.1),
                                state.add("define.finalProj.bias", m, spread=0.3)))


def write_delight(name, e0, state, groups, sizes, act, shuffled, bias):
    """groups and sizes of the grouped layers; the unit's e is the entry layer's output, m / 2 wide."""
    prefix, m = "decoder.embed_tokens.dextra_layer.", sizes[-1]

    def one(path, x, out, g):
        i, o = x.shape[1] // g, out // g
        if g == 1:
            y = F.linear(x, state.add(path + "weights", out, i, spread=i ** -0.5))
            if bias:
                y = y + state.add(path + "bias", out, spread=0.3)
        else:
            weight = state.add(path + "weights", g, i, o, spread=i ** -0.5)
            y = torch.bmm(x.view(len(x), g, i).transpose(0, 1), weight)
            if bias:
                y = y + state.add(path + "bias", g, 1, o, spread=0.3)
            y = y.permute(1, 2, 0).reshape(len(x), -1) if shuffled else y.transpose(0, 1).reshape(len(x), -1)
        gain = state.add(path + "normalization_fn.weight", o, spread=0.2, around=1)
        offset = state.add(path + "normalization_fn.bias", o, spread=0.2)
        y = F.layer_norm(y.view(len(x), g, o), (o,), gain, offset).reshape(len(x), -1)
        return ACTIVATIONS[act](y)

    x = out = one(prefix + "input_layer.", e0, m // 2, 1)
    for i, (g, size) in enumerate(zip(groups, sizes)):
        out = one(f"{prefix}dextra_layers.{i}.", out, size, g)
        following = groups[i + 1] if i + 1 < len(groups) else 1
        out = torch.cat([x.view(len(x), following, -1), out.view(len(x), following, -1)], 2).reshape(len(x), -1)
    state.write(name, one(prefix + "output_layer.", out, m, 1))


def write_delights():
    prefix, n = "decoder.embed_tokens.map_layer.", 16
    # Groups 1, 2, 4, 1 reversed; linspace(12, 32, 4)[1:] rounded up to multiples of 8; m = 24.
    state = State(300)
    e0 = state.add(prefix + "weight", 40, n, spread=0.25) * math.sqrt(n)
    write_delight("delight_full", e0, state, (1, 4, 2, 1), (24, 32, 32, 24), "swish", False, True)
    state = State(301)
    e0 = bands(state, prefix + "embeddings", prefix + "projections", (10, 20, 5), (16, 8, 4), n, True)
    state[prefix + "_float_tensor"] = torch.zeros(1)
    write_delight("delight_adaptive", e0, state, (4, 2, 1), (24, 32, 24), "swish", False, True)
    # DeXTra's own groups and sizes, shuffled, without biases and embedding scale.
    state = State(302)
    e0 = state.add(prefix + "weight", 33, n)
    write_delight("delight_shuffled", e0, state, (2, 4, 4, 2), (16, 32, 16, 24), "gelu", True, False)


def write_plain():
    state, n, m = State(400), 16, 10
    e = x = bands(state, "inp.base.emb", "inp.base.proj", (20, 12, 9), (16, 4, 1), n, False)
    for i, (g, out) in enumerate(((4, 32), (2, 48), (1, 64))):
        if i:
            x = torch.cat([e.view(len(e), g, -1), x.view(len(e), g, -1)], 2)
        x = x.reshape(len(e), g, -1)
        weight = state.add(f"inp.layers.{i}.weight", g, x.shape[2], out // g, spread=x.shape[2] ** -0.5)
        x = torch.einsum("bgi,gio->bgo", x, weight) + state.add(f"inp.layers.{i}.bias", g, out // g, spread=0.3)
        x = F.relu(x).reshape(len(e), -1)
    state.write("plain", F.linear(x, state.add("inp.reduce.weight", m, 64, spread=0.1),
                                  state.add("inp.reduce.bias", m, spread=0.3)))


write_units()
write_awd()
write_delights()
write_plain()
