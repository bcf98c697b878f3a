"""Class-factored softmax (Goodman 2001, "Classes for fast maximum entropy training")."""
import torch
from torch import nn
from torch.nn import functional as F

from .full import initial


class ClassFactoredSoftmax(nn.Module):
    """log p(w) = log p(class of w) + log p(w | class of w). Ids are ordered by class: class c has
    class_sizes[c] words after those of the classes before. table [words, width], bias [words]; class_table
    [classes, width], class_bias [classes]."""

    def __init__(self, words: int, width: int, class_sizes: list, bias: bool):
        super().__init__()
        if sum(class_sizes) != words or min(class_sizes) < 1:
            raise ValueError(f"classes of {class_sizes} words do not make {words}")
        self.class_sizes = class_sizes
        self.class_table = initial(len(class_sizes), width)
        self.table = initial(words, width)
        self.class_bias = nn.Parameter(torch.zeros(len(class_sizes))) if bias else None
        self.bias = nn.Parameter(torch.zeros(words)) if bias else None

    def forward(self, hidden):
        classes = torch.log_softmax(F.linear(hidden, self.class_table, self.class_bias), -1)
        logits = F.linear(hidden, self.table, self.bias).split(self.class_sizes, -1)
        return torch.cat([classes[..., c, None] + torch.log_softmax(part, -1) for c, part in enumerate(logits)], -1)
