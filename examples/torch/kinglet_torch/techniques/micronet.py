"""MicroNet's decoder (Yan et al. 2020, "MicroNet for Efficient Language Modeling"): attention over a sliding window,
with a trained column for each of its slots."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int, heads: int, key_size: int, value_size: int, inner: int, window: int):
        super().__init__()
        self.sizes = [key_size, key_size, value_size]
        self.heads, self.window = heads, window
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, heads * sum(self.sizes))  # head by head: query, key, value
        self.pos_emb = nn.Parameter(0.1 * torch.randn(key_size, window))  # of all heads; the last slot is the token's
        self.out = nn.Linear(heads * value_size, width, bias=False)
        self.ln2 = nn.LayerNorm(width)
        self.fc = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Identity(), nn.Linear(inner, width))

    def forward(self, x, before, at):
        """x [tokens, batch, width]; `before`: keys and values of earlier tokens, [past, batch, heads, size]."""
        qkv = at("qkv", self.qkv(at("attention_input", self.ln1(x)))).unflatten(-1, (self.heads, -1))
        query, key, value = qkv.split(self.sizes, -1)
        key, value = torch.cat([before[0], key]), torch.cat([before[1], value])
        past = len(key) - len(x)
        distance = past + torch.arange(len(x))[:, None] - torch.arange(len(key))
        slot = (self.window - 1 - distance).clamp(0, self.window - 1)[:, None, None].expand(*query.shape[:3], -1)
        scores = torch.einsum("tbhk,sbhk->tbhs", query, key) + (query @ self.pos_emb).gather(-1, slot)
        hidden = ((distance < 0) | (distance >= self.window))[:, None, None]
        weights = torch.softmax((scores * self.sizes[0] ** -0.5).masked_fill(hidden, -torch.inf), -1)
        attended = torch.einsum("tbhs,sbhv->tbhv", at("weights", weights), value).flatten(-2)
        x = x + self.out(at("attended", attended))
        inner = at("inner", self.fc[:3](at("inner_input", self.ln2(x))))
        first = max(0, len(key) - (self.window - 1))
        return x + at("outer", self.fc[3](inner)), (key[first:], value[first:])


class MicroNetDecoder(nn.Module):
    """Layers that read `window` tokens, the token itself among them. Before a text's first token they see nothing
    (`start` "masked"), or keys and values of zeros ("zeros")."""

    def __init__(self, width: int, layers: int, heads: int, key_size: int, value_size: int, inner: int, window: int,
                 start: str):
        super().__init__()
        self.past = {"masked": 0, "zeros": window - 1}[start]
        self.layers = nn.ModuleList([Layer(width, heads, key_size, value_size, inner, window) for _ in range(layers)])
        self.points = [f"transformer.layers.{i}.{name}" for i in range(layers) for name in (
            "attention_input", "qkv", "weights", "attended", "inner_input", "inner", "outer")] + ["transformer.output"]

    def forward(self, x, state, dropout, at):
        at = at or (lambda name, value: value)
        after = []
        for i, layer in enumerate(self.layers):
            before = state[i] if state else [x.new_zeros(self.past, x.shape[1], layer.heads, size)
                                             for size in layer.sizes[1:]]
            x, last = layer(dropout(x), before, lambda name, value, i=i: at(f"transformer.layers.{i}.{name}", value))
            after.append(last)
        return at("transformer.output", x), after
