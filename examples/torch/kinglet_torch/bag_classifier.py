"""Classes of texts from the mean of their words' vectors (Chen, Li & Sun 2020, section 3.3: text classification with
compressed embeddings)."""
import torch
from torch import nn


class BagClassifier(nn.Module):
    """ids [texts, length] -> logits [texts, classes].

    `embedding` is any module of techniques/ that maps ids to vectors. Short texts are filled up with the word
    `padding`, which is not in the mean; to the maximum it is a vector of zeros. With hidden units, features and units
    are normalised and rectified before each dense layer.
    """

    def __init__(self, embedding: nn.Module, classes: int, hidden: int = 0, max_pool: bool = False, padding: int = 0):
        super().__init__()
        features = embedding.width * (2 if max_pool else 1)
        self.embedding, self.max_pool, self.padding = embedding, max_pool, padding
        self.hidden = None
        if hidden:
            self.hidden = nn.Sequential(nn.BatchNorm1d(features, eps=1e-3), nn.ReLU(), nn.Linear(features, hidden),
                                        nn.BatchNorm1d(hidden, eps=1e-3), nn.ReLU())
        self.output = nn.Linear(hidden or features, classes)

    def forward(self, ids):
        known = (ids != self.padding).unsqueeze(-1)
        vectors = self.embedding(ids) * known
        features = vectors.sum(1) / known.sum(1)
        if self.max_pool:
            features = torch.cat([features, vectors.amax(1)], -1)
        return self.output(features if self.hidden is None else self.hidden(features))
