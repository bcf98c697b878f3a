#!/usr/bin/env python3
"""Writes the folders of this folder whose model is a file of tensors alone: model.npz of TensorFlow variables (the
LSTM of Zaremba et al. 2014, evaluated here in numpy's float64 from the cell's formulas) and model.safetensors of a
pytorch/examples network (evaluated by PyTorch's own modules in float64; the container's bytes are put together by
hand). Shares nothing with kinglet. Needs PyTorch and numpy (made with 1.13 and 1.24).

    python3 make_tensor_files.py          writes beside itself
"""
import json
import os
import struct

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))


def ids_of(words, count):
    """Tokens that repeat."""
    state, ids = 12345, []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        ids.append((state >> 8) % (min(7, words) if state >> 30 else words))
    return ids


def write(name, ids, values, config=None):
    """values: log-probabilities [tokens, words] in float64. Gives the folder."""
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/tokens.txt", "w") as out:
        out.write(" ".join(map(str, ids)) + "\n")
    with open(folder + "/golden_f64.tsv", "w") as out:
        for t in range(len(ids) - 1):
            out.write("%d\t%d\t%.15g\n" % (t + 1, ids[t + 1], values[t][ids[t + 1]]))
    if config:
        with open(folder + "/config.yaml", "w") as out:
            out.write(config)
    return folder


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def log_softmax(x):
    x = x - x.max()
    return x - numpy.log(numpy.exp(x).sum())


def zaremba(name, words, sizes, cell, forget_bias, embedding="full_emb/embedding", dtype="float32", compressed=False,
            leftovers=False, config=True):
    """sizes: of the embedding and of each layer. cell: a format of the layer's number."""
    random = numpy.random.default_rng(sum(map(ord, name)))

    def made(*shape, scale):
        return (random.standard_normal(shape) * scale).astype(dtype)

    variables = {"Model/" + embedding: made(words, sizes[0], scale=1.0)}
    cells = []
    for layer, (inputs, units) in enumerate(zip(sizes, sizes[1:])):
        kernel = made(inputs + units, 4 * units, scale=1.2 / numpy.sqrt(inputs + units))
        bias = made(4 * units, scale=0.4)
        variables["Model/RNN/" + cell.format(layer) + "/kernel"] = kernel
        variables["Model/RNN/" + cell.format(layer) + "/bias"] = bias
        cells.append((kernel, bias))
    variables["Model/softmax_w"] = made(sizes[-1], words, scale=1.2 / numpy.sqrt(sizes[-1]))
    variables["Model/softmax_b"] = made(words, scale=0.4)
    # What the network computes, from the values as float32 has them.
    exact = {key: value.astype("float32").astype("float64") for key, value in variables.items()}
    cells = [tuple(part.astype("float32").astype("float64") for part in pair) for pair in cells]
    ids = ids_of(words, 60)
    state = [(numpy.zeros(units), numpy.zeros(units)) for units in sizes[1:]]
    values = []
    for word in ids:
        x = exact["Model/" + embedding][word]
        for layer, (kernel, bias) in enumerate(cells):
            c, h = state[layer]
            i, j, f, o = numpy.split(numpy.concatenate([x, h]) @ kernel + bias, 4)
            c = sigmoid(f + forget_bias) * c + sigmoid(i) * numpy.tanh(j)
            x = sigmoid(o) * numpy.tanh(c)
            state[layer] = (c, x)
        values.append(log_softmax(x @ exact["Model/softmax_w"] + exact["Model/softmax_b"]))
    folder = write("zaremba-" + name, ids, values, "forget_bias: %g\n" % forget_bias if config else None)
    if leftovers:
        variables["Model/Variable"] = numpy.float32(0.25)  # the learning rate
        variables["global_step"] = numpy.int64(1234)
        variables["Model/softmax_w/Adam"] = made(sizes[-1], words, scale=1.0)
        variables["Model/softmax_b/Adam_1"] = made(words, scale=1.0)
    (numpy.savez_compressed if compressed else numpy.savez)(folder + "/model.npz", **variables)


def bfloat16(values):
    """The nearest below, as 16-bit words."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def safetensors(path, tensors, metadata):
    """tensors: name -> (dtype, shape, bytes). The header is padded with blanks, as the format allows."""
    header, at = {"__metadata__": metadata}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            out.write(data)


def examples(name, kind, words, inputs, hidden, layers, tied, types):
    """types: of encoder, recurrent layers and decoder in the file."""
    generator = torch.Generator().manual_seed(sum(map(ord, name)))
    encoder, decoder = torch.nn.Embedding(words, inputs), torch.nn.Linear(hidden, words)
    rnn = getattr(torch.nn, kind)(inputs, hidden, layers)
    tensors = {}
    for part, module, dtype in zip(("encoder", "rnn", "decoder"), (encoder, rnn, decoder), types):
        for key, parameter in module.named_parameters():
            scale = 1.2 / numpy.sqrt(parameter.shape[-1]) if parameter.dim() == 2 else 0.4
            data = (torch.randn(parameter.shape, generator=generator) * scale * (2 if part == "encoder" else 1)).numpy()
            if tied and part == "decoder" and key == "weight":
                data = encoder.weight.detach().numpy()
            if dtype == "BF16":
                stored = bfloat16(data)
                data = (stored.astype("<u4") << 16).view("<f4")
            else:
                stored = data.astype({"F64": "<f8", "F32": "<f4", "F16": "<f2"}[dtype])
                data = stored.astype("<f4")
            parameter.data = torch.from_numpy(data.copy())
            tensors[part + "." + key] = (dtype, data.shape, stored.tobytes())
    ids = ids_of(words, 60)
    with torch.no_grad():
        x = encoder.double().weight[torch.tensor(ids)]
        values = torch.log_softmax(decoder.double()(rnn.double()(x[:, None])[0][:, 0]), -1)
    folder = write("examples-" + name, ids, values.numpy())
    safetensors(folder + "/model.safetensors", tensors, {"format": "pt"})


zaremba("block-2", 41, [14, 14, 14], "layer_{}/rnn/lstm_cell", 0, leftovers=True)
zaremba("block-1-default-compressed", 37, [9, 9], "layer_{}/rnn/lstm_cell", 0, compressed=True, config=False)
zaremba("basic-1-forget", 31, [8, 13], "layer_{}/rnn/basic_lstm_cell", 1)
zaremba("tutorial-2-forget", 43, [12, 12, 12], "multi_rnn_cell/cell_{}/basic_lstm_cell", 1, embedding="embedding",
        dtype="float64", leftovers=True)
zaremba("uneven-3", 29, [7, 11, 5, 9], "layer_{}/rnn/lstm_cell", 0.5, compressed=True)
zaremba("one-unit", 2, [1, 1], "basic_lstm_cell", 0)
examples("lstm-safetensors", "LSTM", 47, 11, 15, 2, False, ("F32", "F32", "F32"))
examples("gru-tied-safetensors", "GRU", 41, 16, 16, 1, True, ("F64", "F64", "F64"))
examples("lstm-halves-safetensors", "LSTM", 37, 10, 10, 1, False, ("BF16", "F16", "F64"))
