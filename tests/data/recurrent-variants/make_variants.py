#!/usr/bin/env python3
"""Writes the checkpoints of this folder: recurrent language models with random weights, saved by torch.save as
pytorch/examples word_language_model and salesforce/awd-lstm-lm save theirs (class and attribute names, nesting,
leftovers), with log-probabilities that PyTorch's own nn.LSTM, nn.GRU and nn.RNN give in float64. QRNN, split
softmax and neural cache are written from the papers' formulas. Shares nothing with kinglet. Needs PyTorch (made
with 1.13: Debian's python3-torch).

    python3 make_variants.py          writes beside itself
"""
import math
import os
import sys

import torch

F = torch.nn.functional
DOUBLE = torch.float64
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import bare, ids_of, named_class, write_answers, write_lines  # noqa: E402


RNNModel = named_class("model", "RNNModel", torch.nn.Module)
WeightDrop = named_class("weight_drop", "WeightDrop", torch.nn.Module)
LockedDropout = named_class("locked_dropout", "LockedDropout", torch.nn.Module)
SplitCrossEntropyLoss = named_class("splitcross", "SplitCrossEntropyLoss", torch.nn.Module)
QRNNLayer = named_class("torchqrnn.qrnn", "QRNNLayer", torch.nn.Module)
# The legacy stream carries the source text of classes: a placeholder stands for it here.
torch.serialization.get_source_lines_and_file = lambda _: (["source text\n"], 1, "source.py")


def nothing(self):
    """Stands for the method that the original replaces flatten_parameters with."""

WeightDrop.nothing = nothing


def fill(module, generator):
    for parameter in module.parameters():
        scale = 1.2 / math.sqrt(parameter.shape[-1]) if parameter.dim() == 2 else 0.4
        parameter.data = torch.randn(parameter.shape, generator=generator) * scale


def tables(words, inputs, width, tied, generator):
    encoder, decoder = torch.nn.Embedding(words, inputs), torch.nn.Linear(width, words)
    fill(encoder, generator)
    fill(decoder, generator)
    encoder.weight.data *= 2
    if tied:
        decoder.weight = encoder.weight
    return encoder, decoder


def log_probabilities(decoder, hidden, splits=(), tails=None):
    """[tokens, words]. The tombstone of tail i (from 1) is logit -i of the head."""
    weight, bias = decoder.weight.detach().to(DOUBLE), decoder.bias.detach().to(DOUBLE)
    if not splits:
        return torch.log_softmax(hidden @ weight.t() + bias, -1)
    vectors, tail_bias = (t.detach().to(DOUBLE) for t in tails)
    bounds = list(splits) + [len(weight)]
    head = torch.log_softmax(hidden @ torch.cat([weight[:bounds[0]], vectors]).t() +
                             torch.cat([bias[:bounds[0]], tail_bias]), -1)
    out = [head[:, :bounds[0]]]
    for i in range(1, len(bounds)):
        rows = slice(bounds[i - 1], bounds[i])
        out.append(head[:, -i:][:, :1] + torch.log_softmax(hidden @ weight[rows].t() + bias[rows], -1))
    return torch.cat(out, 1)


def write(name, saved, ids, values, hidden, zip_file, cache=None, config=None):
    folder = os.path.join(HERE, name)
    logs = values.clone()
    for t in range(len(ids) - 1):
        p = values[t].exp()
        if cache and t > cache[0]:  # more than `window` pairs seen before this one
            window, theta, share = cache
            weights = torch.softmax(theta * (hidden[t - window:t] @ hidden[t]), 0)
            pointer = torch.zeros_like(p)
            pointer.index_add_(0, torch.tensor(ids[t - window + 1:t + 1]), weights)
            p = share * pointer + (1 - share) * p
        logs[t, ids[t + 1]] = math.log(p[ids[t + 1]])
    write_answers(folder, ids, logs)
    torch.save(saved, folder + "/model.pt", _use_new_zipfile_serialization=zip_file)
    if config:
        write_lines(folder, {"config.yaml": [config]})
    if cache:
        write_lines(folder, {"cache.txt": ["%d %g %g" % cache]})


def embedded(encoder, ids):
    return encoder.weight.detach().to(DOUBLE)[torch.tensor(ids)]


def run(rnn, inputs):
    """PyTorch's own module in float64 over [tokens, width]."""
    with torch.no_grad():
        return rnn(inputs[:, None])[0][:, 0]


def stack(kind, inputs, hidden, layers, outputs=0):
    if outputs:
        return torch.nn.LSTM(inputs, hidden, layers, proj_size=outputs)
    if kind in ("LSTM", "GRU"):
        return getattr(torch.nn, kind)(inputs, hidden, layers)
    return torch.nn.RNN(inputs, hidden, layers, nonlinearity=kind[4:].lower())


def examples(name, kind, words, inputs, hidden, layers, tied, zip_file=True, state=False, config=None, outputs=0):
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    encoder, decoder = tables(words, inputs, outputs or hidden, tied, generator)
    rnn = stack(kind, inputs, hidden, layers, outputs)
    fill(rnn, generator)
    if kind == "RNN_RELU":  # which would grow without end
        for parameter in rnn.parameters():
            parameter.data *= 0.5
    model = bare(RNNModel, ntoken=words, drop=torch.nn.Dropout(0.2), encoder=encoder, rnn=rnn, decoder=decoder,
                 rnn_type=kind, nhid=hidden, nlayers=layers)
    ids = ids_of(words, 60)
    out = run(stack_like(rnn, kind, inputs, hidden, layers, outputs), embedded(encoder, ids))
    write("examples-" + name, model.state_dict() if state else model, ids, log_probabilities(decoder, out), out,
          zip_file, config=config)


def stack_like(rnn, kind, inputs, hidden, layers, outputs):
    same = stack(kind, inputs, hidden, layers, outputs)
    same.load_state_dict(rnn.state_dict())
    return same.double()


def drop(rnn, generator, leftover):
    """As after training: the trained weight is <name>_raw; <name> holds a dropped-out copy."""
    raw = rnn.weight_hh_l0
    del rnn._parameters["weight_hh_l0"]
    rnn.register_parameter("weight_hh_l0_raw", raw)
    dropped = raw.data * (torch.rand(raw.shape, generator=generator) > 0.5) * 2
    if leftover == "parameter":
        rnn.register_parameter("weight_hh_l0", torch.nn.Parameter(dropped))
    elif leftover == "attribute":
        rnn.__dict__["weight_hh_l0"] = dropped
    wrapped = bare(WeightDrop, module=rnn, weights=["weight_hh_l0"], dropout=0.5, variational=False)
    # A method of the wrapper, pickled as getattr(wrapper, name) while the wrapper has no state yet.
    rnn.flatten_parameters = wrapped.nothing
    return wrapped


def qrnn_layers(sizes, generator):
    layers, states = [], []
    for i, (width, units) in enumerate(zip(sizes, sizes[1:])):
        window = 2 if i == 0 else 1
        linear = torch.nn.Linear(window * width, 3 * units)
        fill(linear, generator)
        trained = (linear.weight.data.clone(), linear.bias.data.clone())
        linear.register_parameter("weight_raw", linear.weight)
        layers.append(bare(QRNNLayer, window=window, input_size=width, hidden_size=units, zoneout=0,
                           save_prev_x=True, prevX=torch.randn(1, 1, width, generator=generator),
                           output_gate=True, use_cuda=False,
                           linear=bare(WeightDrop, module=linear, weights=["weight"], dropout=0)))
        states.append((window, trained))
    return layers, states


def run_qrnn(states, x):
    for window, (weight, bias) in states:
        previous = torch.cat([torch.zeros_like(x[:1]), x[:-1]])
        source = torch.cat([x, previous], 1) if window == 2 else x
        z, f, o = (source @ weight.to(DOUBLE).t() + bias.to(DOUBLE)).chunk(3, 1)
        z, f, o = torch.tanh(z), torch.sigmoid(f), torch.sigmoid(o)
        cell, cells = torch.zeros_like(z[0]), []
        for t in range(len(x)):
            cell = f[t] * z[t] + (1 - f[t]) * cell
            cells.append(cell)
        x = o * torch.stack(cells)
    return x


def awd(name, kind, words, sizes, tied, leftover=None, splits=(), zip_file=False, layout="list", cache=None,
        count=60):
    """sizes: of the embedding and of each layer's output. leftover: None is no weight drop."""
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    encoder, decoder = tables(words, sizes[0], sizes[-1], tied, generator)
    ids = ids_of(words, count)
    x = embedded(encoder, ids)
    if kind == "QRNN":
        layers, states = qrnn_layers(sizes, generator)
        x = run_qrnn(states, x)
    else:
        layers = []
        for width, units in zip(sizes, sizes[1:]):
            rnn = stack(kind, width, units, 1)
            fill(rnn, generator)
            x = run(stack_like(rnn, kind, width, units, 1), x)
            layers.append(drop(rnn, generator, leftover) if leftover else rnn)
    model = bare(RNNModel, encoder=encoder, rnns=torch.nn.ModuleList(layers), decoder=decoder, rnn_type=kind,
                 ninp=sizes[0], nhid=sizes[1], nlayers=len(layers), tie_weights=tied, lockdrop=bare(LockedDropout))
    criterion = bare(SplitCrossEntropyLoss, hidden_size=sizes[-1], splits=[0] + list(splits) + [100 * 1000000],
                     nsplits=len(splits) + 1)
    tails = None
    if splits:
        tails = (torch.nn.Parameter(torch.randn(len(splits), sizes[-1], generator=generator) * 0.3),
                 torch.nn.Parameter(torch.randn(len(splits), generator=generator)))
        criterion.tail_vectors, criterion.tail_bias = tails
    optimiser = torch.optim.SGD(model.parameters(), lr=30.0)
    saved = {"list": [model, criterion, optimiser], "module": model, "state": model.state_dict()}[layout]
    write("awd-" + name, saved, ids, log_probabilities(decoder, x, splits, tails), x, zip_file, cache)


examples("lstm-untied", "LSTM", 41, 13, 17, 1, False)
examples("lstm-tied-3-legacy", "LSTM", 67, 24, 24, 3, True, zip_file=False)
examples("gru-tied", "GRU", 41, 19, 19, 2, True)
examples("gru-untied-legacy", "GRU", 53, 33, 40, 1, False, zip_file=False)
examples("tanh-untied", "RNN_TANH", 41, 9, 15, 2, False)
examples("relu-tied-3", "RNN_RELU", 41, 16, 16, 3, True)
examples("lstm-state-dict", "LSTM", 47, 11, 11, 2, True, state=True)
examples("tanh-state-dict", "RNN_TANH", 31, 8, 10, 1, False, state=True, config="rnn_type: RNN_TANH")
examples("one-unit", "LSTM", 2, 1, 1, 1, False)
examples("lstm-projected", "LSTM", 43, 9, 21, 3, True, outputs=9)
examples("lstm-projected-state-dict", "LSTM", 43, 10, 16, 1, False, state=True, outputs=1)
awd("lstm-dropped-attribute", "LSTM", 61, [10, 35, 35, 10], True, "attribute", cache=(20, 0.6, 0.3))
awd("lstm-dropped-parameter-zip", "LSTM", 61, [12, 20, 12], True, "parameter", zip_file=True)
awd("lstm-plain-module", "LSTM", 43, [7, 18, 23], False, layout="module")
awd("lstm-dropped-state-dict", "LSTM", 43, [9, 14, 9], True, "parameter", layout="state")
awd("gru-dropped", "GRU", 43, [9, 21, 9], True, "attribute")
awd("lstm-split", "LSTM", 80, [12, 20, 12], True, "attribute", splits=(20, 45))
awd("lstm-split-untied-cache", "LSTM", 90, [8, 16, 11], False, splits=(9, 30, 60), cache=(10, 0.4, 0.2))
awd("qrnn", "QRNN", 61, [10, 26, 26, 10], True)
awd("qrnn-split-cache-unused", "QRNN", 70, [11, 17, 13], False, splits=(15,), zip_file=True, cache=(59, 0.5, 0.4))
