"""Differentiable product quantisation (Chen, Li & Sun 2020, "Differentiable Product Quantization for End-to-End
Embedding Compression").

Training keeps a query row for each word. Position j of D compares its part of the query with K keys; the best key's
number is the code, and value j of that number is the sub-vector. Inference needs the codes and the values only.
"""
import torch
from torch import nn
from torch.nn import functional as F

from .full import initial, straight_through


class DpqEmbedding(nn.Module):
    """SX ("softmax"): responses are dot products with the keys, values are matrices of their own, gradients pass
    through a softmax. VQ ("vector quantisation"): responses are negative squared distances and the values are the keys;
    gradients pass straight through to the query, and `penalty` draws keys and queries together.

    query [words, D * key_width]; keys [D or 1, K, key_width]; values [D or 1, K, value_width], absent in VQ; the
    first dimension is 1 if `shared`. value_width = width / D for "concatenate", width for "mean" (additive codes).
    Responses are normalised over the batch: "choices" with K statistics that all positions have in common, as the
    authors' TensorFlow code does, "responses" with D * K statistics, position by position.
    """

    def __init__(self, words: int, width: int, positions: int, choices: int, method: str, shared: bool, combine: str,
                 query_width: int, batch_norm: str, epsilon: float):
        super().__init__()
        if combine == "concatenate" and width % positions or query_width % positions:
            raise ValueError(f"{positions} positions do not divide width {width} and query_width {query_width}")
        self.width, self.positions, self.combine = width, positions, combine
        value_width = {"concatenate": width // positions, "mean": width}[combine]
        key_width = query_width // positions
        matrices = 1 if shared else positions
        self.query = initial(words, query_width)
        self.keys = initial(matrices, choices, key_width)
        self.values = {"sx": initial(matrices, choices, value_width), "vq": None}[method]
        if method == "vq" and key_width != value_width:
            raise ValueError(f"VQ's keys are its values: query_width must be {value_width * positions}")
        statistics = {"choices": choices, "responses": positions * choices, "none": 0}[batch_norm]
        self.batch_norm = nn.BatchNorm1d(statistics, eps=epsilon, affine=False) if statistics else None
        self.penalty = torch.zeros(())  # to be added to the loss; VQ only
        self.finish = nn.Identity()  # of sub-vectors; `Quantised` puts VQ's rounding here, as the keys stay as they are

    def responses(self, query):
        """[n, D, key_width] -> [n, D, K]."""
        keys = self.keys.expand(self.positions, -1, -1)
        found = torch.einsum("ndi,dki->ndk", query, keys)
        if self.values is None:
            found = 2 * found - query.square().sum(-1, keepdim=True) - keys.square().sum(-1)
        if self.batch_norm is None:
            return found
        return self.batch_norm(found.reshape(-1, self.batch_norm.num_features)).view_as(found)

    def queries(self, ids):
        return F.embedding(ids.reshape(-1), self.query).unflatten(-1, (self.positions, -1))

    def looked_up(self, codes):
        """[n, D] -> [n, D, value_width]."""
        values = (self.keys if self.values is None else self.values).expand(self.positions, -1, -1)
        return values[torch.arange(self.positions), codes]

    @torch.no_grad()
    def codes(self, ids):
        """What inference stores: [n, D], each the first largest of K responses. The module must be in eval mode."""
        return self.responses(self.queries(ids)).argmax(-1)

    def forward(self, ids):
        query = self.queries(ids)
        responses = self.responses(query)
        codes = responses.argmax(-1)
        vectors = self.finish(self.looked_up(codes))
        if self.training and self.values is not None:
            soft = torch.softmax(responses, -1)
            weights = straight_through(F.one_hot(codes, soft.shape[-1]).to(soft.dtype), soft)
            vectors = torch.einsum("ndk,dki->ndi", weights, self.values.expand(self.positions, -1, -1))
        elif self.training:
            self.penalty = (vectors - query.detach()).square().mean() + (vectors.detach() - query).square().mean()
            vectors = straight_through(vectors, query)
        rows = vectors.flatten(-2) if self.combine == "concatenate" else vectors.mean(-2)
        return rows.view(*ids.shape, self.width)
