#!/usr/bin/env python3
"""A Transformer-XL in PyTorch, float32, one token after the other. Keys and values are cached and position rows are made
once, so that a token reads each weight once and recomputes nothing.

    stream_transformer_xl.py make transfo-xl-wt103 FOLDER [--ids 300] [--seed 1]
    stream_transformer_xl.py run FOLDER --ids tokens.txt [--threads 1] [--tokens 200] [--recompute]

`make` writes a folder as Hugging Face's TransfoXL has it, of published shapes and random weights: config.json,
pytorch_model.bin, vocab.txt, tokens.txt and text.txt (words to calibrate with). `run` streams such a folder and prints
what a token with the full distribution costs as one line of JSON; with --recompute as the frameworks stream: they keep
what entered each layer and make keys, values and position rows of it anew for every token. Memory starts as zeros that attention sees, so every
token costs the same.
"""
import argparse
import json
import math
import os
import time

import torch

F = torch.nn.functional
WT103 = {"vocab_size": 267735, "cutoffs": [20000, 40000, 200000], "same_length": True, "pre_lnorm": False}
# Dai et al. 2019 and their run_wt103_*.sh; the memory and clamp of the evaluation.
PRESETS = {
    "transfo-xl-wt103": dict(WT103, n_layer=18, d_model=1024, d_embed=1024, n_head=16, d_head=64, d_inner=4096, div_val=4,
                             mem_len=1600, clamp_len=1000, tie_projs=[False, True, True, True], untie_r=True),
    "wt103-base": dict(WT103, n_layer=16, d_model=410, d_embed=410, n_head=10, d_head=41, d_inner=2100, div_val=1,
                       mem_len=640, clamp_len=400, tie_projs=[False] * 4, untie_r=False),
    # For tests of this script.
    "tiny": dict(vocab_size=60, cutoffs=[10, 30], same_length=True, pre_lnorm=False, n_layer=2, d_model=16, d_embed=16,
                 n_head=2, d_head=6, d_inner=20, div_val=4, mem_len=7, clamp_len=5, tie_projs=[False, True, True],
                 untie_r=True),
}


def random_weights(c: dict) -> dict:
    state, (d, hd) = {}, (c["d_model"], c["n_head"] * c["d_head"])

    def add(name, *shape):
        state[name] = torch.randn(shape) / math.sqrt(shape[-1] if len(shape) > 1 else 16)
    ends = [0, *c["cutoffs"], c["vocab_size"]]
    divided = c["div_val"] != 1
    for b, size in enumerate([end - first for first, end in zip(ends, ends[1:])] if divided else [c["vocab_size"]]):
        width = c["d_embed"] // c["div_val"] ** b
        add(f"transformer.word_emb.emb_layers.{b}.weight", size, width)
        add(f"crit.out_layers.{b}.bias", size)
        state[f"crit.out_layers.{b}.weight"] = state[f"transformer.word_emb.emb_layers.{b}.weight"]
        if divided:
            add(f"transformer.word_emb.emb_projs.{b}", d, width)
            add(f"crit.out_projs.{b}", d, width)
            if c["tie_projs"][b]:
                state[f"crit.out_projs.{b}"] = state[f"transformer.word_emb.emb_projs.{b}"]
    add("crit.cluster_weight", len(c["cutoffs"]), c["d_embed"])
    add("crit.cluster_bias", len(c["cutoffs"]))
    state["transformer.pos_emb.inv_freq"] = 1 / 10000 ** (torch.arange(0.0, d, 2.0) / d)
    for i in range(c["n_layer"]):
        layer = f"transformer.layers.{i}."
        for bias in ("r_w_bias", "r_r_bias"):
            if c["untie_r"] or i == 0:
                add(f"{layer}dec_attn.{bias}" if c["untie_r"] else f"transformer.{bias}", c["n_head"], c["d_head"])
        add(layer + "dec_attn.qkv_net.weight", 3 * hd, d)
        add(layer + "dec_attn.r_net.weight", hd, d)
        add(layer + "dec_attn.o_net.weight", d, hd)
        add(layer + "pos_ff.CoreNet.0.weight", c["d_inner"], d)
        add(layer + "pos_ff.CoreNet.0.bias", c["d_inner"])
        add(layer + "pos_ff.CoreNet.3.weight", d, c["d_inner"])
        add(layer + "pos_ff.CoreNet.3.bias", d)
        for norm in ("dec_attn", "pos_ff"):
            state[f"{layer}{norm}.layer_norm.weight"] = torch.ones(d)
            state[f"{layer}{norm}.layer_norm.bias"] = torch.zeros(d)
    return state


def make(options):
    config = PRESETS[options.preset]
    torch.manual_seed(options.seed)
    os.makedirs(options.folder, exist_ok=True)

    def path(name):
        return os.path.join(options.folder, name)
    torch.save(random_weights(config), path("pytorch_model.bin"))
    with open(path("config.json"), "w") as file:
        json.dump(dict(config, model_type="transfo-xl", attn_type=0, layer_norm_epsilon=1e-5, tie_word_embeddings=True), file,
                  indent=2)
    words = config["vocab_size"]
    with open(path("vocab.txt"), "w") as file:
        file.writelines("<eos>\n" if word == 0 else f"w{word}\n" for word in range(words))

    def drawn(count):  # the lower ids are the likelier, as 1 / rank
        return (words ** torch.rand(count, dtype=torch.float64) - 1).long().clamp(0, words - 1).tolist()
    with open(path("tokens.txt"), "w") as file:
        file.write(" ".join(map(str, drawn(options.ids))) + "\n")
    with open(path("text.txt"), "w") as file:
        file.write(" ".join(f"w{max(word, 1)}" for word in drawn(40)) + "\n")


class Stream:
    def __init__(self, folder: str, recompute: bool):
        with open(os.path.join(folder, "config.json")) as file:
            c = json.load(file)
        w = torch.load(os.path.join(folder, "pytorch_model.bin"))
        self.width, self.heads, self.head = c["d_model"], c["n_head"], c["d_head"]
        self.epsilon, self.pre_norm = c["layer_norm_epsilon"], c["pre_lnorm"]
        self.window = c["mem_len"] + (not c["same_length"])
        assert not self.pre_norm, "zeros before a norm are not made here"
        self.ends, self.divided = [0, *c["cutoffs"], c["vocab_size"]], c["div_val"] != 1
        self.embeddings, self.softmax = [], []
        for b, (first, end) in enumerate(zip(self.ends, self.ends[1:])):
            number = b if self.divided else 0
            rows = slice(None) if self.divided else slice(first, end)
            own = {key: w.get(f"{key}.{number}" + suffix) for key, suffix in (
                ("transformer.word_emb.emb_layers", ".weight"), ("transformer.word_emb.emb_projs", ""))}
            self.embeddings.append((own["transformer.word_emb.emb_layers"][rows], own["transformer.word_emb.emb_projs"]))
            weight, bias = (w[f"crit.out_layers.{number}.{part}"][rows] for part in ("weight", "bias"))
            if b == 0:
                weight, bias = torch.cat([weight, w["crit.cluster_weight"]]), torch.cat([bias, w["crit.cluster_bias"]])
            projection = w.get(f"crit.out_projs.{b}")
            self.softmax.append((weight, bias, None if projection is None else projection.t().contiguous()))
        distances = torch.arange(self.window, dtype=torch.float64)
        if c["clamp_len"] > 0:
            distances = distances.clamp(max=c["clamp_len"])
        angles = distances[:, None] * w["transformer.pos_emb.inv_freq"].double()
        sinusoids = torch.cat([angles.sin(), angles.cos()], 1).float()
        self.layers, self.sinusoids, self.recompute = [], sinusoids, recompute
        for i in range(c["n_layer"]):
            own = f"transformer.layers.{i}."
            part = {key[len(own):]: value for key, value in w.items() if key.startswith(own)}
            for bias in ("r_w_bias", "r_r_bias"):
                part.setdefault("dec_attn." + bias, w.get("transformer." + bias))
            rows = (sinusoids @ part["dec_attn.r_net.weight"].t()).view(self.window, self.heads, self.head)
            part["rows"] = rows.permute(1, 2, 0).contiguous()  # [heads, head, distance]
            self.layers.append(part)
        shape = (c["n_layer"], self.heads, self.window, self.head)
        self.keys, self.values, self.seen = torch.zeros(shape), torch.zeros(shape), 0
        self.memories = torch.zeros(c["n_layer"], self.window, self.width) if recompute else None

    def norm(self, x, layer, name):
        return F.layer_norm(x, (self.width,), layer[name + ".layer_norm.weight"], layer[name + ".layer_norm.bias"],
                            self.epsilon)

    def make_anew(self, i: int, layer: dict, x: torch.Tensor, slot: int):
        self.memories[i][slot] = x
        made = self.memories[i] @ layer["dec_attn.qkv_net.weight"].t()
        _, keys, values = made.view(self.window, 3, self.heads, self.head).permute(1, 2, 0, 3)
        rows = (self.sinusoids @ layer["dec_attn.r_net.weight"].t()).view(self.window, self.heads, self.head)
        return keys, values, rows.permute(1, 2, 0)

    def step(self, token: int) -> torch.Tensor:
        """Log-probabilities of the next word, [vocabulary]."""
        b = sum(token >= end for end in self.ends[1:-1])
        table, projection = self.embeddings[b]
        x = table[token - self.ends[b]]
        x = math.sqrt(self.width) * (x if projection is None else projection @ x)
        slot = self.seen % self.window
        self.seen += 1
        for i, layer in enumerate(self.layers):
            qkv = torch.mv(layer["dec_attn.qkv_net.weight"], x).view(3, self.heads, self.head)
            if self.recompute:
                keys, values, rows = self.make_anew(i, layer, x, slot)
            else:
                self.keys[i][:, slot], self.values[i][:, slot] = qkv[1], qkv[2]
                keys, values, rows = self.keys[i], self.values[i], layer["rows"]
            content, position = qkv[0] + layer["dec_attn.r_w_bias"], qkv[0] + layer["dec_attn.r_r_bias"]
            by_distance = torch.bmm(position[:, None], rows)[:, 0]
            # Slot s is (slot - s) mod window tokens old.
            score = torch.matmul(keys, content[..., None])[..., 0] + by_distance.flip(1).roll(slot + 1, 1)
            weights = torch.softmax(score * self.head ** -0.5, -1)
            attended = torch.bmm(weights[:, None], values).view(-1)
            x = self.norm(x + torch.mv(layer["dec_attn.o_net.weight"], attended), layer, "dec_attn")
            inner = torch.relu(torch.addmv(layer["pos_ff.CoreNet.0.bias"], layer["pos_ff.CoreNet.0.weight"], x))
            x = self.norm(x + torch.addmv(layer["pos_ff.CoreNet.3.bias"], layer["pos_ff.CoreNet.3.weight"], inner), layer,
                          "pos_ff")
        parts = []
        for b, (weight, bias, projection) in enumerate(self.softmax):
            hidden = x if projection is None else torch.mv(projection, x)
            found = torch.log_softmax(torch.addmv(bias, weight, hidden), 0)
            if b == 0:
                head = found
                parts.append(head[:self.ends[1]])
            else:
                parts.append(found + head[self.ends[1] + b - 1])
        return torch.cat(parts)


def run(options):
    torch.set_num_threads(options.threads)
    stream = Stream(options.folder, options.recompute)
    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    times, total = [], 0.0
    count = min(len(ids) - 1, options.tokens)
    for t in range(count):
        start = time.perf_counter()
        found = stream.step(ids[t])
        times.append(time.perf_counter() - start)
        total -= found[ids[t + 1]].item()
    times.sort()
    print(json.dumps({"peer": f"PyTorch {torch.__version__}", "threads": options.threads, "lanes": 1,
                      "us_per_token": {"p50": times[count // 2] * 1e6, "p90": times[count * 9 // 10] * 1e6},
                      "nll": total / count, "scored": count}))


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    making = commands.add_parser("make")
    making.add_argument("preset", choices=list(PRESETS))
    making.add_argument("folder")
    making.add_argument("--ids", type=int, default=300)
    making.add_argument("--seed", type=int, default=1)
    making.set_defaults(command=make)
    running = commands.add_parser("run")
    running.add_argument("folder")
    running.add_argument("--ids", required=True)
    running.add_argument("--threads", type=int, default=1)
    running.add_argument("--tokens", type=int, default=200)
    running.add_argument("--recompute", action="store_true")
    running.set_defaults(command=run)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
