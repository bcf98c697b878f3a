#!/usr/bin/env python3
"""Writes the define-awd-* checkpoints of this folder: state dicts with random weights by the names of
pranavajitnair/DeFINE-AWD-LSTM, with log-probabilities computed in float64 from the paper's formulas and PyTorch's
own nn.LSTM. Shares nothing with kinglet. Needs PyTorch (made with 1.13: Debian's python3-torch).

    python3 make_define_awd.py          writes beside itself
"""
import collections
import math
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, write_answers  # noqa: E402



def made(generator, *shape):
    return torch.randn(shape, generator=generator) * (1.2 / math.sqrt(shape[-1]) if len(shape) == 2 else 0.4)


def unit(state, groups, e):
    """The unit's output for rows of e: [previous output, e] chunk by chunk, one matrix for all groups of a layer."""
    x = e
    for i, g in enumerate(groups):
        chunks = x.reshape(len(x), g, -1)
        if i > 0:
            chunks = torch.cat([chunks, e.reshape(len(e), g, -1)], 2)
        x = (chunks @ state["define.weights.%d.weight" % i].t() + state["define.weights.%d.bias" % i]).flatten(1)
    return x @ state["define.finalProj.weight"].t() + state["define.finalProj.bias"]


def variant(name, sizes, n, k, groups, m, units, leftovers):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    state = collections.OrderedDict()
    for i, words in enumerate(sizes):
        state["embeddings.embeds.%d.weight" % i] = 1.5 * made(generator, words, n // 4**i)
    for i in range(len(sizes)):
        state["embeddings.projcs.%d.weight" % i] = made(generator, n, n // 4**i)
    state["embeddings.classes.weight"] = made(generator, len(sizes) - 1, n)
    state["embeddings.classes.bias"] = made(generator, len(sizes) - 1)
    step = (k - n) // len(groups)
    for i, g in enumerate(groups):
        state["define.weights.%d.weight" % i] = made(generator, (n + (i + 1) * step) // g,
                                                     (n + i * step + n * (i != 0)) // g)
        state["define.weights.%d.bias" % i] = made(generator, (n + (i + 1) * step) // g)
    state["define.finalProj.weight"] = made(generator, m, n + len(groups) * step)
    state["define.finalProj.bias"] = made(generator, m)
    for i, (width, out) in enumerate(zip([m] + units, units)):
        module = "lstms.%d.module." % i
        state[module + "weight_ih_l0"] = made(generator, 4 * out, width)
        state[module + "bias_ih_l0"] = made(generator, 4 * out)
        state[module + "bias_hh_l0"] = made(generator, 4 * out)
        state[module + "weight_hh_l0_raw"] = made(generator, 4 * out, out)
        if leftovers:
            state[module + "weight_hh_l0"] = torch.full((4 * out, out), 9.0)

    words = sum(sizes)
    ids = ids_of(words, 60, 54321)
    double = {key: value.double() for key, value in state.items()}
    e = torch.cat([double["embeddings.embeds.%d.weight" % i] @ double["embeddings.projcs.%d.weight" % i].t()
                   for i in range(len(sizes))])
    x = unit(double, groups, e)[torch.tensor(ids)]
    for i, (width, out) in enumerate(zip([m] + units, units)):
        lstm = torch.nn.LSTM(width, out).double()
        module = "lstms.%d.module." % i
        lstm.load_state_dict({"weight_ih_l0": double[module + "weight_ih_l0"],
                              "weight_hh_l0": double[module + "weight_hh_l0_raw"],
                              "bias_ih_l0": double[module + "bias_ih_l0"],
                              "bias_hh_l0": double[module + "bias_hh_l0"]})
        with torch.no_grad():
            x = lstm(x[:, None])[0][:, 0]
    # One softmax over words; a band's class logit is added to all of its words.
    logits = [x @ double["embeddings.embeds.0.weight"].t()]
    classes = x @ double["embeddings.classes.weight"].t() + double["embeddings.classes.bias"]
    for i in range(1, len(sizes)):
        low = x @ double["embeddings.projcs.%d.weight" % i]
        logits.append(low @ double["embeddings.embeds.%d.weight" % i].t() + classes[:, i - 1:i])
    values = torch.log_softmax(torch.cat(logits, 1), 1)

    folder = os.path.join(HERE, "define-awd-" + name)
    write_answers(folder, ids, values)
    torch.save(state, folder + "/model.pt")


variant("three-bands", [11, 9, 20], 16, 40, [4, 2], 10, [13, 16], False)
variant("one-band-dropped", [37], 8, 32, [8, 4, 2], 9, [8], True)
