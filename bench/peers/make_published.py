#!/usr/bin/env python3
"""Writes a checkpoint of a published network with random weights, as its framework saves it, and ids to score.

    make_published.py transfo-xl-wt103 FOLDER [--ids 200]

FOLDER gets the checkpoint, the files that belong with it, ids.txt and made.json, which has the checkpoint's path and the
bytes that its largest tensor takes as float32.
"""
import argparse
import json
import math
import os

import torch
import yaml

import stream_transformer_xl


def random(*shape: int) -> torch.Tensor:
    return torch.randn(shape) / math.sqrt(shape[-1] if len(shape) > 1 else 16)


def transformer_xl(folder: str, preset: str) -> str:
    stream_transformer_xl.make(argparse.Namespace(preset=preset, folder=folder, ids=300, seed=1))
    return os.path.join(folder, "pytorch_model.bin")


def norm(state: dict, name: str, width: int):
    state[name + ".weight"], state[name + ".bias"] = torch.ones(width), torch.zeros(width)


def fairseq_wiki103(folder: str) -> str:
    """transformer_lm_wiki103 (Baevski & Auli 2019): adaptive ends, tied tables and projections, no final norm."""
    width, inner, layers = 1024, 4096, 16
    words = 267744  # with 4 specials, padded to a multiple of 8
    cutoffs = [20000, 60000]
    ends, state = [0, *cutoffs, words], {"decoder.version": torch.tensor([3.0])}
    for band, (first, end) in enumerate(zip(ends, ends[1:])):
        own = f"decoder.embed_tokens.embeddings.{band}."
        state[own + "0.weight"] = random(end - first, width // 4 ** band)
        state[own + "1.weight"] = random(width, width // 4 ** band)
        if band == 0:
            state["decoder.adaptive_softmax.head.word_proj.weight"] = state[own + "0.weight"]
            state["decoder.adaptive_softmax.head.class_proj.weight"] = random(len(cutoffs), width)
        else:
            tail = f"decoder.adaptive_softmax.tail.{band - 1}."
            state[tail + "0.weight"], state[tail + "2.weight"] = state[own + "1.weight"], state[own + "0.weight"]
    for layer in range(layers):
        own = f"decoder.layers.{layer}."
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            state[f"{own}self_attn.{name}.weight"], state[f"{own}self_attn.{name}.bias"] = random(width, width), random(width)
        norm(state, own + "self_attn_layer_norm", width)
        norm(state, own + "final_layer_norm", width)
        state[own + "fc1.weight"], state[own + "fc1.bias"] = random(inner, width), random(inner)
        state[own + "fc2.weight"], state[own + "fc2.bias"] = random(width, inner), random(width)
    settings = dict(decoder_layers=layers, decoder_embed_dim=width, decoder_input_dim=width, decoder_output_dim=width,
                    decoder_ffn_embed_dim=inner, decoder_attention_heads=8, adaptive_input=True, adaptive_input_factor=4,
                    adaptive_softmax_factor=4, adaptive_input_cutoff="20000,60000", adaptive_softmax_cutoff="20000,60000",
                    tie_adaptive_weights=True, tie_adaptive_proj=True, no_decoder_final_norm=True,
                    share_decoder_input_output_embed=False, decoder_learned_pos=False, no_scale_embedding=False,
                    activation_fn="relu", tokens_per_sample=512, max_target_positions=512)
    path = os.path.join(folder, "model.pt")
    torch.save({"args": argparse.Namespace(**settings), "model": state}, path)
    return path


def micronet_teacher(folder: str) -> str:
    """The network that MicroNet was distilled from (Yan et al. 2020)."""
    config = dict(n_vocab=267735, cutoffs=[3500, 25000], n_embed=512, n_embeds=[512, 256, 16], n_layers=16, n_head=8, n_k=64,
                  n_v=64, n_inner=1536, n_seq=96, n_cache=0, use_cache=False, pos_emb="trained")
    width, heads, inner = config["n_embed"], config["n_head"], config["n_inner"]
    ends, state = [0, *config["cutoffs"], config["n_vocab"]], {}
    for band, (size, columns) in enumerate(zip([end - first for first, end in zip(ends, ends[1:])], config["n_embeds"])):
        state[f"embed.layers.{band}.weight"] = state[f"loss.layers.{band}.weight"] = random(size, columns)
        state[f"loss.layers.{band}.bias"] = random(size)
        if band > 0:
            state[f"embed.projections.{band - 1}.weight"] = random(width, columns)
            state[f"loss.projections.{band - 1}.weight"] = random(columns, width)
    state["loss.clusters.weight"], state["loss.clusters.bias"] = random(len(ends) - 2, width), random(len(ends) - 2)
    for layer in range(config["n_layers"]):
        own, rows = f"layers.{layer}.", heads * (2 * config["n_k"] + config["n_v"])
        state[own + "pos_emb"] = random(config["n_k"], config["n_seq"] + 1)
        norm(state, own + "ln1", width)
        state[own + "qkv.weight"], state[own + "qkv.bias"] = random(rows, width), random(rows)
        state[own + "out.weight"] = random(width, heads * config["n_v"])
        norm(state, own + "ln2", width)
        state[own + "fc.0.weight"], state[own + "fc.0.bias"] = random(inner, width), random(inner)
        state[own + "fc.3.weight"], state[own + "fc.3.bias"] = random(width, inner), random(width)
    os.makedirs(os.path.join(folder, "models"), exist_ok=True)
    with open(os.path.join(folder, "config.yaml"), "w") as file:
        yaml.safe_dump(config, file)
    path = os.path.join(folder, "models", "model-1.pth")
    torch.save({"step": 1, "net": state}, path)
    return path


# name: (how it is made, words)
NETWORKS = {
    "transfo-xl-wt103": (lambda folder: transformer_xl(folder, "transfo-xl-wt103"), 267735),
    "wt103-base": (lambda folder: transformer_xl(folder, "wt103-base"), 267735),
    "fairseq-wiki103": (fairseq_wiki103, 267744),
    "micronet-teacher": (micronet_teacher, 267735),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network", choices=list(NETWORKS))
    parser.add_argument("folder")
    parser.add_argument("--ids", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(1)
    os.makedirs(options.folder, exist_ok=True)
    make, words = NETWORKS[options.network]
    checkpoint = make(options.folder)
    # The lower ids are the likelier, as 1 / rank.
    drawn = (words ** torch.rand(options.ids, dtype=torch.float64) - 1).long().clamp(0, words - 1)
    with open(os.path.join(options.folder, "ids.txt"), "w") as file:
        file.write(" ".join(map(str, drawn.tolist())))
    saved = torch.load(checkpoint, map_location="cpu")
    saved = saved.get("net", saved.get("model", saved))
    with open(os.path.join(options.folder, "made.json"), "w") as file:
        json.dump({"checkpoint": os.path.relpath(checkpoint, options.folder),
                   "largest_tensor": 4 * max(tensor.numel() for tensor in saved.values())}, file)


if __name__ == "__main__":
    main()
