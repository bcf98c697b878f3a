"""The published equations of the language models of speech toolkits, in float64.

A network is a function of a list of ids; it returns log p of every word after each of them.
`w` maps names to matrices (lists of rows) or vectors.
"""
import math
import struct


def single(x):
    """x rounded to float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def linear(w, name, x):
    bias = w[name + ".bias"]
    return [dot(row, x) + b for row, b in zip(w[name + ".weight"], bias)]


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def layer_norm(w, name, x, epsilon):
    mean = math.fsum(x) / len(x)
    variance = math.fsum((v - mean) ** 2 for v in x) / len(x)
    scale = math.sqrt(variance + epsilon)
    return [(v - mean) / scale * g + b
            for v, g, b in zip(x, w[name + ".weight"], w[name + ".bias"])]


def log_softmax(x):
    largest = max(x)
    total = math.log(math.fsum(math.exp(v - largest) for v in x))
    return [v - largest - total for v in x]


def softmax(x):
    return [math.exp(v) for v in log_softmax(x)]


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > 0 else math.exp(x) / (1 + math.exp(x))


ACTIVATIONS = {
    "LeakyReLU": lambda x: x if x > 0 else 0.01 * x,
    "ReLU": lambda x: max(x, 0.0),
    "GELU": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "Tanh": math.tanh,
    "Sigmoid": sigmoid,
    "SiLU": lambda x: x * sigmoid(x),
}


# --- recurrent layers (torch.nn.LSTM, GRU, RNN)

def cell(kind, w, prefix, layer, x, state):
    h, c = state
    wx = [dot(row, x) + b for row, b in zip(w[f"{prefix}weight_ih_l{layer}"],
                                            w[f"{prefix}bias_ih_l{layer}"])]
    uh = [dot(row, h) + b for row, b in zip(w[f"{prefix}weight_hh_l{layer}"],
                                            w[f"{prefix}bias_hh_l{layer}"])]
    n = len(h)

    def block(v, i):
        return v[i * n:(i + 1) * n]

    if kind == "lstm":
        i, f, g, o = (add(block(wx, k), block(uh, k)) for k in range(4))
        c = [sigmoid(a) * b + sigmoid(d) * math.tanh(e) for a, b, d, e in zip(f, c, i, g)]
        return [sigmoid(a) * math.tanh(b) for a, b in zip(o, c)], c
    if kind == "gru":
        r = [sigmoid(v) for v in add(block(wx, 0), block(uh, 0))]
        z = [sigmoid(v) for v in add(block(wx, 1), block(uh, 1))]
        m = [math.tanh(a + b * d) for a, b, d in zip(block(wx, 2), r, block(uh, 2))]
        return [(1 - a) * b + a * d for a, b, d in zip(z, m, h)], c
    f = math.tanh if kind == "tanh" else ACTIVATIONS["ReLU"]
    return [f(v) for v in add(wx, uh)], c


def recurrent(w, ids, kind, layers, embedding, rnn, output, dense=(), activation=None):
    units = len(w[f"{rnn}weight_hh_l0"][0])
    states = [([0.0] * units, [0.0] * units) for _ in range(layers)]
    result = []
    for token in ids:
        x = w[embedding][token]
        for layer in range(layers):
            states[layer] = cell(kind, w, rnn, layer, x, states[layer])
            x = states[layer][0]
        for linear_name, norm_name in dense:
            x = layer_norm(w, norm_name, linear(w, linear_name, x), 1e-5)
            x = [ACTIVATIONS[activation](v) for v in x]
        result.append(log_softmax(linear(w, output, x)))
    return result


# --- attention. q, k, v: [tokens][width]; score(i, j, head, q of the head, k of the head)

def attend(q, k, v, heads, visible, score):
    size = len(q[0]) // heads
    out = []
    for i in range(len(q)):
        row = []
        seen = [j for j in range(i + 1) if visible(j)]
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            weights = softmax([score(i, j, head, q[i][part], k[j][part]) for j in seen])
            row += [math.fsum(a * v[j][part][c] for a, j in zip(weights, seen))
                    for c in range(size)]
        out.append(row)
    return out


def scaled(q, k):
    return dot(q, k) / math.sqrt(len(q))


def sinusoids(position, width):
    """The float32 table: frequency, angle and value are rounded."""
    row = []
    for column in range(width):
        slope = single(-(math.log(10000.0) / width))
        frequency = single(math.exp(single(single(column - column % 2) * slope)))
        angle = single(position * frequency)
        row.append(single(math.cos(angle) if column % 2 else math.sin(angle)))
    return row


def icefall_transformer(w, ids, layers, heads):
    def times(name, scale):  # a matrix or a vector, times exp(scale)
        factor = math.exp(w[scale])
        value = w[name]
        if isinstance(value[0], list):
            return [[factor * v for v in row] for row in value]
        return [factor * v for v in value]

    def scaled_linear(name, x):
        weight = times(name + ".weight", name + ".weight_scale")
        bias = times(name + ".bias", name + ".bias_scale")
        return [dot(row, x) + b for row, b in zip(weight, bias)]

    def basic_norm(name, x):
        scale = math.sqrt(math.fsum(v * v for v in x) / len(x) + math.exp(w[name + ".eps"]))
        return [v / scale for v in x]

    x = [basic_norm("encoder.norm_before",
                    scaled_linear("encoder.embed", w["input_embedding.weight"][i])) for i in ids]
    d = len(x[0])
    for layer in range(layers):
        p = f"encoder.encoder.layers.{layer}."
        a = p + "self_attn."
        qkv = [scaled_linear(a + "in_proj", row) for row in x]
        q = [[v / math.sqrt(d // heads) for v in row[:d]] for row in qkv]
        position = times(a + "linear_pos.weight", a + "linear_pos.weight_scale")
        u, v = (times(a + n, a + n + "_scale") for n in ("pos_bias_u", "pos_bias_v"))
        r = [[dot(row, sinusoids(m, d)) for row in position] for m in range(len(ids))]
        size = d // heads

        def score(i, j, head, qh, kh):
            rh = r[i - j][head * size:(head + 1) * size]
            return dot(add(qh, u[head]), kh) + dot(add(qh, v[head]), rh)

        out = attend(q, [row[d:2 * d] for row in qkv], [row[2 * d:] for row in qkv], heads,
                     lambda j: True, score)
        x = [add(row, scaled_linear(a + "out_proj", o)) for row, o in zip(x, out)]
        for i, row in enumerate(x):
            inner = [z * sigmoid(z - 1) for z in scaled_linear(p + "feed_forward.0", row)]
            x[i] = basic_norm(p + "norm_final",
                              add(row, scaled_linear(p + "feed_forward.4", inner)))
    return [log_softmax(linear(w, "output_linear", row)) for row in x]


def espnet_transformer(w, ids, layers, heads, positions, names):
    embed, after = names
    relu = ACTIVATIONS["ReLU"]
    x = []
    for t, token in enumerate(ids):
        row = linear(w, f"lm.encoder.{embed}.0", w["lm.embed.weight"][token])
        row = [relu(v) for v in layer_norm(w, f"lm.encoder.{embed}.1", row, 1e-5)]
        if positions:
            d = len(row)
            row = add([math.sqrt(d) * v for v in row], sinusoids(t, d))
        x.append(row)
    for layer in range(layers):
        p = f"lm.encoder.encoders.{layer}."
        n = [layer_norm(w, p + "norm1", row, 1e-12) for row in x]
        q, k, v = ([linear(w, p + "self_attn.linear_" + c, row) for row in n] for c in "qkv")
        out = attend(q, k, v, heads, lambda j: ids[j] != 0, lambda i, j, h, a, b: scaled(a, b))
        x = [add(row, linear(w, p + "self_attn.linear_out", o)) for row, o in zip(x, out)]
        for i, row in enumerate(x):
            inner = linear(w, p + "feed_forward.w_1", layer_norm(w, p + "norm2", row, 1e-12))
            x[i] = add(row, linear(w, p + "feed_forward.w_2", [relu(z) for z in inner]))
    return [log_softmax(linear(w, "lm.decoder", layer_norm(w, "lm.encoder." + after, row, 1e-12)))
            for row in x]


def speechbrain_transformer(w, ids, layers, heads, pre_norm, activation):
    act = ACTIVATIONS[activation]
    x = []
    for t, token in enumerate(ids):
        row = w["custom_src_module.emb.Embedding.weight"][token]
        row = [math.sqrt(len(row)) * v for v in row]
        if "embedding_proj.w.weight" in w:
            row = linear(w, "embedding_proj.w", row)
        x.append(add(row, w["positional_encoding.pe"][t]))
    d = len(x[0])
    for layer in range(layers):
        p = f"encoder.layers.{layer}."

        def norm(i, row):
            return layer_norm(w, f"{p}norm{i}.norm", row, 1e-6)

        a = p + "self_att.att."
        inputs = [norm(1, row) for row in x] if pre_norm else x
        qkv = [add([dot(m, row) for m in w[a + "in_proj_weight"]], w[a + "in_proj_bias"])
               for row in inputs]
        out = attend([row[:d] for row in qkv], [row[d:2 * d] for row in qkv],
                     [row[2 * d:] for row in qkv], heads, lambda j: ids[j] != 0,
                     lambda i, j, h, q, k: scaled(q, k))
        x = [add(row, linear(w, a + "out_proj", o)) for row, o in zip(x, out)]
        x = x if pre_norm else [norm(1, row) for row in x]
        for i, row in enumerate(x):
            inner = linear(w, p + "pos_ffn.ffn.0", norm(2, row) if pre_norm else row)
            row = add(row, linear(w, p + "pos_ffn.ffn.3", [act(z) for z in inner]))
            x[i] = row if pre_norm else norm(2, row)
    result = []
    for row in x:
        row = linear(w, "output_proj.layers.0.w", layer_norm(w, "encoder.norm.norm", row, 1e-6))
        row = layer_norm(w, "output_proj.layers.1.norm", row, 1e-6)
        result.append(log_softmax(linear(w, "output_proj.layers.2.w", row)))
    return result
