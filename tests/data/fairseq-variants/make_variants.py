#!/usr/bin/env python3
"""Writes the checkpoints of this folder: language models with random weights, laid out as fairseq's transformer_lm
saves them (names of tensors and hyper-parameters, old and new containers, dummies), with the log-probabilities that the
published equations (Baevski & Auli 2019; Vaswani et al. 2017; fairseq's position table in float32) give in float64.
Shares nothing with fairseq or kinglet. Needs PyTorch (made with 1.13: Debian's python3-torch).

    python3 make_variants.py          writes beside itself

Each folder: model.pt, dict.txt, tokens.txt and
    golden_f64.tsv      position, id, log-probability; the text in blocks of the longest length
    golden_context.tsv  the same in blocks of 16 tokens of which 6 are context
and of the networks that compute their input from characters
    spelt.txt           a text with words that dict.txt lacks
    golden_spelt.tsv    position, id, log-probability; such words are read by their characters and predicted as <unk>
"""
import argparse
import math
import os
import sys

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import write_lines  # noqa: E402

WORDS, TOKENS = 40, 60
PADDING, END = 1, 2
BLOCK, CONTEXT = 16, 6
DOUBLE = torch.float64
UNKNOWN = 3
LONGEST = 50  # bytes of a spelling
# Words that no dictionary here has: long ones, one of which begins like a word of the dictionary, one byte, several bytes
# a letter, a word twice.
SPELT = f"w12 Kinglet w7 {'a' * 60} q éа中 w33 Kinglet w4 {'b' * 49}ж {'c' * 50} w38 '' w20".split()

DEFAULTS = dict(
    decoder_layers=2, decoder_embed_dim=16, decoder_input_dim=16, decoder_output_dim=16, decoder_ffn_embed_dim=20,
    decoder_attention_heads=2, adaptive_input=True, adaptive_input_cutoff="12,26", adaptive_softmax_cutoff="12,26",
    adaptive_input_factor=2, adaptive_softmax_factor=2, tie_adaptive_weights=True, tie_adaptive_proj=True,
    no_decoder_final_norm=True, no_scale_embedding=False, share_decoder_input_output_embed=False,
    decoder_learned_pos=False, activation_fn="relu", max_target_positions=None, tokens_per_sample=24,
    decoder_normalize_before=True, dropout=0.1)


def has_final_norm(given, version):
    """The rules of old and new hyper-parameters."""
    norm = not given.get("no_decoder_final_norm", False)
    if "no_tie_adaptive_proj" in given:
        norm = False
    if "decoder_final_norm" in given:
        norm = bool(given["decoder_final_norm"])
    return norm and version > 2 and given["decoder_normalize_before"]


ACTIVATIONS = {"relu": torch.relu, "gelu": torch.nn.functional.gelu, "tanh": torch.tanh, "linear": lambda x: x}


def spelling(word, characters):
    """The dictionary's text of a word; inputs computed from characters get words of many kinds."""
    odd = {5: "a" * 60 + "b", 6: "a" * 60 + "c", 7: "ж" * 24 + "éx", 8: "\u4e2d\u6587", 9: "x", 10: "x" * 50}
    if characters and word in odd:
        return odd[word]
    return f"madeupword{word - 38:04d}" if word >= 38 else f"w{word}"


def cutoffs(given, name):
    value = given.get(name)
    if value is None:
        return None
    ends = [int(x) for x in value.split(",")] if isinstance(value, str) else list(value)
    return ends if ends[-1] == WORDS else ends + [WORDS]


class Weights:
    """Tensors by name, made as they are asked for."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.state = {}

    def __call__(self, name, *shape):
        if name not in self.state:
            ends = "embed" in name or "softmax" in name or "output_projection" in name
            scale = (0.6 if ends else 1.2) / math.sqrt(shape[-1]) if len(shape) == 2 else 0.3
            value = torch.randn(*shape, generator=self.generator) * scale
            self.state[name] = value + 1 if "norm" in name and name.endswith("weight") else value
        return self.state[name]


def positions_of(width, count):
    """[count, width]: rows of places PADDING + 1, ...; every operation in float32."""
    half = width // 2
    frequency = torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10000.0) / (half - 1)))
    angle = (torch.arange(count, dtype=torch.float32) + (PADDING + 1))[:, None] * frequency[None, :]
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)


def norm(x, gain, bias):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-5) * gain + bias


class Network:
    def __init__(self, given, version, weights):
        self.given, self.weights, self.half = given, weights, False
        self.width, self.heads = given["decoder_embed_dim"], given["decoder_attention_heads"]
        self.final_norm = has_final_norm(given, version)
        self.most = given.get("max_target_positions") or given["tokens_per_sample"]

    def w(self, name, *shape):
        value = self.weights("decoder." + name, *shape)
        return (value.half() if self.half else value).to(DOUBLE)

    def spell(self, word):
        """The row of a word of which the network sees the characters: an id, or a text."""
        given, d, name = self.given, self.width, "embed_tokens."
        # Made whatever the word is.
        vectors = self.w(name + "char_embeddings.weight", 257, given["character_embedding_dim"])
        symbols = self.w(name + "symbol_embeddings", 2, d)
        data = (word if isinstance(word, str) else spelling(word, True) if word >= 4 else "").encode()
        places = ([1 + byte for byte in data] + [0] * LONGEST)[:LONGEST]
        x = vectors[places].T[None]
        features = []
        for i, (width, channels) in enumerate(PAIRS):
            weight = self.w(f"{name}convolutions.{i}.weight", channels, x.shape[1], width)
            bias = self.w(f"{name}convolutions.{i}.bias", channels)
            features.append(torch.nn.functional.conv1d(x, weight, bias)[0].amax(1).clamp(min=0))
        x = torch.cat(features)
        for i in range(given["char_embedder_highway_layers"]):
            layer = f"{name}highway.layers.{i}"
            both = self.w(layer + ".weight", 2 * len(x), len(x)) @ x + self.w(layer + ".bias", 2 * len(x))
            proposal, gate = torch.relu(both[:len(x)]), torch.sigmoid(both[len(x):])
            x = gate * x + (1 - gate) * proposal
        row = self.w(name + "projection.weight", d, len(x)) @ x + self.w(name + "projection.bias", d)
        return {PADDING: torch.zeros_like(row), END: symbols[0], 3: symbols[1]}.get(word, row)

    def embed(self, ids):
        given, rows = self.given, []
        ends = cutoffs(given, "adaptive_input_cutoff") if given["adaptive_input"] else None
        for word in ids:
            if given["character_embeddings"]:
                row = self.spell(word)
            elif ends is None:
                row = self.w("embed_tokens.weight", WORDS, given["decoder_input_dim"])[word]
                if given["decoder_input_dim"] != self.width:
                    row = self.w("project_in_dim.weight", self.width, given["decoder_input_dim"]) @ row
            else:
                band = sum(word >= end for end in ends)
                first = 0 if band == 0 else ends[band - 1]
                columns = given["decoder_input_dim"] // given["adaptive_input_factor"]**band
                table = self.w(f"embed_tokens.embeddings.{band}.0.weight", ends[band] - first, columns)
                row = self.w(f"embed_tokens.embeddings.{band}.1.weight", self.width, columns) @ table[word - first]
            rows.append(row)
        scale = 1.0 if given["no_scale_embedding"] else math.sqrt(self.width)
        x = torch.stack(rows) * scale
        if given.get("quant_noise_pq") and not given["adaptive_input"]:
            x = x @ self.w("quant_noise.weight", self.width, self.width).T
        if given.get("no_token_positional_embeddings"):
            return x
        if given["decoder_learned_pos"]:
            places = self.w("embed_positions.weight", self.most + PADDING + 1, self.width)[PADDING + 1:]
        else:
            places = positions_of(self.width, self.most).to(DOUBLE)
        return x + places[:len(ids)]

    def attend(self, x, name):
        d, size = self.width, self.width // self.heads
        def linear(part):
            return x @ self.w(f"{name}.{part}_proj.weight", d, d).T + self.w(f"{name}.{part}_proj.bias", d)
        q, k, v = (linear(part).view(-1, self.heads, size).transpose(0, 1) for part in "qkv")
        scores = q @ k.transpose(1, 2) / math.sqrt(size)
        future = torch.ones(len(x), len(x)).triu(1).bool()
        mixed = torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v
        joined = mixed.transpose(0, 1).reshape(len(x), d)
        return joined @ self.w(f"{name}.out_proj.weight", d, d).T + self.w(f"{name}.out_proj.bias", d)

    def layer(self, x, name):
        d, inner, first = self.width, self.given["decoder_ffn_embed_dim"], self.given["decoder_normalize_before"]
        def normed(x, part):
            return norm(x, self.w(f"{name}.{part}.weight", d), self.w(f"{name}.{part}.bias", d))
        def feed(x):
            h = ACTIVATIONS[self.given["activation_fn"]](x @ self.w(f"{name}.fc1.weight", inner, d).T
                                                         + self.w(f"{name}.fc1.bias", inner))
            return h @ self.w(f"{name}.fc2.weight", d, inner).T + self.w(f"{name}.fc2.bias", d)
        if first:
            x = x + self.attend(normed(x, "self_attn_layer_norm"), f"{name}.self_attn")
            return x + feed(normed(x, "final_layer_norm"))
        x = normed(x + self.attend(x, f"{name}.self_attn"), "self_attn_layer_norm")
        return normed(x + feed(x), "final_layer_norm")

    def logits_of_words(self, x):
        """log p of every word after every row of x."""
        given, out = self.given, self.given["decoder_output_dim"]
        ends = cutoffs(given, "adaptive_softmax_cutoff")
        if ends is None:
            if out != self.width:
                x = x @ self.w("project_out_dim.weight", out, self.width).T
            shared = given["share_decoder_input_output_embed"]
            table = self.w("embed_tokens.weight" if shared else "output_projection.weight", WORDS, out)
            return torch.log_softmax(x @ table.T, -1)
        if out != self.width:
            x = x @ self.w("project_out_dim.weight", out, self.width).T
        tied, tails = given["tie_adaptive_weights"], len(ends) - 1
        if tied:
            rows = torch.cat([self.w("embed_tokens.embeddings.0.0.weight", ends[0], out),
                              self.w("adaptive_softmax.head.class_proj.weight", tails, out)])
        else:
            rows = self.w("adaptive_softmax.head.weight", ends[0] + tails, out)
        head = torch.log_softmax(x @ rows.T, -1)
        parts = [head[:, :ends[0]]]
        for i in range(tails):
            columns = out // given["adaptive_softmax_factor"]**(i + 1)
            size = ends[i + 1] - ends[i]
            if tied and given["tie_adaptive_proj"]:
                down = x @ self.w(f"embed_tokens.embeddings.{i + 1}.1.weight", self.width, columns)
            else:
                down = x @ self.w(f"adaptive_softmax.tail.{i}.0.weight", columns, out).T
            name = f"embed_tokens.embeddings.{i + 1}.0.weight" if tied else f"adaptive_softmax.tail.{i}.2.weight"
            tail = torch.log_softmax(down @ self.w(name, size, columns).T, -1)
            parts.append(head[:, ends[0] + i, None] + tail)
        return torch.cat(parts, 1)

    def score(self, source):
        """log p of every word after each token of a block."""
        x = self.embed(source)
        for i in range(self.given["decoder_layers"]):
            x = self.layer(x, f"layers.{i}")
        if self.final_norm:
            x = norm(x, self.w("layer_norm.weight", self.width), self.w("layer_norm.bias", self.width))
        return self.logits_of_words(x)

    def score_text(self, ids, block, context):
        """A block's source is shifted by one and keeps the last `context` source tokens before it."""
        source, out, new = [END] + ids[:-1], [], block - context
        for first in range(0, len(ids), new):
            begin, end = max(0, first - context), min(len(ids), first + new)
            values = self.score(source[begin:end])
            out += [values[at - begin, token_of(ids[at])].item() for at in range(first, end)]
        return out


def token_of(word):
    return UNKNOWN if isinstance(word, str) else word


def tie(state, given):
    """What tied modules add to the state dict: the same tensors under the softmax's names."""
    if given["share_decoder_input_output_embed"]:
        state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"]
    if not given["tie_adaptive_weights"] or given["adaptive_softmax_cutoff"] is None:
        return
    bands = "decoder.embed_tokens.embeddings."
    state["decoder.adaptive_softmax.head.word_proj.weight"] = state[bands + "0.0.weight"]
    for i in range(len(cutoffs(given, "adaptive_softmax_cutoff")) - 1):
        tail = f"decoder.adaptive_softmax.tail.{i}."
        state[tail + "2.weight"] = state[f"{bands}{i + 1}.0.weight"]
        if given["tie_adaptive_proj"]:
            state[tail + "0.weight"] = state[f"{bands}{i + 1}.1.weight"]


def join_projections(state):
    """Queries, keys and values in one tensor, and norms by number, as older versions have them."""
    for name in list(state):
        for part in ("weight", "bias"):
            if name.endswith("self_attn.q_proj." + part):
                joined = [state.pop(name.replace("q_proj", letter + "_proj")) for letter in "qkv"]
                state[name.replace("q_proj.", "in_proj_")] = torch.cat(joined)
        for number, norm_name in enumerate(("self_attn_layer_norm", "final_layer_norm")):
            if norm_name in name:
                state[name.replace(norm_name, f"layer_norms.{number}")] = state.pop(name)


def text(seed, first=END):
    generator = torch.Generator().manual_seed(1000 + seed)
    return torch.randint(first, WORDS, (TOKENS,), generator=generator).tolist()


def write(name, seed, version=3, style="args", half=False, joined=False, legacy=False, older=(), **changes):
    given = dict(DEFAULTS, **changes)
    for key in older:
        del given[key]
    full = dict(dict.fromkeys([*DEFAULTS, "character_embeddings"]), **given)
    for key in ("adaptive_input", "tie_adaptive_weights", "tie_adaptive_proj", "no_scale_embedding",
                "share_decoder_input_output_embed", "decoder_learned_pos", "character_embeddings"):
        full[key] = bool(full[key])
    if "no_tie_adaptive_proj" in given:
        full["tie_adaptive_proj"] = full["tie_adaptive_proj"] or not given["no_tie_adaptive_proj"]
    weights = Weights(seed)
    network = Network(full, version, weights)
    network.half = half
    ids = text(seed, 0 if full["character_embeddings"] else END)
    with torch.no_grad():
        golden = network.score_text(ids, network.most, 0)
        with_context = network.score_text(ids, BLOCK, CONTEXT)
        for word in range(WORDS):  # every tensor exists now, whatever the text
            network.embed([word])
    state = {key: value.half() if half else value for key, value in weights.state.items()}
    tie(state, full)
    if joined:
        join_projections(state)
    if version:
        state["decoder.version"] = torch.tensor([float(version)])
    if full["adaptive_input"]:
        # Memory that nobody set.
        state["decoder.embed_tokens._float_tensor"] = torch.tensor([math.nan])
        state["decoder.adaptive_softmax.version"] = torch.tensor([1])
    if joined:
        state["decoder.embed_positions._float_tensor"] = torch.tensor([math.inf])
    checkpoint = {"extra_state": {"epoch": 3}, "last_optimizer_state": None, "optimizer_history": [{"num_updates": 7}]}
    if style == "args":
        checkpoint["args"] = argparse.Namespace(**given)
    else:
        task = {"_name": "language_modeling", "tokens_per_sample": given.pop("tokens_per_sample")}
        checkpoint["args"] = None
        checkpoint["cfg"] = {"_name": None, "model": dict(given, _name="transformer_lm"), "task": task}
    checkpoint["model"] = state
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    torch.save(checkpoint, os.path.join(folder, "model.pt"), _use_new_zipfile_serialization=not legacy)
    words = [f"{spelling(word, full['character_embeddings'])} {0 if word >= 38 else 1000 - word}"
             for word in range(4, WORDS)]
    if full["character_embeddings"]:
        known = {spelling(word, True): word for word in range(4, WORDS)}
        spelt = [known.get(word, word) for word in SPELT] + [END]
        with torch.no_grad():
            values = network.score_text(spelt, network.most, 0)
        write_lines(folder, {"spelt.txt": [" ".join(SPELT)],
                             "golden_spelt.tsv": [f"{at}\t{token_of(word)}\t{value:.15g}"
                                                  for at, (word, value) in enumerate(zip(spelt, values))]})
    write_lines(folder, {"dict.txt": words, "tokens.txt": [" ".join(map(str, ids))]})
    for file, values in (("golden_f64.tsv", golden), ("golden_context.tsv", with_context)):
        write_lines(folder, {file: [f"{at}\t{ids[at]}\t{value:.15g}" for at, value in enumerate(values)]})



# As the published wikitext-103 model: everything tied, no final norm, said as older versions said it.
write("args-tied-legacy", 1, legacy=True, no_tie_adaptive_proj=False, older=("no_decoder_final_norm", "tie_adaptive_proj"))
# As the published gbw model: projections of their own; the newest container.
write("cfg-tied-words", 2, style="cfg", tie_adaptive_proj=False, no_decoder_final_norm=False, tokens_per_sample=30)
write("args-untied-final-norm", 3, tie_adaptive_weights=False, tie_adaptive_proj=False, decoder_final_norm=True,
      adaptive_softmax_cutoff="9,20,31", adaptive_input_factor=4,
      older=("no_decoder_final_norm",))
write("args-joined-fp16-legacy", 4, version=0, half=True, joined=True, legacy=True, no_decoder_final_norm=False)
# Every band as wide as the network: only the flag says whether a projection is to be transposed.
write("cfg-square-tied", 5, style="cfg", adaptive_input_factor=1, adaptive_softmax_factor=1,
      adaptive_input_cutoff=[12, 40], adaptive_softmax_cutoff=[12, 40], decoder_embed_dim=8, decoder_input_dim=8,
      decoder_output_dim=8)
write("args-square-untied-projections", 6, adaptive_input_factor=1, adaptive_softmax_factor=1, tie_adaptive_proj=False,
      decoder_embed_dim=8, decoder_input_dim=8, decoder_output_dim=8, decoder_attention_heads=8)
write("args-learned-positions-unscaled", 7, decoder_learned_pos=True, no_scale_embedding=True, max_target_positions=20,
      decoder_layers=1)
write("cfg-plain-shared", 8, style="cfg", adaptive_input=False, adaptive_input_cutoff=None, adaptive_softmax_cutoff=None,
      tie_adaptive_weights=False, tie_adaptive_proj=False, share_decoder_input_output_embed=True,
      no_decoder_final_norm=False, decoder_attention_heads=1, decoder_layers=1)
write("args-plain-projected", 9, adaptive_input=False, adaptive_input_cutoff=None, adaptive_softmax_cutoff=None,
      tie_adaptive_weights=False, tie_adaptive_proj=False, decoder_input_dim=6, decoder_output_dim=10,
      decoder_layers=1, version=2, no_decoder_final_norm=False)

# Inputs computed from characters: the specials' rows, words of more than 50 bytes (two of them alike up to there), of
# exactly 50, of several bytes a letter. Neither decoder_input_dim nor adaptive_input plays a part.
PAIRS = [(1, 3), (2, 5), (4, 4)]
write("args-characters-adaptive", 10, character_embeddings=True, character_filters=str(PAIRS),
      character_embedding_dim=3, char_embedder_highway_layers=2, decoder_input_dim=6, decoder_output_dim=10,
      adaptive_softmax_cutoff="9,20,31", tie_adaptive_weights=False, tie_adaptive_proj=False)
PAIRS = [(50, 3), (3, 6)]
write("cfg-characters-plain", 11, style="cfg", character_embeddings=True, character_filters=PAIRS,
      character_embedding_dim=2, char_embedder_highway_layers=0, adaptive_input=False, adaptive_input_cutoff=None,
      adaptive_softmax_cutoff=None, tie_adaptive_weights=False, tie_adaptive_proj=False, no_scale_embedding=True,
      no_decoder_final_norm=False)

# As fairseq's own example trains a language model since 0.12: norms last, none at the end. The second says it with
# every option at once that the others leave alone; the third has the options of a whole training run.
PLAIN = dict(adaptive_input=False, adaptive_input_cutoff=None, adaptive_softmax_cutoff=None, tie_adaptive_weights=False,
             tie_adaptive_proj=False, decoder_embed_dim=8, decoder_input_dim=8, decoder_output_dim=8,
             decoder_ffn_embed_dim=12, no_decoder_final_norm=False)
write("cfg-norms-last", 12, style="cfg", decoder_normalize_before=False, share_decoder_input_output_embed=True, **PLAIN)
write("args-norms-last-gelu-no-positions", 13, decoder_normalize_before=False, activation_fn="gelu",
      no_token_positional_embeddings=True, quant_noise_pq=0.1, tokens_per_sample=64, decoder_layers=1, **PLAIN)
TRAINING = dict(
    no_progress_bar=False, log_interval=100, log_format=None, tensorboard_logdir="", cpu=False, fp16=True,
    memory_efficient_fp16=False, fp16_init_scale=128, fp16_scale_window=None, fp16_scale_tolerance=0.0,
    min_loss_scale=0.0001, threshold_loss_scale=None, user_dir=None, criterion="cross_entropy", tokenizer=None, bpe=None,
    optimizer="adam", lr_scheduler="inverse_sqrt", task="language_modeling", num_workers=1, max_tokens=2048,
    max_sentences=None, required_batch_size_multiple=8, dataset_impl=None, train_subset="train", valid_subset="valid",
    validate_interval=1, disable_validation=False, max_tokens_valid=2048, max_sentences_valid=None, curriculum=0,
    distributed_world_size=1, distributed_rank=0, distributed_backend="nccl", distributed_init_method=None,
    distributed_port=-1, device_id=0, distributed_no_spawn=False, ddp_backend="c10d", bucket_cap_mb=25,
    fix_batches_to_gpus=False, find_unused_parameters=False, fast_stat_sync=False, arch="transformer_lm",
    max_epoch=0, max_update=50000, clip_norm=0.0, sentence_avg=False, update_freq=[16], lr=[0.0005], min_lr=-1,
    use_bmuf=False, save_dir="checkpoints", restore_file="checkpoint_last.pt", reset_dataloader=False,
    reset_lr_scheduler=False, reset_meters=False, reset_optimizer=False, optimizer_overrides="{}", save_interval=1,
    save_interval_updates=0, keep_interval_updates=-1, keep_last_epochs=-1, no_save=False, no_epoch_checkpoints=False,
    no_last_checkpoints=False, no_save_optimizer_state=False, best_checkpoint_metric="loss",
    maximize_best_checkpoint_metric=False, adam_betas="(0.9, 0.98)", adam_eps=1e-08, weight_decay=0.01,
    warmup_updates=4000, warmup_init_lr=1e-07, data="data-bin", sample_break_mode="none", output_dictionary_size=-1,
    self_target=False, future_target=False, past_target=False, add_bos_token=False, max_source_positions=None,
    lazy_load=False, raw_text=False, attention_dropout=0.0, adaptive_softmax_dropout=0, decoder_layerdrop=0,
    decoder_layers_to_keep=None, layernorm_embedding=False, character_embeddings=False, character_embedding_dim=4,
    char_embedder_highway_layers=2, character_filters="[(1, 64), (2, 128)]", no_token_positional_embeddings=False)
write("args-tanh-whole-run", 14, activation_fn="tanh", decoder_layers=1, **TRAINING, **PLAIN)
write("cfg-linear", 15, style="cfg", activation_fn="linear", decoder_layers=1, **PLAIN)
