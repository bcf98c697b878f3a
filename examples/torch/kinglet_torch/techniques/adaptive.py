"""Bands of words, the rarer the narrower: adaptive softmax (Grave et al. 2017, "Efficient softmax approximation for
GPUs") and adaptive input representations (Baevski & Auli 2019).

Ids are sorted by frequency. Band b holds the words [bounds[b], bounds[b + 1]), bounds = [0, *cutoffs, words], with rows
of band_widths[b] numbers. projections[b], [width, band_widths[b]], leads from a row to the model's width, and its
transpose from a hidden state to the band; band 0 has one only if `project_first`.
"""
import torch
from torch import nn
from torch.nn import functional as F

from .full import initial


class Bands(nn.Module):
    """What both directions have, so that they can be tied."""

    def __init__(self, words: int, width: int, cutoffs: list, band_widths: list, project_first: bool):
        super().__init__()
        self.width = width
        self.bounds = [0, *cutoffs, words]
        sizes = [last - first for first, last in zip(self.bounds, self.bounds[1:])]
        if len(sizes) != len(band_widths) or min(sizes) < 1:
            raise ValueError(f"cutoffs {cutoffs} of {words} words and band_widths {band_widths} do not fit")
        if not project_first and band_widths[0] != width:
            raise ValueError(f"band 0 has no projection, so its rows must have {width} numbers, not {band_widths[0]}")
        self.tables = nn.ParameterList([initial(size, cols) for size, cols in zip(sizes, band_widths)])
        first = 0 if project_first else 1
        self.projections = nn.ParameterDict(
            {str(band): initial(width, band_widths[band]) for band in range(first, len(sizes))})

    def projection(self, band: int):
        """[width, band_widths[band]], or None."""
        return self.projections[str(band)] if str(band) in self.projections else None


class AdaptiveEmbedding(Bands):
    def forward(self, ids):
        rows = self.tables[0].new_zeros(*ids.shape, self.width)
        for band, table in enumerate(self.tables):
            inside = (ids >= self.bounds[band]) & (ids < self.bounds[band + 1])
            row = F.embedding(ids[inside] - self.bounds[band], table)
            projection = self.projection(band)
            rows[inside] = row if projection is None else row @ projection.t()
        return rows


class AdaptiveSoftmax(Bands):
    """The head decides among the words of band 0 and one cluster for each further band:
    log p(w) = log p(cluster) + log p(w | cluster). Clusters read what the words of band 0 read.
    """

    def __init__(self, words: int, width: int, cutoffs: list, band_widths: list, project_first: bool, bias: bool,
                 cluster_bias: bool, cluster_order: str):
        super().__init__(words, width, cutoffs, band_widths, project_first)
        tails = len(cutoffs)
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(len(t))) for t in self.tables] if bias else [])
        self.cluster_weight = initial(tails, self.tables[0].shape[1])
        self.cluster_bias = nn.Parameter(torch.zeros(tails)) if cluster_bias else None
        # Row of cluster_weight that stands for band 1, 2, ...
        self.cluster_rows = {"forward": list(range(tails)), "reversed": list(range(tails))[::-1]}[cluster_order]

    def projected(self, band: int, hidden):
        projection = self.projection(band)
        return hidden if projection is None else hidden @ projection

    def logits(self, band: int, hidden):
        bias = self.biases[band] if len(self.biases) else None
        return F.linear(self.projected(band, hidden), self.tables[band], bias)

    def forward(self, hidden):
        words = self.logits(0, hidden)
        clusters = F.linear(self.projected(0, hidden), self.cluster_weight, self.cluster_bias)
        head = torch.log_softmax(torch.cat([words, clusters], -1), -1)
        parts = [head[..., :words.shape[-1]]]
        for band, row in enumerate(self.cluster_rows, 1):
            cluster = head[..., words.shape[-1] + row, None]
            parts.append(cluster + torch.log_softmax(self.logits(band, hidden), -1))
        return torch.cat(parts, -1)
