"""LSTM layers, each a torch.nn.LSTM of its own."""
import torch
from torch import nn


class LstmLayers(nn.ModuleList):
    def __init__(self, width: int, units: list):
        super().__init__([nn.LSTM(*pair) for pair in zip([width, *units], units)])
        self.points = ["recurrent.input"] + [f"recurrent.layers.{i}.output" for i in range(len(units))]

    def forward(self, x, state, dropout, at):
        """`at`, if any, rounds activations: each layer reads its own rounded output at the next token."""
        x = dropout(x) if at is None else at("recurrent.input", x)
        after = []
        for i, (layer, before) in enumerate(zip(self, state or [None] * len(self))):
            # The parameters of this call (functional_call), which PyTorch before 2 does not set here.
            layer._flat_weights = [getattr(layer, name) for name in layer._flat_weights_names]
            if at is None:
                x, before = layer(x, before)
                x = dropout(x)
            else:
                outputs = []
                for token in x:
                    _, (hidden, cell) = layer(token[None], before)
                    before = at(f"recurrent.layers.{i}.output", hidden), cell
                    outputs.append(before[0])
                x = torch.cat(outputs)
            after.append(before)
        return x, after
