"""A recurrent language model of an embedding, LSTM layers and a softmax, as its config describes; README.md has the keys."""
import torch
from torch import nn

import recipe
from techniques.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from techniques.binned import BinnedEmbedding
from techniques.class_factored import ClassFactoredSoftmax
from techniques.coded import CodedEmbedding
from techniques.define import DefineEmbedding
from techniques.dpq import DpqEmbedding
from techniques.full import FullEmbedding, FullSoftmax, LowRankEmbedding, LowRankSoftmax
from techniques.slim import HashedEmbedding, SlimEmbedding, SlimSoftmax

FORMAT = "kinglet-torch-1"
EMBEDDINGS = {"full": FullEmbedding, "low_rank": LowRankEmbedding, "adaptive": AdaptiveEmbedding,
              "dpq": DpqEmbedding, "coded": CodedEmbedding, "slim": SlimEmbedding, "hashed": HashedEmbedding}
SOFTMAXES = {"full": FullSoftmax, "low_rank": LowRankSoftmax, "adaptive": AdaptiveSoftmax, "slim": SlimSoftmax,
             "class_factored": ClassFactoredSoftmax}


def make_embedding(words: int, config: dict) -> nn.Module:
    options = {key: value for key, value in config.items() if key != "kind"}
    if config["kind"] == "define":
        return DefineEmbedding(make_embedding(words, options["map"]), options["layers"])
    if config["kind"] == "binned":
        bounds = [0, *options["cutoffs"], words]
        bins = [make_embedding(last - first, one) for first, last, one in zip(bounds, bounds[1:], options["bins"])]
        return BinnedEmbedding(words, options["cutoffs"], bins)
    return EMBEDDINGS[config["kind"]](words, **options)


def make_softmax(words: int, width: int, config: dict) -> nn.Module:
    options = {key: value for key, value in config.items() if key != "kind"}
    return SOFTMAXES[config["kind"]](words, width, **options)


class LanguageModel(nn.Module):
    def __init__(self, config: dict, dropout: float = 0.0):
        super().__init__()
        self.config = config
        units = config["lstm"]["units"]
        self.input = make_embedding(config["vocabulary"], config["input"])
        widths = [self.input.width, *units]
        self.lstm = nn.ModuleList([nn.LSTM(*pair) for pair in zip(widths, units)])
        self.output = make_softmax(config["vocabulary"], units[-1], config["output"])
        self.dropout = nn.Dropout(dropout)
        for name in config["tied"]:
            self.tie(name)

    def tie(self, name: str):
        """Ties the softmax's parameters `name` to those of the embedding, for DeFINE to those of its map."""
        source = self.input.map if self.config["input"]["kind"] == "define" else self.input
        shapes = [{key: value.shape for key, value in module.state_dict().items() if key.split(".")[0] == name}
                  for module in (source, self.output)]
        if shapes[0] != shapes[1] or not shapes[0]:
            raise ValueError(f"{name} cannot be tied: {shapes[0]} of the embedding, {shapes[1]} of the softmax")
        setattr(self.output, name, getattr(source, name))

    def forward(self, ids, state=None):
        """ids [tokens, batch] -> hidden states [tokens, batch, width], and the state to continue with; None means zeros."""
        x = self.dropout(self.config["scale"] * self.input(ids))
        after = []
        for layer, before in zip(self.lstm, state or [None] * len(self.lstm)):
            x, last = layer(x, before)
            x = self.dropout(x)
            after.append(last)
        return x, after


def save(model: LanguageModel, path: str):
    """Writes config and weights, from which `load` makes the model again, and next to them the recipe for `kinglet convert`."""
    torch.save({"format": FORMAT, "config": model.config, "model": model.state_dict()}, path)
    recipe.write_next_to(path, model.config)


def load(path: str) -> LanguageModel:
    """The model of a checkpoint, in eval mode."""
    checkpoint = torch.load(path, map_location="cpu")
    if checkpoint.get("format") != FORMAT:
        raise ValueError(f"{path}: expected format {FORMAT!r}, found {checkpoint.get('format')!r}")
    model = LanguageModel(checkpoint["config"])
    model.load_state_dict(checkpoint["model"])
    return model.eval()
