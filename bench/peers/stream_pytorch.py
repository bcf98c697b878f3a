#!/usr/bin/env python3
"""Streams a MicroNet checkpoint in PyTorch, float32, and prints what a token costs as one line of JSON.

    stream_pytorch.py FOLDER --ids tokens.txt [--threads 1] [--lanes 1] [--tokens 300] [--device cpu]

One lane: the full distribution after each token. More lanes: all step together, with the ten best words of each bin and
the cache's weights, each lane reading the same ids from a place of its own. On a device a token ends when the device has
done with it.
"""
import argparse
import json
import math
import time

import torch
from micronet import Network, NeuralCache

F = torch.nn.functional


class OneLane:
    def __init__(self, network: Network):
        self.network = network
        self.keys, self.values = network.empty_memory()
        self.cache = NeuralCache(network) if network.pairs else None
        self.seen, self.last = 0, None

    def step(self, token: int) -> torch.Tensor:
        """Probabilities of the next word, [vocabulary]."""
        if self.cache and self.last is not None:
            self.cache.add(self.last, token)
        mask = torch.zeros(self.network.window)
        mask[:max(0, self.network.window - 1 - self.seen)] = -math.inf
        self.last, self.keys, self.values = self.network.hidden(self.network.embedding(token), self.keys, self.values,
                                                                mask)
        self.seen += 1
        found = self.network.log_softmax(self.last).exp_()
        return self.cache.mixed(found, self.last) if self.cache else found


class ManyLanes:
    def __init__(self, network: Network, lanes: int):
        self.network, self.lanes, self.seen = network, lanes, 0
        self.keys = torch.zeros(len(network.layers), lanes, network.heads, network.window, network.key)
        self.values = torch.zeros(len(network.layers), lanes, network.heads, network.window, network.value)
        self.cache_keys = torch.randn(lanes, network.pairs, network.width) if network.pairs else None

    def step(self, tokens: torch.Tensor) -> list:
        """The ten best of each bin and of the cache's weights, for every lane."""
        n = self.network
        x = n.embeddings(tokens)
        slot = self.seen % n.window
        order = (torch.arange(n.window) - self.seen - 1) % n.window  # of the ring's slots in the window
        self.seen += 1
        for i, layer in enumerate(n.layers):
            y = F.layer_norm(x, (n.width,), *layer.norm1)
            projected = torch.addmm(layer.qkv[1], y, layer.qkv[0].t()).view(self.lanes, n.heads, -1)
            query, key, value = projected.split([n.key, n.key, n.value], -1)
            self.keys[i][:, :, slot], self.values[i][:, :, slot] = key, value
            score = torch.matmul(self.keys[i], query[..., None])[..., 0] + query @ layer.positions[:, order]
            weights = torch.softmax(score * n.key ** -0.5, -1)
            x = x + torch.matmul(weights[:, :, None], self.values[i]).reshape(self.lanes, -1) @ layer.out.t()
            y = F.layer_norm(x, (n.width,), *layer.norm2)
            inner = torch.relu(torch.addmm(layer.inner[1], y, layer.inner[0].t()))
            x = x + torch.addmm(layer.outer[1], inner, layer.outer[0].t())
        head = torch.log_softmax(torch.addmm(n.head_bias, x, n.head.t()), 1)
        best = [head[:, :n.ends[1]].topk(10, 1)]
        for i in range(1, len(n.tables)):
            logits = torch.addmm(n.biases[i], x @ n.narrow[i - 1].t(), n.tables[i].t())
            best.append((head[:, -i, None] + torch.log_softmax(logits, 1)).topk(10, 1))
        if self.cache_keys is not None:
            weights = torch.softmax(n.theta * torch.matmul(self.cache_keys, x[..., None])[..., 0], 1)
            best.append(weights.topk(10, 1))
            self.cache_keys[:, self.seen % n.pairs] = x
        return best


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ids", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=300, help="steps to time")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda with PyTorch 2")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    on_device = options.device != "cpu"
    if on_device:
        torch.set_default_device(options.device)
    network = Network(options.folder, options.device)

    def finish():
        if on_device:
            torch.cuda.synchronize()

    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    times, total = [], 0.0
    if options.lanes == 1:
        stream = OneLane(network)
        warm = max(0, min(network.window + network.pairs, len(ids) - 1 - options.tokens))
        for t in range(min(len(ids) - 1, warm + options.tokens)):
            start = time.perf_counter()
            found = stream.step(ids[t])
            finish()
            if t >= warm:
                times.append(time.perf_counter() - start)
            total -= math.log(found[ids[t + 1]])
        mean = total / (t + 1)
    else:
        stream, mean = ManyLanes(network, options.lanes), None
        places = [lane * len(ids) // options.lanes for lane in range(options.lanes)]
        for t in range(3 + options.tokens):
            tokens = torch.tensor([ids[(place + t) % len(ids)] for place in places])
            start = time.perf_counter()
            stream.step(tokens)
            finish()
            if t >= 3:
                times.append((time.perf_counter() - start) / options.lanes)
    times.sort()
    print(json.dumps({"peer": f"PyTorch {torch.__version__}", "device": options.device,
                      "threads": options.threads, "lanes": options.lanes,
                      "us_per_token": {"p50": times[len(times) // 2] * 1e6, "p90": times[len(times) * 9 // 10] * 1e6},
                      "nll": mean, "scored": None if mean is None else t + 1}))


if __name__ == "__main__":
    main()
