#!/usr/bin/env python3
"""Writes the checkpoints of this folder: small GPT-2 models with random weights, saved by Hugging Face's transformers
(5.24), and the log-probabilities that its GPT2LMHeadModel gives in float64 for tokens.txt after <|endoftext|>. The
tokenizer of with-tokenizer is trained by its tokenizers (0.23), which also wrote segmentations.jsonl, a line for each of
../segmentations/input.jsonl.

    python3 make_variants.py          writes next to itself; needs torch, transformers and safetensors
"""
import json
import os
import shutil
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, write_lines  # noqa: E402

WORDS, POSITIONS = 37, 24
# What each file has that others lack.
VARIANTS = {
    "tied": {},
    "untied-relu": {"tie_word_embeddings": False, "activation_function": "relu", "n_inner": 21, "n_head": 1},
    "bare-four-layers": {"n_layer": 4, "layer_norm_epsilon": 1e-3, "activation_function": "gelu"},
    "old-file-with-masks": {"n_head": 4, "eos_token_id": None},
    "with-tokenizer": {"n_embd": 4, "n_head": 2, "n_layer": 1, "eos_token_id": 0, "vocab_size": 300},
}


def write_tokenizer(folder, size):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train(
        [f"{HERE}/../../../examples/wikitext2/calibration.txt"],
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    tokenizer.save(f"{folder}/tokenizer.json", pretty=False)
    tokenizer.model.save(folder)
    with open(f"{HERE}/../segmentations/input.jsonl") as inputs, open(f"{folder}/segmentations.jsonl", "w") as out:
        for line in inputs:
            made = tokenizer.encode(json.loads(line))
            out.write(json.dumps({"ids": made.ids, "pieces": made.tokens}, separators=(",", ":")) + "\n")


def save(name, model, folder):
    model.config.save_pretrained(folder)
    if name == "bare-four-layers":
        model.transformer.save_pretrained(folder)
    elif name == "old-file-with-masks":
        # As transformers 2 to 4.20 saved it: the buffers of the causal mask, and the tied table twice.
        tensors = dict(model.state_dict())
        for i in range(model.config.n_layer):
            mask = torch.tril(torch.ones(POSITIONS, POSITIONS, dtype=torch.uint8))
            tensors[f"transformer.h.{i}.attn.bias"] = mask.view(1, 1, POSITIONS, POSITIONS)
            tensors[f"transformer.h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
        torch.save(tensors, f"{folder}/pytorch_model.bin")
    else:
        model.save_pretrained(folder)
    if os.path.exists(f"{folder}/generation_config.json"):
        os.remove(f"{folder}/generation_config.json")


def main():
    for seed, (name, options) in enumerate(VARIANTS.items()):
        torch.manual_seed(seed)
        settings = {"n_embd": 12, "n_layer": 2, "n_head": 3, "eos_token_id": WORDS - 1, "vocab_size": WORDS}
        settings.update(options)
        words = settings["vocab_size"]
        model = GPT2LMHeadModel(
            GPT2Config(n_positions=POSITIONS, initializer_range=0.4, bos_token_id=None, **settings)
        ).eval()
        for parameter in model.parameters():  # biases and norms that matter
            if parameter.dim() == 1:
                parameter.data += 0.3 * torch.randn_like(parameter)
        folder = f"{HERE}/{name}"
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        save(name, model, folder)
        if name == "with-tokenizer":
            write_tokenizer(folder, words)
        start = [] if settings["eos_token_id"] is None else [settings["eos_token_id"]]
        ids = ids_of(words, POSITIONS - len(start))
        with torch.no_grad():
            answers = torch.log_softmax(model.double()(torch.tensor([start + ids])).logits[0], 1)
        first = 1 - len(start)
        golden = [f"{t}\t{ids[t]}\t{answers[t - first, ids[t]]:.15g}" for t in range(first, len(ids))]
        write_lines(folder, {"tokens.txt": [" ".join(map(str, ids))], "golden_f64.tsv": golden})


main()
