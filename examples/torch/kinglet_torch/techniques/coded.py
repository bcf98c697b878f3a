"""Codes without queries: KD codes (Chen, Min & Sun 2018, "Learning K-way D-dimensional Discrete Codes for Compact
Embedding Representations") and additive codes (Shu & Nakayama 2018, "Compressing Word Embeddings via Deep Compositional
Code Learning")."""
import torch
from torch import nn
from torch.nn import functional as F

from .full import initial, straight_through


class CodedEmbedding(nn.Module):
    """row(w) = P combine_j codebook[first_j + codes[w, j]] + b over D positions of K choices; first_j = j * K, or 0 for
    all positions if `shared`. Shu & Nakayama: combine "sum", no projection. KD: "mean", with or without projection.

    codebook [D * K or K, code_width]; projection [width, code_width] and bias [width] where there are such. Learned
    codes are the first largest of code_logits [words, D, K], through whose softmax gradients pass; known ones are
    codes [words, D].
    """

    def __init__(self, words: int, width: int, positions: int, choices: int, combine: str, shared: bool,
                 code_width: int, projection: bool, bias: bool, learned: bool):
        super().__init__()
        if combine not in ("sum", "mean"):
            raise ValueError(f"combine must be sum or mean, not {combine!r}")
        if not projection and (bias or code_width != width):
            raise ValueError("without a projection there is no bias and code_width is width")
        self.width, self.positions, self.choices, self.combine = width, positions, choices, combine
        self.codebook = initial(choices if shared else positions * choices, code_width)
        self.projection = initial(width, code_width) if projection else None
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None
        self.code_logits = initial(words, positions, choices) if learned else None
        codes = None if learned else torch.randint(choices, (words, positions), dtype=torch.int32)
        self.register_buffer("codes", codes)

    def choices_of(self, ids):
        """[..., D]."""
        if self.code_logits is None:
            return self.codes[ids].long()
        return self.code_logits[ids].argmax(-1)

    def forward(self, ids):
        # [D, K, code_width], or [1, K, code_width]
        books = self.codebook.unflatten(0, (-1, self.choices)).expand(self.positions, -1, -1)
        codes = self.choices_of(ids)
        if self.training and self.code_logits is not None:
            weights = straight_through(F.one_hot(codes, self.choices), torch.softmax(self.code_logits[ids], -1))
            vectors = torch.einsum("...dk,dki->...di", weights, books)
        else:
            vectors = books[torch.arange(self.positions), codes]
        rows = vectors.sum(-2) if self.combine == "sum" else vectors.mean(-2)
        return rows if self.projection is None else F.linear(rows, self.projection, self.bias)
