"""MicroNet's network (Yan et al. 2020) as a PyTorch or ONNX Runtime user would stream it: one token at a time, float32,
keys, values and neural cache kept. Written from the paper and the checkpoint's names; shares nothing with kinglet.

A folder holds config.yaml and models/model-<step>.pth, as the framework leaves them.
"""
import glob
import json
import math
import os
from dataclasses import dataclass

import torch

F = torch.nn.functional


def affine(bias: torch.Tensor, weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    if torch.onnx.is_in_onnx_export():  # which does not know addmv; a product of matrices is faster there
        return F.linear(x[None], weight, bias)[0]
    return torch.addmv(bias, weight, x)


def product(weight: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x[None], weight)[0] if torch.onnx.is_in_onnx_export() else torch.mv(weight, x)


def read_yaml(text: str) -> dict:
    try:
        return json.loads(text)  # make_micronet.py's: not every machine has a reader of YAML
    except json.JSONDecodeError:
        import yaml
        return yaml.safe_load(text)


@dataclass
class Layer:
    norm1: tuple
    qkv: tuple
    positions: torch.Tensor  # [key size, window]
    out: torch.Tensor
    norm2: tuple
    inner: tuple
    outer: tuple


class Network:
    """Weights by name, and the sizes that config.yaml gives."""

    def __init__(self, folder: str, device: str = "cpu"):
        with open(os.path.join(folder, "config.yaml")) as file:
            config = read_yaml(file.read())
        newest = max(glob.glob(os.path.join(folder, "models", "model-*.pth")),
                     key=lambda path: int(path.rsplit("-", 1)[1][:-4]))
        saved = torch.load(newest, map_location=device)
        weights = {name: value.float() for name, value in saved.get("net", saved).items()}
        self.width = config["n_embed"]
        self.heads, self.key, self.value = config["n_head"], config["n_k"], config["n_v"]
        self.window = config["n_seq"] + 1
        self.ends = [0] + config["cutoffs"] + [config["n_vocab"]]
        bins = range(len(self.ends) - 1)
        self.tables = [weights[f"loss.layers.{i}.weight"] for i in bins]
        self.biases = [weights[f"loss.layers.{i}.bias"] for i in bins]
        self.widen = [weights[f"embed.projections.{i}.weight"] for i in bins[:-1]]
        self.narrow = [weights[f"loss.projections.{i}.weight"] for i in bins[:-1]]
        self.head = torch.cat([self.tables[0], weights["loss.clusters.weight"]])
        self.head_bias = torch.cat([self.biases[0], weights["loss.clusters.bias"]])
        self.layers = []
        for i in range(config["n_layers"]):
            def pair(name, i=i):
                return weights[f"layers.{i}.{name}.weight"], weights[f"layers.{i}.{name}.bias"]
            self.layers.append(Layer(pair("ln1"), pair("qkv"), weights[f"layers.{i}.pos_emb"],
                                     weights[f"layers.{i}.out.weight"], pair("ln2"), pair("fc.0"), pair("fc.3")))
        self.pairs = config["n_cache"] if config.get("use_cache") else 0
        self.theta, self.share = config.get("cache_theta", 0.0), config.get("cache_lambda", 0.0)
        if "loss.cache_theta_inv_softplus" in weights:  # trained with the network
            self.theta = F.softplus(weights["loss.cache_theta_inv_softplus"]).item()
            self.share = torch.sigmoid(weights["loss.cache_lambda_inv_sigmoid"]).item()

    def embedding(self, token: int) -> torch.Tensor:
        """The scaled embedding of a token, [width]."""
        i = next(i for i, end in enumerate(self.ends[1:]) if token < end)
        row = self.tables[i][token - self.ends[i]]
        return (self.widen[i - 1] @ row if i else row) * math.sqrt(self.width)

    def embeddings(self, tokens: torch.Tensor) -> torch.Tensor:
        """The scaled embeddings of a token of each lane, [lanes, width]."""
        rows = torch.empty(len(tokens), self.width)
        for i, (first, end) in enumerate(zip(self.ends, self.ends[1:])):
            in_bin = ((tokens >= first) & (tokens < end)).nonzero()[:, 0]
            if len(in_bin):
                found = self.tables[i][tokens[in_bin] - first]
                rows[in_bin] = found @ self.widen[i - 1].t() if i else found
        return rows * math.sqrt(self.width)

    def empty_memory(self) -> tuple:
        """Keys and values of the window's slots, oldest first: [layers, heads, window, size]."""
        return (torch.zeros(len(self.layers), self.heads, self.window, self.key),
                torch.zeros(len(self.layers), self.heads, self.window, self.value))

    def hidden(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor) -> tuple:
        """One token: x [width], memory as above, mask [window] of 0 and -inf -> hidden state and the new memory."""
        new_keys, new_values = [], []
        for i, layer in enumerate(self.layers):
            y = F.layer_norm(x, (self.width,), *layer.norm1)
            projected = affine(layer.qkv[1], layer.qkv[0], y).view(self.heads, 2 * self.key + self.value)
            query, key, value = projected.split([self.key, self.key, self.value], -1)
            k = torch.cat([keys[i][:, 1:], key[:, None]], 1)
            v = torch.cat([values[i][:, 1:], value[:, None]], 1)
            score = torch.bmm(k, query[:, :, None])[:, :, 0] + query @ layer.positions
            weights = torch.softmax(score * self.key ** -0.5 + mask, -1)
            x = x + product(layer.out, torch.bmm(weights[:, None], v).reshape(-1))
            y = F.layer_norm(x, (self.width,), *layer.norm2)
            inner = torch.relu(affine(layer.inner[1], layer.inner[0], y))
            x = x + affine(layer.outer[1], layer.outer[0], inner)
            new_keys.append(k)
            new_values.append(v)
        return x, torch.stack(new_keys), torch.stack(new_values)

    def log_softmax(self, hidden: torch.Tensor) -> torch.Tensor:
        """The log-probabilities of all words without the cache, [vocabulary]."""
        head = torch.log_softmax(affine(self.head_bias, self.head, hidden), 0)
        parts = [head[:self.ends[1]]]
        for i in range(1, len(self.tables)):
            logits = affine(self.biases[i], self.tables[i], product(self.narrow[i - 1], hidden))
            parts.append(head[-i] + torch.log_softmax(logits, 0))
        return torch.cat(parts)


class NeuralCache:
    """Pairs of a hidden state and the word that followed it, in a ring."""

    def __init__(self, network: Network):
        self.network = network
        self.keys = torch.zeros(network.pairs, network.width)
        self.words = torch.zeros(network.pairs, dtype=torch.int64)
        self.stored = 0

    def add(self, hidden: torch.Tensor, word: int):
        slot = self.stored % self.network.pairs
        self.keys[slot], self.words[slot] = hidden, word
        self.stored += 1

    def mixed(self, probabilities: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        held = min(self.stored, self.network.pairs)
        mixed = probabilities * (1 - self.network.share)
        if held:
            weights = torch.softmax(self.network.theta * (self.keys[:held] @ hidden), 0)
            mixed.index_add_(0, self.words[:held], weights * self.network.share)
        return mixed
