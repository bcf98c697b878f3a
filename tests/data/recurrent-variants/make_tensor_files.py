#!/usr/bin/env python3
"""Writes the folders of this folder whose model is a file of tensors alone: model.npz of TensorFlow variables, or a
TensorFlow checkpoint of them (the LSTM of Zaremba et al. 2014, some with a DPQ embedding of Chen, Li & Sun 2020,
evaluated here in numpy's float64 from the formulas) and model.safetensors of a pytorch/examples network (evaluated by
PyTorch's own modules in float64; the containers' bytes are put together by hand). Shares nothing with kinglet. Needs
PyTorch and numpy (made with 1.13 and 1.24).

    python3 make_tensor_files.py          writes beside itself
"""
import os
import struct
import sys

import numpy
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, write_answers, write_lines, write_safetensors  # noqa: E402



def write(name, ids, values, config=None):
    """values: log-probabilities [tokens, words] in float64. Gives the folder."""
    folder = os.path.join(HERE, name)
    write_answers(folder, ids, values)
    if config:
        write_lines(folder, {"config.yaml": [config]})
    return folder


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


def log_softmax(x):
    x = x - x.max()
    return x - numpy.log(numpy.exp(x).sum())


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7f | 0x80])
        number >>= 7
    return out + bytes([number])


CRC_TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
    CRC_TABLE.append(byte)


def masked_crc(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xff]
    crc ^= 0xffffffff
    return ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff


def table_block(entries, interval=3):
    """A block of LevelDB's table with its trailer, of sorted (key, value)."""
    out, restarts, before = b"", [], b""
    for i, (key, value) in enumerate(entries):
        shared = 0
        if i % interval == 0:
            restarts.append(len(out))
        else:
            shared = len(os.path.commonprefix([before, key]))
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        before = key
    out += b"".join(struct.pack("<I", at) for at in restarts) + struct.pack("<I", len(restarts)) + b"\0"
    return out + struct.pack("<I", masked_crc(out))


def bundle(prefix, variables, shards=2, entries_in_block=4):
    """A TensorFlow checkpoint, V2: PREFIX.index and its data files."""
    data = [b""] * shards
    entries = [(b"", b"\x08" + varint(shards) + b"\x1a\x02\x08\x01")]
    for i, (name, value) in enumerate(sorted(variables.items())):
        value = numpy.asarray(value)
        stored, shard = value.astype(value.dtype.newbyteorder("<")).tobytes(), i % shards
        shape = b"".join(b"\x12" + varint(len(size)) + size for size in (b"\x08" + varint(n) for n in value.shape))
        entry = b"\x08" + varint({"float32": 1, "int64": 9}[value.dtype.name])
        entry += b"\x12" + varint(len(shape)) + shape
        for field, number in ((3, shard), (4, len(data[shard])), (5, len(stored))):
            entry += bytes([field << 3]) + varint(number) if number else b""
        entries.append((name.encode(), entry + b"\x35" + struct.pack("<I", masked_crc(stored))))
        data[shard] += stored
    index, blocks = b"", []
    for at in range(0, len(entries), entries_in_block):
        part = entries[at:at + entries_in_block]
        block = table_block(part)
        blocks.append((part[-1][0], varint(len(index)) + varint(len(block) - 5)))
        index += block
    places = b""
    for block in (table_block([]), table_block(blocks, 1)):
        places += varint(len(index)) + varint(len(block) - 5)
        index += block
    with open(prefix + ".index", "wb") as out:
        out.write(index + places.ljust(40, b"\0") + struct.pack("<Q", 0xdb4775248b80fb57))
    for shard, content in enumerate(data):
        with open("%s.data-%05d-of-%05d" % (prefix, shard, shards), "wb") as out:
            out.write(content)


def dpq_rows(exact, shared):
    """The rows of a DPQ embedding: the values of the largest normalised responses."""
    scope = "Model/kdq_emb/"
    query, keys = exact[scope + "query_wemb"], exact[scope + "centroids_k"]
    query = query.reshape(len(query), -1, keys.shape[2])
    positions = query.shape[1]
    keys = numpy.repeat(keys, positions // len(keys), 0)
    response = numpy.einsum("vji,jki->vjk", query, keys)
    values = exact.get(scope + "centroids_v")
    if values is None:
        values = keys
        response = 2 * response - (query ** 2).sum(-1)[..., None] - (keys ** 2).sum(-1)
    else:
        values = numpy.repeat(values, positions // len(values), 0)
    norm = scope + "batch_normalization/moving_"
    response = (response - exact[norm + "mean"]) / numpy.sqrt(exact[norm + "variance"] + 0.001)
    ordered = numpy.sort(response, -1)
    assert (ordered[..., -1] - ordered[..., -2]).min() > 2e-5  # float32 would find the same codes
    return values[numpy.arange(positions), response.argmax(-1)]  # [words, positions, length]


def zaremba(name, words, sizes, cell, forget_bias, embedding="full_emb/embedding", dtype="float32", compressed=False,
            leftovers=False, config=True, dpq=None, as_bundle=False):
    """sizes: of the embedding and of each layer. cell: a format of the layer's number. dpq: (method, positions,
    choices, key length, shared, additive)."""
    random = numpy.random.default_rng(sum(map(ord, name)))

    def made(*shape, scale):
        return (random.standard_normal(shape) * scale).astype(dtype)

    if dpq:
        method, positions, choices, key_length, shared, additive = dpq
        subspaces, length = 1 if shared else positions, sizes[0] if additive else sizes[0] // positions
        variables = {"Model/kdq_emb/query_wemb": made(words, positions * key_length, scale=1.0),
                     "Model/kdq_emb/centroids_k": made(subspaces, choices, key_length, scale=1.0),
                     "Model/kdq_emb/batch_normalization/moving_mean": made(choices, scale=1.0),
                     "Model/kdq_emb/batch_normalization/moving_variance": numpy.exp(made(choices, scale=1.0))}
        if method == "sx":
            variables["Model/kdq_emb/centroids_v"] = made(subspaces, choices, length, scale=1.0)
    else:
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
    if dpq:
        rows = dpq_rows(exact, shared)
        table = rows.mean(1) if additive else rows.reshape(words, -1)
    else:
        table = exact["Model/" + embedding]
    ids = ids_of(words, 60)
    state = [(numpy.zeros(units), numpy.zeros(units)) for units in sizes[1:]]
    values = []
    for word in ids:
        x = table[word]
        for layer, (kernel, bias) in enumerate(cells):
            c, h = state[layer]
            i, j, f, o = numpy.split(numpy.concatenate([x, h]) @ kernel + bias, 4)
            c = sigmoid(f + forget_bias) * c + sigmoid(i) * numpy.tanh(j)
            x = sigmoid(o) * numpy.tanh(c)
            state[layer] = (c, x)
        values.append(log_softmax(x @ exact["Model/softmax_w"] + exact["Model/softmax_b"]))
    folder = write("zaremba-" + name, ids, values, "forget_bias: %g" % forget_bias if config else None)
    if leftovers:
        variables["Model/Variable"] = numpy.float32(0.25)  # the learning rate
        variables["global_step"] = numpy.int64(1234)
        variables["Model/softmax_w/Adam"] = made(sizes[-1], words, scale=1.0)
        variables["Model/softmax_b/Adam_1"] = made(words, scale=1.0)
    if as_bundle:
        return bundle(folder + "/model-1234", variables)
    (numpy.savez_compressed if compressed else numpy.savez)(folder + "/model.npz", **variables)


def bfloat16(values):
    """The nearest below, as 16-bit words."""
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


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
    write_safetensors(folder + "/model.safetensors", tensors)


zaremba("block-2", 41, [14, 14, 14], "layer_{}/rnn/lstm_cell", 0, leftovers=True)
zaremba("block-1-default-compressed", 37, [9, 9], "layer_{}/rnn/lstm_cell", 0, compressed=True, config=False)
zaremba("basic-1-forget", 31, [8, 13], "layer_{}/rnn/basic_lstm_cell", 1)
zaremba("tutorial-2-forget", 43, [12, 12, 12], "multi_rnn_cell/cell_{}/basic_lstm_cell", 1, embedding="embedding",
        dtype="float64", leftovers=True)
zaremba("uneven-3", 29, [7, 11, 5, 9], "layer_{}/rnn/lstm_cell", 0.5, compressed=True)
zaremba("one-unit", 2, [1, 1], "basic_lstm_cell", 0)
zaremba("dpq-sx-shared", 43, [12, 12, 12], "layer_{}/rnn/lstm_cell", 0, leftovers=True, config=False,
        dpq=("sx", 4, 8, 3, True, False))
zaremba("dpq-sx-additive-forget", 39, [10, 10], "layer_{}/rnn/lstm_cell", 1, dpq=("sx", 5, 4, 2, False, True))
zaremba("dpq-sx-wide-queries", 33, [9, 8], "layer_{}/rnn/basic_lstm_cell", 0, dpq=("sx", 3, 7, 5, False, False))
zaremba("dpq-vq-bundle", 41, [12, 12, 12], "layer_{}/rnn/lstm_cell", 0, leftovers=True, config=False,
        dpq=("vq", 3, 8, 4, False, False), as_bundle=True)
zaremba("dpq-vq-additive-shared", 35, [10, 10], "layer_{}/rnn/lstm_cell", 0, dpq=("vq", 2, 8, 10, True, True))
examples("lstm-safetensors", "LSTM", 47, 11, 15, 2, False, ("F32", "F32", "F32"))
examples("gru-tied-safetensors", "GRU", 41, 16, 16, 1, True, ("F64", "F64", "F64"))
examples("lstm-halves-safetensors", "LSTM", 37, 10, 10, 1, False, ("BF16", "F16", "F64"))
