#!/usr/bin/env python3
"""Writes small checkpoints in the layout of OpenNMT-py 1.0.0 with their known answers.

Usage: python3 make_fixtures.py [folder]        (PyTorch 1.13, numpy; the folder of this file)

Weights are random; no code or data of OpenNMT-py is used. The evaluation below is written from the
formulas (Vaswani et al. 2017, with the norm first) in float64: every position of a sentence is
computed at once under a causal mask, where kinglet streams token by token.

  plain/               legacy stream, separate tables, vocabularies as torchtext fields
  define/              both embeddings DeFINE inputs (Mehta et al. 2020), with the names of
                       pranavajitnair/DeFINE-AWD-LSTM where OpenNMT has its table
  gelu/                the options of a whole run of OpenNMT-py 2.3, gelu in the inner layers
  version3/            OpenNMT-py 3: no biases but the norms' and the generator's, lists of words, one layer each
  shared-old-names/    zip archive, one table for both languages and the output, norms called a_2 and
                       b_2, vocabularies as a list of pairs

Beside each checkpoint: pairs.txt (source ids ||| target ids), golden.tsv (sentence, position, id,
log-probability), golden_topk.tsv (sentence, position, rank, id, log-probability), greedy.txt and
beam3.txt (ids of the best translation of each source, at most MAX_LENGTH words with the end). In
plain/ also golden_9bit.tsv: the same network with weights and activations of 9 bits, by the rules of
docs/NUMERICS.md; the ranges of activations are those of the same pairs.
"""
import argparse
import collections
import math
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from fixtures import bare, named_class, write_lines  # noqa: E402

WIDTH, HEADS, INNER, ENCODER_LAYERS, DECODER_LAYERS, POSITIONS = 16, 4, 20, 2, 3, 40
START, END, MAX_LENGTH, EPSILON = 2, 3, 9, 1e-6


Vocab = named_class("torchtext.vocab", "Vocab")
Field = named_class("torchtext.data.field", "Field")
TextMultiField = named_class("onmt.inputters.text_dataset", "TextMultiField")


def vocabulary(words):
    return bare(Vocab, freqs=collections.Counter(words), itos=words,
                stoi={word: i for i, word in enumerate(words)}, vectors=None)


def field(name, words):
    inner = bare(Field, sequential=True, vocab=vocabulary(words))
    return bare(TextMultiField, is_target=False, fields=[(name, inner)])


def position_table():
    table = torch.zeros(POSITIONS, 1, WIDTH)
    for position in range(POSITIONS):
        for i in range(WIDTH // 2):
            angle = position / 10000 ** (2 * i / WIDTH)
            table[position, 0, 2 * i] = math.sin(angle)
            table[position, 0, 2 * i + 1] = math.cos(angle)
    return table


def add_define(state, name, words, generator):
    """Two bands of Map (8 and 2 wide), two layers with one matrix for all their groups, a reduction."""
    map_width, widest, layers = 8, 16, 2
    step = (widest - map_width) // layers

    def normal(tensor, *shape):
        state[f"{name}.{tensor}"] = torch.randn(*shape, generator=generator) / math.sqrt(shape[-1])

    for band, (size, width) in enumerate(((words // 2, map_width), (words - words // 2, 2))):
        normal(f"embeddings.embeds.{band}.weight", size, width)
        normal(f"embeddings.projcs.{band}.weight", map_width, width)
    for i in range(layers):
        groups = 2 ** (layers - i)
        inputs, outputs = map_width + i * step + (map_width if i else 0), map_width + (i + 1) * step
        normal(f"define.weights.{i}.weight", outputs // groups, inputs // groups)
        normal(f"define.weights.{i}.bias", outputs // groups)
    normal("define.finalProj.weight", WIDTH, widest)
    normal("define.finalProj.bias", WIDTH)


def define_table(state, name):
    """Every word's vector, one after the other."""
    def get(tensor):
        return state[f"{name}.{tensor}"]

    rows = []
    for band in range(2):
        for row in get(f"embeddings.embeds.{band}.weight"):
            e = get(f"embeddings.projcs.{band}.weight") @ row
            x = e
            for i in range(2):
                groups = 2 ** (2 - i)
                chunks = [(x.chunk(groups)[g],) if i == 0 else (x.chunk(groups)[g], e.chunk(groups)[g])
                          for g in range(groups)]
                x = torch.cat([get(f"define.weights.{i}.weight") @ torch.cat(chunk)
                               + get(f"define.weights.{i}.bias") for chunk in chunks])
            rows.append(get("define.finalProj.weight") @ x + get("define.finalProj.bias"))
    return torch.stack(rows)


def make_state(generator, source_words, target_words, define=False):
    state = collections.OrderedDict()

    def normal(name, *shape, scale):
        state[name] = torch.randn(*shape, generator=generator) * scale

    def linear(name, rows, cols):
        # A decoder that hears much of the source, so that its translations differ.
        gain = 2.5 if "context_attn" in name else 1.3
        normal(name + ".weight", rows, cols, scale=gain / math.sqrt(cols))
        normal(name + ".bias", rows, scale=0.3)

    def norm(name):
        state[name + ".weight"] = 1 + 0.3 * torch.randn(WIDTH, generator=generator)
        state[name + ".bias"] = 0.3 * torch.randn(WIDTH, generator=generator)

    def attention(name):
        for part in ("linear_keys", "linear_values", "linear_query", "final_linear"):
            linear(name + "." + part, WIDTH, WIDTH)

    def feed_forward(name):
        linear(name + ".w_1", INNER, WIDTH)
        linear(name + ".w_2", WIDTH, INNER)
        norm(name + ".layer_norm")

    for side, words in (("encoder", source_words), ("decoder", target_words)):
        if define:
            add_define(state, side + ".embeddings.make_embedding.emb_luts.0", words, generator)
        else:
            normal(side + ".embeddings.make_embedding.emb_luts.0.weight", words, WIDTH, scale=0.6)
        state[side + ".embeddings.make_embedding.pe.pe"] = position_table()
    for i in range(ENCODER_LAYERS):
        name = f"encoder.transformer.{i}."
        attention(name + "self_attn")
        feed_forward(name + "feed_forward")
        norm(name + "layer_norm")
    norm("encoder.layer_norm")
    for i in range(DECODER_LAYERS):
        name = f"decoder.transformer_layers.{i}."
        attention(name + "self_attn")
        attention(name + "context_attn")
        feed_forward(name + "feed_forward")
        norm(name + "layer_norm_1")
        norm(name + "layer_norm_2")
    norm("decoder.layer_norm")
    output = collections.OrderedDict()
    output["0.weight"] = torch.randn(target_words, WIDTH, generator=generator) * 0.6
    output["0.bias"] = torch.randn(target_words, generator=generator) * 0.3
    return state, output


class Points:
    """Where activations may be rounded: by name the largest magnitude that was seen, or, once `bits` is set, what
    rounds to multiples of a step."""

    def __init__(self):
        self.largest, self.bits = {}, None

    def __call__(self, name, *values):
        largest = max(float(value.abs().max()) for value in values)
        if self.bits is None:
            self.largest[name] = max(largest, self.largest.get(name, 0))
            return values[0] if len(values) == 1 else values
        limit = numpy.float32(self.largest[name])
        step = float(cleared(limit / numpy.float32(2 ** (self.bits - 1) - 1), self.bits))
        rounded = [(value.clamp(-float(limit), float(limit)) / step).round() * step for value in values]
        return rounded[0] if len(values) == 1 else rounded


def cleared(scale, bits):
    """Without its low `bits` mantissa bits."""
    return (numpy.float32(scale).view(numpy.uint32) & numpy.uint32(0xffffffff << bits & 0xffffffff)).view(numpy.float32)


def quantised(state, output, bits):
    """The tensors with n-bit weights: a scale for each row of a matrix, one divisor for a vector. The biases of
    projections that share an input are one vector."""
    levels = numpy.float32(2 ** (bits - 1) - 1)

    def matrix(values):
        inverse = levels / numpy.abs(values).max(-1, keepdims=True)
        scale = [[float(cleared(s, bits))] for s in (numpy.float32(1) / inverse)[:, 0]]
        return torch.tensor(numpy.rint(values * inverse).astype(float) * scale)

    def vector(name, values):
        parts = [values]
        for group in (("linear_query", "linear_keys", "linear_values"), ("linear_keys", "linear_values")):
            own = name.split(".")[-2]
            if own in group and ("context_attn" in name) == (len(group) == 2):
                parts = [state[name.replace(own, part)].numpy() for part in group]
        divisor = levels / numpy.float32(max(numpy.abs(part).max() for part in parts))
        return torch.tensor((numpy.rint(values * divisor) / divisor).astype(float))

    def all_of(tensors):
        made = {}
        for name, tensor in tensors.items():
            if "norm" in name or tensor.dim() == 3:
                made[name] = tensor
            else:
                made[name] = matrix(tensor.numpy()) if tensor.dim() == 2 else vector(name, tensor.numpy())
        return made

    return all_of(state), all_of(output)


class Network:
    """The forward pass in float64."""

    def __init__(self, state, output, keeps_units=False, gelu=False):
        self.keeps_units, self.gelu = keeps_units, gelu
        self.state = {name: value.double() for name, value in state.items()}
        self.output = {name: value.double() for name, value in output.items()}
        self.point = Points()

    def norm(self, name, x):
        gain = self.state.get(name + ".weight", self.state.get(name + ".a_2"))
        bias = self.state.get(name + ".bias", self.state.get(name + ".b_2"))
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.pow(2).mean(-1, keepdim=True) + EPSILON).sqrt() * gain + bias

    def linear(self, name, x):
        return x @ self.state[name + ".weight"].T + self.state.get(name + ".bias", 0)

    def attention(self, name, queries, memory, causal):
        """Without a memory: to the queries' own tokens."""
        def heads(x):
            return x.reshape(x.shape[0], HEADS, -1).transpose(0, 1)

        queries = self.point(name + " input", queries)
        memory = queries if memory is None else memory
        q = self.linear(name + ".linear_query", queries)
        k = self.linear(name + ".linear_keys", memory)
        v = self.linear(name + ".linear_values", memory)
        if "context_attn" in name:
            q = self.point(name + " query", q)
            k, v = self.point(name + " key_value", k, v)
        else:
            q, k, v = self.point(name + " qkv", q, k, v)
        q, k, v = heads(q), heads(k), heads(v)
        scores = q @ k.transpose(1, 2) / math.sqrt(WIDTH // HEADS)
        if causal:
            scores += torch.full(scores.shape[1:], -math.inf, dtype=torch.float64).triu(1)
        weights = self.point(name + " weights", scores.softmax(-1))
        mixed = (weights @ v).transpose(0, 1).reshape(queries.shape[0], -1)
        return self.linear(name + ".final_linear", self.point(name + " attended", mixed))

    def feed_forward(self, name, x):
        u = self.point(name + " input", self.norm(name + ".layer_norm", x))
        inner = self.linear(name + ".w_1", u)
        # x Phi(x), with the error function.
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2))) if self.gelu else inner.clamp(min=0)
        inner = self.point(name + " inner", inner)
        return x + self.point(name + " outer", self.linear(name + ".w_2", inner))

    def embed(self, side, ids):
        name = side + ".embeddings.make_embedding.emb_luts.0"
        if name + ".weight" not in self.state:
            table = define_table(self.state, name)
            # A table in a file is of float32.
            self.state[name + ".weight"] = table if self.keeps_units else table.float().double()
        table = self.state[name + ".weight"]
        positions = self.state[side + ".embeddings.make_embedding.pe.pe"]
        return table[ids] * math.sqrt(WIDTH) + positions[: len(ids), 0]

    def encode(self, source):
        x = self.embed("encoder", source)
        for i in range(ENCODER_LAYERS):
            name = f"encoder.transformer.{i}."
            u = self.norm(name + "layer_norm", x)
            x = x + self.attention(name + "self_attn", u, None, False)
            x = self.feed_forward(name + "feed_forward", x)
        return self.point("encoder", self.norm("encoder.layer_norm", x))

    def decode(self, memory, target):
        """Log-probabilities of the word after each of `target`."""
        x = self.embed("decoder", target)
        for i in range(DECODER_LAYERS):
            name = f"decoder.transformer_layers.{i}."
            u = self.norm(name + "layer_norm_1", x)
            x = x + self.attention(name + "self_attn", u, None, True)
            u = self.norm(name + "layer_norm_2", x)
            x = x + self.attention(name + "context_attn", u, memory, False)
            x = self.feed_forward(name + "feed_forward", x)
        x = self.point("decoder", self.norm("decoder.layer_norm", x))
        return (x @ self.output["0.weight"].T + self.output["0.bias"]).log_softmax(-1)

    def greedy(self, source):
        memory, target = self.encode(source), [START]
        while len(target) <= MAX_LENGTH:
            best = int(self.decode(memory, target)[-1].argmax())
            if best == END:
                break
            target.append(best)
        return target[1:]

    def beam(self, source, width):
        """Every word after every sequence is scored and sorted: no top-k, no forks."""
        memory, live, finished = self.encode(source), [(0.0, [START])], []
        for length in range(1, MAX_LENGTH + 1):
            extensions = []
            for total, target in live:
                values = self.decode(memory, target)[-1].tolist()
                extensions += [(total + value, target + [word])
                               for word, value in enumerate(values)]
            extensions.sort(key=lambda extension: -extension[0])
            kept = extensions[:width]
            finished += [extension for extension in kept if extension[1][-1] == END]
            live = [extension for extension in kept if extension[1][-1] != END]
            best = max((total for total, _ in finished), default=-math.inf)
            if not live or len(finished) >= width or best >= live[0][0]:
                break
        if finished:
            return max(finished, key=lambda extension: extension[0])[1][1:-1]
        return live[0][1][1:]


def write(folder, state, output, vocab, legacy, source_words, target_words, generator, **more):
    folder.mkdir(parents=True, exist_ok=True)
    options = argparse.Namespace(
        encoder_type="transformer", decoder_type="transformer", model_type="text", heads=HEADS,
        self_attn_type="scaled-dot", generator_function="softmax", position_encoding=True,
        copy_attn=False, coverage_attn=False, aan_useffn=False, max_relative_positions=0,
        rnn_size=WIDTH, transformer_ff=INNER, enc_layers=ENCODER_LAYERS, dec_layers=DECODER_LAYERS, **more)
    stored = {name.removeprefix("0.") if "add_qkvbias" in more else name: value for name, value in output.items()}
    torch.save({"model": state, "generator": stored, "vocab": vocab, "opt": options, "optim": None},
               folder / "model_step_7.pt", _use_new_zipfile_serialization=not legacy)
    network = Network(state, output, gelu=more.get("pos_ffn_activation_fn") == "gelu")

    def draw(low, high, size):
        return torch.randint(low, high, (size,), generator=generator).tolist()

    sources = [draw(0, source_words, size) for size in (1, 2, 3, 5, 8, 13, 33, POSITIONS)]
    targets = [draw(4, target_words, size) + [END] for size in (0, 1, 4, 2, 7, 6, 5, 34)]
    pairs, golden, top, greedy, beam = [], [], [], [], []
    for sentence, (source, target) in enumerate(zip(sources, targets)):
        pairs.append(" ".join(map(str, source)) + " ||| " + " ".join(map(str, [START] + target)))
        values = network.decode(network.encode(source), [START] + target[:-1])
        for position, word in enumerate(target):
            golden.append(f"{sentence}\t{position}\t{word}\t{float(values[position, word]):.15g}")
            ranked = values[position].sort(descending=True)
            for rank in range(5):
                top.append(f"{sentence}\t{position}\t{rank}\t{int(ranked.indices[rank])}\t"
                           f"{float(ranked.values[rank]):.15g}")
        greedy.append(" ".join(map(str, network.greedy(source))))
        beam.append(" ".join(map(str, network.beam(source, 3))))
    write_lines(folder, {"pairs.txt": pairs, "golden.tsv": golden, "golden_topk.tsv": top, "greedy.txt": greedy,
                         "beam3.txt": beam})
    return list(zip(sources, targets))


def write_kept(folder, state, output, pairs):
    """The answers of the network whose DeFINE units stay units."""
    network = Network(state, output, keeps_units=True)
    (folder / "golden_kept.tsv").write_text("".join(answers(network, pairs)))


def answers(network, pairs):
    lines = []
    for sentence, (source, target) in enumerate(pairs):
        values = network.decode(network.encode(source), [START] + target[:-1])
        lines += [f"{sentence}\t{position}\t{word}\t{float(values[position, word]):.15g}\n"
                  for position, word in enumerate(target)]
    return lines


def write_quantised(folder, state, output, pairs, bits):
    """The answers of the network once its weights and activations are integers."""
    network = Network(*quantised(state, output, bits))
    answers(network, pairs)
    network.point.bits = bits
    (folder / f"golden_{bits}bit.tsv").write_text("".join(answers(network, pairs)))


def words(count, specials, prefix):
    return specials + [f"{prefix}{i}" for i in range(len(specials), count)]


# What training adds to the options of the network.
RUN = dict(
    config="run.yaml", save_config=None, data={"corpus_1": {"path_src": "a", "path_tgt": "b", "transforms": []}},
    skip_empty_level="warning", transforms=[], save_data="", overwrite=False, n_sample=0, src_vocab="vocab.src",
    tgt_vocab="vocab.tgt", share_vocab=False, src_feats_vocab=None, src_seq_length=200, tgt_seq_length=200,
    src_subword_model=None, src_subword_type="none", switchout_temperature=1.0, src_word_vec_size=WIDTH,
    tgt_word_vec_size=WIDTH, word_vec_size=WIDTH, share_decoder_embeddings=False, share_embeddings=False,
    update_vocab=False, feat_merge="concat", feat_vec_size=-1, feat_vec_exponent=0.7, model_task="seq2seq",
    model_dtype="fp32", freeze_encoder=False, freeze_decoder=False, layers=-1, enc_rnn_size=WIDTH, dec_rnn_size=WIDTH,
    cnn_kernel_width=3, pos_ffn_activation_fn="gelu", input_feed=1, bridge=False, rnn_type="LSTM", context_gate=None,
    bridge_extra_node=True, bidir_edges=True, state_dim=512, n_edge_types=2, n_node=2, n_steps=2, src_ggnn_size=0,
    global_attention="general", global_attention_function="softmax", lambda_align=0.0, alignment_layer=-3,
    alignment_heads=0, full_context_alignment=False, copy_attn_type="general", copy_attn_force=False,
    reuse_copy_attn=False, copy_loss_by_seqlength=False, lambda_coverage=0.0, loss_scale=0, apex_opt_level="",
    save_model="run", save_checkpoint_steps=5000, keep_checkpoint=-1, gpuid=[], gpu_ranks=[0], world_size=1, seed=-1,
    param_init=0.0, param_init_glorot=True, train_from="", batch_size=4096, batch_type="tokens", queue_size=40,
    bucket_size=2048, optim="adam", adam_beta2=0.998, dropout=[0.1], attention_dropout=[0.1], label_smoothing=0.1,
    learning_rate=2.0, decay_method="noam", warmup_steps=8000, report_every=50, log_file="", brnn=False)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__)
    folder = folder if folder.is_dir() else folder.parent
    generator = torch.Generator().manual_seed(1)
    target_specials = ["<unk>", "<blank>", "<s>", "</s>"]

    source, target = words(19, ["<unk>", "<blank>"], "s"), words(23, target_specials, "t")
    state, output = make_state(generator, len(source), len(target))
    vocab = {"src": field("src", source), "tgt": field("tgt", target), "indices": Field()}
    pairs = write(folder / "plain", state, output, vocab, True, len(source), len(target), generator)
    write_quantised(folder / "plain", state, output, pairs, 9)

    shared = words(21, target_specials, "w")
    state, output = make_state(generator, len(shared), len(shared))
    table = state["encoder.embeddings.make_embedding.emb_luts.0.weight"]
    state["decoder.embeddings.make_embedding.emb_luts.0.weight"] = table
    output["0.weight"] = table
    state = collections.OrderedDict(
        (name.replace("norm.weight", "norm.a_2").replace("norm.bias", "norm.b_2")
         .replace("norm_1.weight", "norm_1.a_2").replace("norm_1.bias", "norm_1.b_2")
         .replace("norm_2.weight", "norm_2.a_2").replace("norm_2.bias", "norm_2.b_2"), value)
        for name, value in state.items())
    vocab = [("src", vocabulary(shared)), ("tgt", vocabulary(shared))]
    write(folder / "shared-old-names", state, output, vocab, False, len(shared), len(shared),
          generator)

    state, output = make_state(generator, len(source), len(target), define=True)
    vocab = {"src": field("src", source), "tgt": field("tgt", target)}
    pairs = write(folder / "define", state, output, vocab, False, len(source), len(target), generator)
    write_kept(folder / "define", state, output, pairs)

    state, output = make_state(generator, len(source), len(target))
    write(folder / "gelu", state, output, vocab, True, len(source), len(target), generator, **RUN)

    global ENCODER_LAYERS, DECODER_LAYERS  # pylint: disable=global-statement
    ENCODER_LAYERS = DECODER_LAYERS = 1
    state, output = make_state(generator, len(source), len(target))
    state = collections.OrderedDict((name, value) for name, value in state.items()
                                    if not (name.endswith(".bias") and ("linear" in name or ".w_" in name)))
    vocab = {"src": source, "tgt": target, "data_task": "seq2seq", "decoder_start_token": "<s>"}
    write(folder / "version3", state, output, vocab, False, len(source), len(target), generator,
          add_qkvbias=False, add_ffnbias=False, num_kv=0, layer_norm="standard", norm_eps=1e-6, sliding_window=0,
          parallel_residual=False, shared_layer_norm=False, position_encoding_type="SinusoidalInterleaved")


main()
