"""Slim embeddings (Li, Kulhanek, Wang, Zhao & Wu 2018, "Slim Embedding Layers for Recurrent Neural Language Models")
and HashedNets (Chen, Wilson, Tyree, Weinberger & Chen 2015).

A row is K sub-vectors one after the other, each taken from a pool that all words share. Which ones is fixed before
training: shuffled, so that all sub-vectors serve equally often, or computed by a hash.
"""
import torch
from torch import nn
from torch.nn import functional as F

from .full import initial
from .hashing import hashed_mapping


def shuffled(entries: int, pool: int, seed: int) -> torch.Tensor:
    """[entries]: numbers below `pool`, each floor(entries / pool) or one more times, in random order."""
    order = torch.randperm(entries, generator=torch.Generator().manual_seed(seed))
    return (torch.arange(entries) % pool)[order]


def keep_mapping(module: nn.Module, kind: str, seed: int, words: int, pools: list, shuffle):
    """The buffer `mapping`, int32 [words, K]: saved with the model if shuffled, computed again if hashed."""
    mapping = {"shuffled": shuffle, "hashed": lambda: hashed_mapping(words, pools, seed)}[kind]()
    module.register_buffer("mapping", mapping.to(torch.int32), persistent=kind == "shuffled")


class SlimEmbedding(nn.Module):
    """row(w) = concat_j sub_vectors[mapping[w, j]]; sub_vectors [M, width / K], one pool for all positions."""

    def __init__(self, words: int, width: int, positions: int, pool: int, mapping: str, seed: int):
        super().__init__()
        if width % positions:
            raise ValueError(f"{positions} positions do not divide width {width}")
        self.width = width
        self.sub_vectors = initial(pool, width // positions)
        keep_mapping(self, mapping, seed, words, [pool] * positions,
                     lambda: shuffled(words * positions, pool, seed).view(words, positions))

    def forward(self, ids):
        return F.embedding(self.mapping[ids].long(), self.sub_vectors).flatten(-2)


class HashedEmbedding(SlimEmbedding):
    """HashedNets' case: every single number is shared (sub-vectors of length one) and no mapping is stored."""

    def __init__(self, words: int, width: int, pool: int, seed: int):
        super().__init__(words, width, width, pool, "hashed", seed)


class SlimSoftmax(nn.Module):
    """logit(w) = sum_j <h_j, a(w, j)> + bias[w], a(w, j) = pool j's sub-vector number mapping[w, j] (section 3 of the
    paper). Pools are disjoint, so <h_j, a> is computed once for each of the M sub-vectors and then only added.

    sub_vectors [sum of pools, width / K], pool 0 first; mapping counts from the beginning of its position's pool.
    """

    def __init__(self, words: int, width: int, pools: list, mapping: str, seed: int, bias: bool):
        super().__init__()
        if width % len(pools):
            raise ValueError(f"{len(pools)} pools do not divide width {width}")
        self.pools = pools
        self.sub_vectors = initial(sum(pools), width // len(pools))
        self.bias = nn.Parameter(torch.zeros(words)) if bias else None
        keep_mapping(self, mapping, seed, words, pools, lambda: torch.stack(
            [shuffled(words, pool, seed + j) for j, pool in enumerate(pools)], 1))

    def logits(self, hidden):
        parts = hidden.unflatten(-1, (len(self.pools), -1))
        total = 0 if self.bias is None else self.bias
        for j, pool in enumerate(self.sub_vectors.split(self.pools)):
            partial = parts[..., j, :] @ pool.t()
            total = total + partial.index_select(-1, self.mapping[:, j].long())
        return total

    def forward(self, hidden):
        return torch.log_softmax(self.logits(hidden), -1)
