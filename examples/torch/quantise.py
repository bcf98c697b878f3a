#!/usr/bin/env python3
"""What `kinglet convert` does to a checkpoint with a "prune" and a "quantise" pass, done in PyTorch, so that its answers
can be checked: the network with the same pruned and n-bit weights, evaluated in float64.

    quantise.py model.pt --prune 0.5 --bits 9 --ids tokens.txt --golden golden.tsv

The rules are those of docs/NUMERICS.md. They are computed in float32, as the converter and MicroNet's framework do.
Activations are not quantised.
"""
import argparse
import math

import numpy
import torch
from torch import nn

from evaluate import log_probabilities, write_golden
from language_model import LanguageModel, load
from techniques.binned import BinnedEmbedding
from techniques.coded import CodedEmbedding
from techniques.define import DefineEmbedding
from techniques.dpq import DpqEmbedding
from techniques.full import FullEmbedding


def pruned(matrix, share: float):
    """The tensor without its floor(share * size) smallest magnitudes; of equal ones the first go first."""
    order = numpy.argsort(numpy.abs(matrix), axis=None, kind="stable")
    kept = matrix.copy().reshape(-1)
    kept[order[:math.floor(share * matrix.size)]] = 0
    return kept.reshape(matrix.shape)


def quantised_rows(matrix, bits: int):
    """Codes q = round(w / s), halves to even, with s = max |row| / (2^(bits - 1) - 1); q times s without its low `bits`
    mantissa bits, so that the product is exact. A row of zeros stays zeros."""
    levels = numpy.float32(2 ** (bits - 1) - 1)
    largest = numpy.abs(matrix).max(-1, keepdims=True)
    inverse = levels / numpy.where(largest > 0, largest, numpy.float32(1))
    codes = numpy.rint(matrix * inverse)
    scale = (numpy.float32(1) / inverse).view(numpy.uint32) & numpy.uint32(0xffffffff << bits & 0xffffffff)
    return codes * scale.view(numpy.float32)


def quantised_vector(vector, bits: int):
    """Codes over one divisor, the inverse of that s, which keeps all its bits."""
    largest = numpy.abs(vector).max()
    if largest == 0:
        return vector
    divisor = numpy.float32(2 ** (bits - 1) - 1) / largest
    return numpy.rint(vector * divisor) / divisor


@torch.no_grad()
def as_stored(module: nn.Module, words: int) -> nn.Module:
    """The embedding as a model file has it: a DeFINE unit is a table, computed in float64 and rounded to float32; of DPQ
    the queries and keys that made the codes stay as they are."""
    if isinstance(module, BinnedEmbedding):
        for b, (first, last) in enumerate(zip(module.bounds, module.bounds[1:])):
            module.bins[b] = as_stored(module.bins[b], last - first)
    if not isinstance(module, DefineEmbedding):
        return module
    table = FullEmbedding(words, module.width)
    table.table.data = module.double()(torch.arange(words)).float()
    return table


def is_stored(name: str, model: LanguageModel) -> bool:
    """Whether a parameter is a tensor of the model file too, with the same rows."""
    parent = model.get_submodule(name.rpartition(".")[0])
    if name.startswith("output.projection") or isinstance(parent, CodedEmbedding) and parent.bias is not None:
        raise ValueError(f"{name}: a file has it in another form, whose rows are quantised")
    if not isinstance(parent, DpqEmbedding):
        return True
    if parent.values is None:
        raise ValueError(f"{name}: VQ's keys, which choose the codes, are its values; SX only")
    return name.endswith(".values")


@torch.no_grad()
def compress(model: LanguageModel, share: float, bits: int) -> LanguageModel:
    """Changes the float32 model and gives it back in float64, ready to be evaluated."""
    model.input = as_stored(model.input, model.config["vocabulary"])
    for name, parameter in model.named_parameters():
        if not is_stored(name, model):
            continue
        values = parameter.numpy()
        if name.startswith("lstm.") and values.ndim == 2:
            values = pruned(values, share)
        rule = quantised_vector if values.ndim == 1 else quantised_rows
        parameter.copy_(torch.from_numpy(rule(values, bits)))
    return model.double()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("--prune", type=float, default=0.0, help="share of each LSTM matrix that becomes zero")
    parser.add_argument("--bits", type=int, default=9)
    parser.add_argument("--ids", required=True, help="token ids, separated by white space")
    parser.add_argument("--golden", required=True, help="where to write the log-probabilities")
    options = parser.parse_args()
    with open(options.ids) as file:
        ids = [int(token) for token in file.read().split()]
    model = compress(load(options.checkpoint), options.prune, options.bits)
    write_golden(options.golden, ids, log_probabilities(model, ids))


if __name__ == "__main__":
    main()
