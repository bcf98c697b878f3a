"""One row for each word: the uncompressed table, and the same as a product of two matrices."""
import torch
from torch import nn
from torch.nn import functional as F


def initial(*shape: int) -> nn.Parameter:
    """Small random numbers, as every table of these modules starts. Much smaller ones train far more slowly."""
    return nn.Parameter(0.3 * torch.randn(*shape))


def straight_through(value, source):
    """The numbers of `value`, bit for bit, with the gradient of `source`."""
    return value.detach() + (source - source.detach())


class FullEmbedding(nn.Module):
    def __init__(self, words: int, width: int):
        super().__init__()
        self.width = width
        self.table = initial(words, width)

    def forward(self, ids):
        return F.embedding(ids, self.table)


class LowRankEmbedding(nn.Module):
    """row(w) = projection table[w]: words x width numbers as words x rank and width x rank ("projective")."""

    def __init__(self, words: int, width: int, rank: int):
        super().__init__()
        self.width = width
        self.table = initial(words, rank)
        self.projection = initial(width, rank)

    def forward(self, ids):
        return F.embedding(ids, self.table) @ self.projection.t()


class FullSoftmax(nn.Module):
    def __init__(self, words: int, width: int, bias: bool):
        super().__init__()
        self.table = initial(words, width)
        self.bias = nn.Parameter(torch.zeros(words)) if bias else None

    def forward(self, hidden):
        return torch.log_softmax(F.linear(hidden, self.table, self.bias), -1)


class LowRankSoftmax(nn.Module):
    """logit(w) = <table[w], projection^T h>; shapes as in LowRankEmbedding, so that both can be tied to it."""

    def __init__(self, words: int, width: int, rank: int, bias: bool):
        super().__init__()
        self.table = initial(words, rank)
        self.projection = initial(width, rank)
        self.bias = nn.Parameter(torch.zeros(words)) if bias else None

    def forward(self, hidden):
        return torch.log_softmax(F.linear(hidden @ self.projection, self.table, self.bias), -1)
