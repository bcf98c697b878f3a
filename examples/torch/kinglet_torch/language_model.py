"""A language model of an embedding, LSTM layers or MicroNet's decoder, and a softmax, as its config describes;
README.md has the keys."""
from torch import nn

from .techniques.adaptive import AdaptiveEmbedding, AdaptiveSoftmax
from .techniques.binned import BinnedEmbedding
from .techniques.class_factored import ClassFactoredSoftmax
from .techniques.coded import CodedEmbedding
from .techniques.define import DefineEmbedding
from .techniques.dpq import DpqEmbedding
from .techniques.full import FullEmbedding, FullSoftmax, LowRankEmbedding, LowRankSoftmax
from .techniques.lstm import LstmLayers
from .techniques.micronet import MicroNetDecoder
from .techniques.slim import HashedEmbedding, SlimEmbedding, SlimSoftmax

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
        self.input = make_embedding(config["vocabulary"], config["input"])
        width = self.input.width
        if "lstm" in config:
            self.lstm = LstmLayers(width, config["lstm"]["units"])
            width = config["lstm"]["units"][-1]
        else:
            self.decoder = MicroNetDecoder(width, **config["decoder"])
        self.output = make_softmax(config["vocabulary"], width, config["output"])
        self.dropout = nn.Dropout(dropout)
        for name in config["tied"]:
            self.tie(name)

    @property
    def context(self) -> nn.Module:
        return self.lstm if "lstm" in self.config else self.decoder

    def tie(self, name: str):
        """Ties the softmax's parameters `name` to those of the embedding, for DeFINE to those of its map."""
        source = self.input.map if self.config["input"]["kind"] == "define" else self.input
        shapes = [{key: value.shape for key, value in module.state_dict().items() if key.split(".")[0] == name}
                  for module in (source, self.output)]
        if shapes[0] != shapes[1] or not shapes[0]:
            raise ValueError(f"{name} cannot be tied: {shapes[0]} of the embedding, {shapes[1]} of the softmax")
        tied = getattr(source, name)
        # A list of its own, of the same parameters: `Quantised` rounds the two differently.
        setattr(self.output, name, tied if isinstance(tied, nn.Parameter) else type(tied)(
            tied if isinstance(tied, nn.ParameterList) else dict(tied.items())))

    def forward(self, ids, state=None, at=None):
        """ids [tokens, batch] -> log-probabilities [tokens, batch, vocabulary], hidden states [tokens, batch, width],
        and the state to continue with; None means the start of a text. `at` rounds activations (quantise.py)."""
        hidden, after = self.context(self.config["scale"] * self.input(ids), state, self.dropout, at)
        return self.output(hidden), hidden, after
