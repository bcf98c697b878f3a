"""Bands of words that are embedded by different techniques: frequent words by one, rare words by another."""
from torch import nn


class BinnedEmbedding(nn.Module):
    """Words [bounds[i], bounds[i + 1]), bounds = [0, *cutoffs, words], are embedded by bins[i], which counts its own
    words from 0. All bins give vectors of the same width."""

    def __init__(self, words: int, cutoffs: list, bins: list):
        super().__init__()
        self.bounds = [0, *cutoffs, words]
        self.bins = nn.ModuleList(bins)
        self.width = bins[0].width
        if len(bins) != len(cutoffs) + 1 or any(one.width != self.width for one in bins):
            raise ValueError(f"{len(cutoffs)} cutoffs and bins of widths {[one.width for one in bins]} do not fit")

    def forward(self, ids):
        rows = None
        for first, last, one in zip(self.bounds, self.bounds[1:], self.bins):
            inside = (ids >= first) & (ids < last)
            if not inside.any():  # a batch norm cannot train on nothing
                continue
            part = one(ids[inside] - first)
            rows = part.new_zeros(*ids.shape, self.width) if rows is None else rows
            rows[inside] = part
        return rows
