"""DeFINE (Mehta et al. 2020, "DeFINE: Deep Factorized Input Token Embeddings"): map, expand, reduce.

A narrow embedding (the map, n numbers a word) goes through layers of group-linear transforms that widen it step by
step (the hierarchical group transform, HGT) and a last linear layer that reduces it to the model's width. The result
depends on nothing but the word: at inference it is a table.
"""
import torch
from torch import nn

ACTIVATIONS = {
    "none": lambda x: x,
    "relu": torch.relu,
    "tanh": torch.tanh,
    "swish": lambda x: x * torch.sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / 2 ** 0.5)),
}


def joined(mapped, x, groups: int, skip: str, order: str):
    """What a layer reads: the previous layer's output x and, by its skip connection, the map's output."""
    if skip in ("none", "residual"):
        return x
    if skip not in ("concat", "mix") or order not in ("input_first", "output_first"):
        raise ValueError(f"unknown skip {skip!r} or order {order!r}")
    # The mixer (section 3 of the paper) puts chunk j of both into group j; concat puts the whole vectors in a row.
    pieces = groups if skip == "mix" else 1
    parts = [part.unflatten(-1, (pieces, part.shape[-1] // pieces)) for part in (mapped, x)]
    return torch.cat(parts if order == "input_first" else parts[::-1], -1).flatten(-2)


class GroupLinear(nn.Module):
    """y = activation(norm(shuffle(W_j x_j + b_j))) with x split into contiguous groups x_j.

    weight [groups, in / groups, out / groups], or [1, ...] where all groups share one; bias [groups or 1,
    out / groups]. The shuffle puts feature i of group j at i * groups + j. The norm is a layer norm over each
    out / groups features that lie together, all with the same gain and bias.
    """

    def __init__(self, inputs: int, outputs: int, groups: int, shared: bool, bias: bool, norm: str, epsilon: float,
                 activation: str, shuffle: bool):
        super().__init__()
        if inputs % groups or outputs % groups:
            raise ValueError(f"{groups} groups must divide {inputs} inputs and {outputs} outputs")
        self.groups, self.shuffle, self.activation = groups, shuffle, ACTIVATIONS[activation]
        matrices = 1 if shared else groups
        scale = (groups / inputs) ** 0.5
        self.weight = nn.Parameter(scale * torch.randn(matrices, inputs // groups, outputs // groups))
        self.bias = nn.Parameter(torch.zeros(matrices, outputs // groups)) if bias else None
        self.norm = {"none": None, "layer": nn.LayerNorm(outputs // groups, eps=epsilon)}[norm]

    def forward(self, x):
        weight = self.weight.expand(self.groups, -1, -1)
        y = torch.einsum("...gi,gio->...go", x.unflatten(-1, (self.groups, weight.shape[1])), weight)
        if self.bias is not None:
            y = y + self.bias
        if self.shuffle:
            y = y.transpose(-1, -2).flatten(-2).unflatten(-1, (self.groups, weight.shape[2]))
        if self.norm is not None:
            y = self.norm(y)
        return self.activation(y).flatten(-2)


class DefineEmbedding(nn.Module):
    """`layers` gives for each layer, in order: outputs, groups, shared, bias, norm, epsilon, activation, shuffle, and
    skip and order of `joined`. Reduce is the last of them, with one group and no activation. `residual` adds a layer's
    input to its output."""

    def __init__(self, narrow: nn.Module, layers: list):
        super().__init__()
        self.map = narrow
        self.skips = [(options["skip"], options["order"]) for options in layers]
        self.layers = nn.ModuleList()
        width = narrow.width
        for options in layers:
            inputs = width + (narrow.width if options["skip"] in ("concat", "mix") else 0)
            if options["skip"] == "residual" and options["outputs"] != width:
                raise ValueError(f"a residual layer needs {width} outputs, not {options['outputs']}")
            own = {key: value for key, value in options.items() if key not in ("skip", "order")}
            self.layers.append(GroupLinear(inputs, **own))
            width = options["outputs"]
        self.width = width
        self.finish = nn.Identity()  # of rows; `Quantised` puts its rounding here

    def forward(self, ids):
        mapped = x = self.map(ids)
        for layer, (skip, order) in zip(self.layers, self.skips):
            y = layer(joined(mapped, x, layer.groups, skip, order))
            x = x + y if skip == "residual" else y
        return self.finish(x)


def hgt_layers(n: int, k: int, count: int, most_groups: int, width: int, activation: str = "relu") -> list:
    """The paper's unit: `count` layers whose outputs grow linearly from n to k, rounded to multiples of most_groups,
    with most_groups, most_groups / 2, ... groups, the mixer from the second layer on, then Reduce to `width`."""
    layers = []
    for i in range(count):
        layers.append({"outputs": n + round((k - n) * (i + 1) / count / most_groups) * most_groups,
                       "groups": max(most_groups >> i, 1), "shared": False, "bias": True, "norm": "none",
                       "epsilon": 1e-5, "activation": activation, "shuffle": False,
                       "skip": "mix" if i else "none", "order": "input_first"})
    layers.append(dict(layers[0], outputs=width, groups=1, activation="none"))
    return layers
