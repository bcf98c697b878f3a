"""Writes one fairseq language model with its options in the types that people's files have.

    make_option_kinds.py FOLDER    (needs numpy and omegaconf)

golden_options.tsv has the log-probabilities by the equations of fairseq's decoder, in float64.
"""

import argparse
import collections
import dataclasses
import enum
import math
import pathlib
import sys

import numpy
import torch
import torch.nn.functional as functional
from omegaconf import OmegaConf

WORDS, WIDTH, INNER, HEADS = 7, 4, 6, 2
TOKENS = [4, 5, 6, 4, 3, 5, 2, 4]


class Activation(enum.Enum):
    RELU = "relu"


@dataclasses.dataclass
class Model:
    _name: str
    decoder_layers: int
    decoder_embed_dim: float
    decoder_input_dim: int
    decoder_output_dim: int
    decoder_ffn_embed_dim: int
    decoder_attention_heads: int
    share_decoder_input_output_embed: bool
    decoder_normalize_before: bool
    no_decoder_final_norm: bool
    activation_fn: Activation


def state():
    generator = torch.Generator().manual_seed(5)

    def random(*shape):
        return torch.randint(-12, 13, shape, generator=generator) / 16

    tensors = collections.OrderedDict()
    tensors["decoder.version"] = torch.tensor([3.0])
    tensors["decoder.embed_tokens.weight"] = random(WORDS, WIDTH)
    layer = "decoder.layers.0."
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        tensors[f"{layer}self_attn.{name}.weight"] = random(WIDTH, WIDTH)
        tensors[f"{layer}self_attn.{name}.bias"] = random(WIDTH)
    for name, rows, columns in (("fc1", INNER, WIDTH), ("fc2", WIDTH, INNER)):
        tensors[f"{layer}{name}.weight"] = random(rows, columns)
        tensors[f"{layer}{name}.bias"] = random(rows)
    for name in (layer + "self_attn_layer_norm", layer + "final_layer_norm", "decoder.layer_norm"):
        tensors[name + ".weight"] = random(WIDTH) + 1
        tensors[name + ".bias"] = random(WIDTH)
    tensors["decoder.output_projection.weight"] = tensors["decoder.embed_tokens.weight"]
    return tensors


def log_probabilities(tensors, ids):
    d = {name: value.double() for name, value in tensors.items()}
    count, layer = len(ids), "decoder.layers.0."
    half = WIDTH // 2
    frequencies = torch.exp(torch.arange(half).double() * -(math.log(10000) / (half - 1)))
    angles = (torch.arange(count).double() + 2)[:, None] * frequencies
    x = d["decoder.embed_tokens.weight"][torch.tensor(ids)] * math.sqrt(WIDTH)
    x = x + torch.cat([angles.sin(), angles.cos()], 1)

    def linear(value, name):
        return functional.linear(value, d[name + ".weight"], d[name + ".bias"])

    def norm(value, name):
        return functional.layer_norm(value, (WIDTH,), d[name + ".weight"], d[name + ".bias"])

    h = norm(x, layer + "self_attn_layer_norm")
    q, k, v = (linear(h, f"{layer}self_attn.{each}_proj").view(count, HEADS, -1).transpose(0, 1)
               for each in "qkv")
    future = torch.full((count, count), -math.inf).double().triu(1)
    attention = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(WIDTH // HEADS) + future, -1)
    joined = (attention @ v).transpose(0, 1).reshape(count, WIDTH)
    x = x + linear(joined, layer + "self_attn.out_proj")
    h = torch.relu(linear(norm(x, layer + "final_layer_norm"), layer + "fc1"))
    x = norm(x + linear(h, layer + "fc2"), "decoder.layer_norm")
    return torch.log_softmax(x @ d["decoder.output_projection.weight"].t(), -1)


def main():
    folder = pathlib.Path(sys.argv[1])
    tensors = state()
    options = {"decoder_layers": 1, "decoder_embed_dim": WIDTH, "decoder_input_dim": WIDTH,
               "decoder_output_dim": WIDTH, "decoder_ffn_embed_dim": INNER,
               "decoder_attention_heads": HEADS, "share_decoder_input_output_embed": True,
               "decoder_normalize_before": True, "no_decoder_final_norm": False,
               "activation_fn": "relu"}
    task = {"_name": "language_modeling", "tokens_per_sample": 32}

    def save(name, args=None, model=None):
        cfg = None if model is None else {"model": model, "task": task}
        torch.save({"args": args, "cfg": cfg, "model": tensors}, folder / f"fairseq_{name}.pt")

    def arguments(change):
        return argparse.Namespace(arch="transformer_lm", tokens_per_sample=32,
                                  **{name: change(value) for name, value in options.items()})

    save("numpy", arguments(lambda value: numpy.int64(value) if type(value) is int
                            else numpy.bool_(value) if type(value) is bool else numpy.str_(value)))
    save("floats", arguments(lambda value: float(value) if type(value) is int else value))
    plain = {"_name": "transformer_lm", **options}
    torch.save({"args": None, "model": tensors, "cfg": OmegaConf.create(
        {"model": {**plain, "decoder_input_dim": "${model.decoder_embed_dim}"}, "task": task})},
        folder / "fairseq_omegaconf.pt")
    save("dataclass", model=Model(_name="transformer_lm", **{
        **options, "decoder_embed_dim": 4.0, "activation_fn": Activation.RELU}))
    answers = log_probabilities(tensors, [2] + TOKENS[:-1])
    (folder / "golden_options.tsv").write_text("".join(
        f"{p}\t{TOKENS[p]}\t{answers[p, TOKENS[p]]:.17g}\n" for p in range(len(TOKENS))))
    (folder / "ids_options.txt").write_text(" ".join(map(str, TOKENS)) + "\n")


if __name__ == "__main__":
    main()
