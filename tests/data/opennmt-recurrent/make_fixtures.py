#!/usr/bin/env python3
"""Writes small recurrent checkpoints in the layout of OpenNMT-py 1.0.0 with their known answers.

Usage: python3 make_fixtures.py [folder]        (PyTorch 1.13 or later, numpy; the folder of this file)

Weights are random; no code or data of OpenNMT-py is used. PyTorch's nn.LSTM, nn.GRU, LSTMCell and
GRUCell make the tensors; the answers are computed in float64 by the loops below (numpy, written
from the formulas of Luong et al. 2015 and Bahdanau et al. 2015), and the two are compared.

VARIANTS lists the folders. Beside each checkpoint: pairs.txt (source ids ||| target ids), golden.tsv
(sentence, position, id, log-probability) and beam.tsv (sentence, n_best, rank, log-probability,
ids): the search of translate.py with a beam of 3 for the best 1 and 3, at most MAX_LENGTH words.
"""
import argparse
import collections
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fixtures import bare, named_class, write_lines  # noqa: E402

START, END, MAX_LENGTH, BEAM = 2, 3, 7, 3
SOURCE_WORDS, TARGET_WORDS, WORD, UNITS = 11, 13, 6, 8

# name: encoder, cell, layers, attention, input feeding, bridge, legacy stream
VARIANTS = {
    "brnn-lstm-general": ("brnn", "LSTM", 2, "general", 1, False, True),
    "rnn-lstm-dot": ("rnn", "LSTM", 1, "dot", 0, False, False),
    "rnn-gru-mlp-bridge": ("rnn", "GRU", 4, "mlp", 1, True, True),
    "brnn-gru-none": ("brnn", "GRU", 1, "none", 1, False, True),
    "brnn-lstm-mlp-bridge": ("brnn", "LSTM", 3, "mlp", 0, True, True),
    "rnn-lstm-none": ("rnn", "LSTM", 4, "none", 0, True, True),
    "brnn-gru-dot-shared": ("brnn", "GRU", 1, "dot", 1, True, True),
}


Field = named_class("torchtext.data.field", "Field")
Vocab = named_class("torchtext.vocab", "Vocab")


def field(words):
    return [("field", bare(Field, vocab=bare(Vocab, itos=words)))]


class Torch:
    """The network of PyTorch's modules, which makes the state dict."""

    def __init__(self, variant, seed, shared):
        self.kind, cell, self.layers, self.score, self.feeds, self.bridges, _ = variant
        torch.manual_seed(seed)
        self.word = UNITS if shared else WORD
        both = self.kind == "brnn"
        nn = torch.nn
        self.source = nn.Embedding(TARGET_WORDS if shared else SOURCE_WORDS, self.word)
        self.target = self.source if shared else nn.Embedding(TARGET_WORDS, self.word)
        units = UNITS // 2 if both else UNITS
        module = getattr(nn, cell)
        self.encoder = module(self.word, units, self.layers, bidirectional=both)
        inputs = self.word + (UNITS if self.feeds else 0)
        if self.feeds:
            self.cells = [getattr(nn, cell + "Cell")(inputs if k == 0 else UNITS, UNITS)
                          for k in range(self.layers)]
        else:
            self.decoder = module(inputs, UNITS, self.layers)
        self.bridge = [nn.Linear(units * self.layers, units * self.layers)
                       for _ in range(2 if cell == "LSTM" else 1)] if self.bridges else []
        self.parts = {}
        if self.score == "general":
            self.parts["linear_in"] = nn.Linear(UNITS, UNITS, bias=False)
        if self.score == "mlp":
            self.parts["linear_query"] = nn.Linear(UNITS, UNITS)
            self.parts["linear_context"] = nn.Linear(UNITS, UNITS, bias=False)
            self.parts["v"] = nn.Linear(UNITS, 1, bias=False)
        if self.score != "none":
            self.parts["linear_out"] = nn.Linear(2 * UNITS, UNITS, bias=self.score == "mlp")
        self.generator = nn.Linear(UNITS, TARGET_WORDS)
        if shared:
            self.generator.weight = self.target.weight
        for module in self.modules():  # wider than PyTorch's own, so that the answers differ
            for parameter in module.parameters():
                parameter.data = torch.randn_like(parameter) * 0.8

    def modules(self):
        own = [self.source, self.target, self.encoder, self.generator, *self.bridge, *self.parts.values()]
        return own + (self.cells if self.feeds else [self.decoder])

    def state(self):
        state = collections.OrderedDict()
        name = ".embeddings.make_embedding.emb_luts.0.weight"
        state["encoder" + name] = self.source.weight.data
        state["decoder" + name] = self.target.weight.data
        for key, value in self.encoder.state_dict().items():
            state["encoder.rnn." + key] = value
        for i, linear in enumerate(self.bridge):
            for key, value in linear.state_dict().items():
                state[f"encoder.bridge.{i}.{key}"] = value
        if self.feeds:
            for k, cell in enumerate(self.cells):
                for key, value in cell.state_dict().items():
                    state[f"decoder.rnn.layers.{k}.{key}"] = value
        else:
            for key, value in self.decoder.state_dict().items():
                state["decoder.rnn." + key] = value
        for part, linear in self.parts.items():
            for key, value in linear.state_dict().items():
                state[f"decoder.attn.{part}.{key}"] = value
        return state, collections.OrderedDict(
            (f"0.{key}", value) for key, value in self.generator.state_dict().items())

    def log_probabilities(self, source, target):
        """Of the word after each of `target`, by PyTorch's modules in float64, one sentence alone."""
        for module in self.modules():
            module.double()
        with torch.no_grad():
            memory, last = self.encoder(self.source(torch.tensor(source))[:, None])
            last = list(last) if isinstance(last, tuple) else [last]
            if self.bridge:
                last = [torch.relu(linear(state.reshape(-1, linear.in_features))).reshape(state.shape)
                        for linear, state in zip(self.bridge, last)]
            if self.kind == "brnn":
                last = [torch.cat([state[0::2], state[1::2]], 2) for state in last]
            memory, rows, fed = memory[:, 0], [], torch.zeros(UNITS, dtype=torch.float64)
            state = tuple(last) if len(last) == 2 else last[0]
            for word in target:
                x = self.target(torch.tensor([word]))
                if self.feeds:
                    x, state = self.stacked(torch.cat([x, fed[None]], 1), state)
                else:
                    x, state = self.decoder(x[None], state)
                fed = self.attend(memory, x.reshape(-1))
                rows.append(self.generator(fed).log_softmax(-1))
        return torch.stack(rows).numpy()

    def stacked(self, x, state):
        kept = []
        for k, cell in enumerate(self.cells):
            made = cell(x, tuple(part[k] for part in state) if isinstance(state, tuple) else state[k])
            kept.append(made)
            x = made[0] if isinstance(made, tuple) else made
        if isinstance(state, tuple):
            return x, tuple(torch.stack([one[i] for one in kept]) for i in range(2))
        return x, torch.stack(kept)

    def attend(self, memory, q):
        if self.score == "none":
            return q
        p = self.parts
        if self.score == "mlp":
            scores = p["v"](torch.tanh(p["linear_query"](q) + p["linear_context"](memory)))[:, 0]
        else:
            scores = memory @ (p["linear_in"](q) if self.score == "general" else q)
        made = p["linear_out"](torch.cat([scores.softmax(0) @ memory, q]))
        return made if self.score == "mlp" else torch.tanh(made)


def sigmoid(x):
    return 1 / (1 + numpy.exp(-x))


class Plain:
    """The same in float64 by loops over numpy's products, from the tensors of the checkpoint."""

    def __init__(self, state, output, variant):
        self.kind, self.cell, self.layers, self.score, self.feeds, self.bridges, _ = variant
        self.w = {name: value.numpy().astype(float) for name, value in state.items()}
        self.output = {name: value.numpy().astype(float) for name, value in output.items()}

    def step(self, prefix, suffix, x, h, c):
        a = self.w[f"{prefix}weight_ih{suffix}"] @ x + self.w[f"{prefix}bias_ih{suffix}"]
        b = self.w[f"{prefix}weight_hh{suffix}"] @ h + self.w[f"{prefix}bias_hh{suffix}"]
        n = len(h)
        if self.cell == "GRU":
            r, z = sigmoid(a[:n] + b[:n]), sigmoid(a[n:2 * n] + b[n:2 * n])
            return (1 - z) * numpy.tanh(a[2 * n:] + r * b[2 * n:]) + z * h, c
        i, f, g, o = (a + b).reshape(4, n)
        c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
        return sigmoid(o) * numpy.tanh(c), c

    def encode(self, source):
        xs = [self.w["encoder.embeddings.make_embedding.emb_luts.0.weight"][word] for word in source]
        units = UNITS // 2 if self.kind == "brnn" else UNITS
        ends = []
        for k in range(self.layers):
            made = []
            for suffix in ("", "_reverse") if self.kind == "brnn" else ("",):
                h, c, outputs = numpy.zeros(units), numpy.zeros(units), [None] * len(xs)
                for t in range(len(xs)) if suffix == "" else reversed(range(len(xs))):
                    h, c = self.step("encoder.rnn.", f"_l{k}{suffix}", xs[t], h, c)
                    outputs[t] = h
                made.append(outputs)
                ends.append((h, c))
            xs = [numpy.concatenate(outputs) for outputs in zip(*made)]
        stacks = [numpy.concatenate([end[i] for end in ends]) for i in range(2)]
        if self.bridges:
            for i in range(2 if self.cell == "LSTM" else 1):
                weight, bias = self.w[f"encoder.bridge.{i}.weight"], self.w[f"encoder.bridge.{i}.bias"]
                rows = stacks[i].reshape(-1, units * self.layers)
                stacks[i] = numpy.concatenate([numpy.maximum(weight @ row + bias, 0) for row in rows])
        states = [(stacks[0][k * UNITS:(k + 1) * UNITS], stacks[1][k * UNITS:(k + 1) * UNITS])
                  for k in range(self.layers)]
        return numpy.array(xs), (states, numpy.zeros(UNITS))

    def next(self, memory, state, word):
        """Log-probabilities after one more word, and the state after it."""
        states, fed = state
        x = self.w["decoder.embeddings.make_embedding.emb_luts.0.weight"][word]
        if self.feeds:
            x = numpy.concatenate([x, fed])
        made = []
        for k in range(self.layers):
            names = (f"decoder.rnn.layers.{k}.", "") if self.feeds else ("decoder.rnn.", f"_l{k}")
            made.append(self.step(*names, x, *states[k]))
            x = made[-1][0]
        out = self.attend(memory, x)
        logits = self.output["0.weight"] @ out + self.output["0.bias"]
        top = logits.max()
        return logits - top - numpy.log(numpy.exp(logits - top).sum()), (made, out)

    def attend(self, memory, q):
        if self.score == "none":
            return q
        if self.score == "dot":
            scores = [m @ q for m in memory]
        elif self.score == "general":
            scores = [m @ (self.w["decoder.attn.linear_in.weight"] @ q) for m in memory]
        else:
            w = self.w
            query = w["decoder.attn.linear_query.weight"] @ q + w["decoder.attn.linear_query.bias"]
            scores = [w["decoder.attn.v.weight"][0]
                      @ numpy.tanh(query + w["decoder.attn.linear_context.weight"] @ m) for m in memory]
        scores = numpy.exp(numpy.array(scores) - max(scores))
        context = (scores / scores.sum()) @ memory
        made = self.w["decoder.attn.linear_out.weight"] @ numpy.concatenate([context, q])
        return made + self.w["decoder.attn.linear_out.bias"] if self.score == "mlp" else numpy.tanh(made)

    def log_probabilities(self, source, target):
        memory, state = self.encode(source)
        rows = []
        for word in target:
            row, state = self.next(memory, state, word)
            rows.append(row)
        return numpy.array(rows)

    def search(self, source, n_best):
        memory, state = self.encode(source)
        row, state = self.next(memory, state, START)
        live, finished, ended = [(0.0, [], row, state)], [], False
        for length in range(1, MAX_LENGTH + 1):
            every = [(total + value, words + [word], state)
                     for total, words, row, state in live for word, value in enumerate(row)]
            kept = sorted(every, key=lambda one: -one[0])[:BEAM]
            ended = ended or kept[0][1][-1] == END
            last = length == MAX_LENGTH
            finished += [one for one in kept if one[1][-1] == END or last]
            if last or (ended and len(finished) >= n_best):
                break
            live = [(total, words, *self.next(memory, state, words[-1]))
                    for total, words, state in kept if words[-1] != END]
        best = sorted(finished, key=lambda one: -one[0])[:n_best]
        return [(total, words[:-1] if words[-1] == END else words) for total, words, _ in best]


def words(count, specials, prefix):
    return specials + [f"{prefix}{i}" for i in range(len(specials), count)]


def write(folder, name, seed):
    variant, shared = VARIANTS[name], name.endswith("shared")
    kind, cell, layers, score, feeds, bridge, legacy = variant
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    network = Torch(variant, seed, shared)
    state, output = network.state()
    target_words = words(TARGET_WORDS, ["<unk>", "<blank>", "<s>", "</s>"], "t")
    source_words = target_words if shared else words(SOURCE_WORDS, ["<unk>", "<blank>"], "s")
    options = argparse.Namespace(
        encoder_type=kind, decoder_type="rnn", rnn_type=cell, model_type="text", layers=layers,
        rnn_size=UNITS, global_attention=score, global_attention_function="softmax", input_feed=feeds,
        bridge=bridge, brnn=kind == "brnn", copy_attn=False, coverage_attn=False, context_gate=None,
        generator_function="softmax", position_encoding=False, heads=8)
    torch.save({"model": state, "generator": output, "opt": options, "optim": None,
                "vocab": {"src": field(source_words), "tgt": field(target_words)}},
               folder / "model_step_7.pt", _use_new_zipfile_serialization=not legacy)
    plain = Plain(state, output, variant)
    numbers = numpy.random.default_rng(seed)
    pairs, golden, beam = [], [], []
    for sentence, (size, length) in enumerate(((1, 0), (2, 3), (5, 1), (3, 6))):
        source = numbers.integers(0, len(source_words), size).tolist()
        target = numbers.integers(4, TARGET_WORDS, length).tolist() + [END]
        pairs.append(" ".join(map(str, source)) + " ||| " + " ".join(map(str, [START] + target)))
        rows = plain.log_probabilities(source, [START] + target[:-1])
        other = network.log_probabilities(source, [START] + target[:-1])
        difference = abs(rows - other).max()
        assert difference < 1e-12, (name, difference)
        golden += [f"{sentence}\t{i}\t{word}\t{rows[i, word]:.15g}" for i, word in enumerate(target)]
        for n_best in (1, BEAM):
            for rank, (total, ids) in enumerate(plain.search(source, n_best)):
                beam.append(f"{sentence}\t{n_best}\t{rank}\t{total:.15g}\t" + " ".join(map(str, ids)))
    write_lines(folder, {"pairs.txt": pairs, "golden.tsv": golden, "beam.tsv": beam})


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    folder = folder if folder.is_dir() else folder.parent
    for seed, name in enumerate(VARIANTS):
        write(folder, name, seed + 1)


main()
