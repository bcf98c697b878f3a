#!/usr/bin/env python3
"""Converts Transformer-XL checkpoints of random settings and compares their log-probabilities with the equations of
make_variants.py in float64: kimiyoung's modules, his state dicts with a configuration, Hugging Face's folders; tables
and projections tied, untied and stored once.

    python3 sweep.py KINGLET [COUNT [SEED]]
"""
import os
import random
import subprocess
import sys
import tempfile

import make_variants
import torch
from make_variants import Shape, hugging_face, kimi, weights


def random_shape(draw, hugging):
    words = draw.randint(2, 60)
    cutoffs = sorted(draw.sample(range(1, words), min(draw.randint(0, 3), words - 1)))
    d, div_val = 2 * draw.randint(1, 9), draw.choice((1, 1, 2, 4))
    least = div_val ** len(cutoffs)
    e = max(least, d if draw.random() < 0.5 else draw.randint(1, 24))
    projected = div_val > 1 or e != d
    same_length = draw.random() < 0.5
    mem_len = draw.randint(1 if same_length else 0, 14)
    return Shape(words, cutoffs, d, e, draw.randint(1, 4), draw.randint(1, 8), draw.randint(1, 20), draw.randint(1, 2),
                 mem_len, div_val=div_val, tied=draw.random() < 0.6, same_length=same_length,
                 ties=[draw.random() < 0.5 if projected else None for _ in range(len(cutoffs) + 1)],
                 clamp_len=draw.choice((-1, draw.randint(1, 16))), pre_lnorm=draw.random() < 0.5,
                 untie_r=hugging and draw.random() < 0.5, zero_start=hugging, forward_clusters=hugging)


def write_state_dict(folder, shape, draw):
    """Of tied tensors one is left out, and config.yaml states the ties."""
    state = weights(shape, torch.Generator().manual_seed(sum(map(ord, "state"))), torch.float32)
    for key in [key for key in state if key.startswith("crit.out_")]:
        others = [k for k in state if k != key and state[k] is state[key]]
        if others and len(others) == 1 and draw.random() < 0.8:
            del state[draw.choice((key, others[0]))]
    torch.save(state, folder + "/model.pt")
    settings = {"n_token": shape.words, "d_model": shape.d, "d_embed": shape.e, "n_head": shape.heads,
                "d_head": shape.head_size, "n_layer": shape.layers, "mem_len": shape.mem_len,
                "clamp_len": shape.clamp_len, "same_length": shape.same_length, "div_val": shape.div_val,
                "cutoffs": shape.cutoffs, "pre_lnorm": shape.pre_lnorm, "tied": shape.tied,
                "tie_projs": [bool(tie) for tie in shape.ties]}
    with open(folder + "/config.yaml", "w") as out:
        out.writelines(f"{key}: {str(value).lower()}\n" for key, value in settings.items())


def main():
    kinglet, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    for number in range(seed, seed + count):
        draw = random.Random(number)
        with tempfile.TemporaryDirectory() as top:
            make_variants.HERE = top
            form = ("module", "state", "hugging")[number % 3]
            shape = random_shape(draw, form == "hugging")
            folder = os.path.join(top, "hf-sweep" if form == "hugging" else "kimi-" + form)
            if form == "hugging":
                hugging_face("sweep", shape, draw.choice(("bin", "safetensors", "shards")), omit=draw.random() < 0.5)
            else:
                kimi(form, shape, zip_file=draw.random() < 0.5)
            checkpoint = folder if form == "hugging" else folder + "/model.pt"
            if form == "state":
                write_state_dict(folder, shape, draw)
            made = subprocess.run([kinglet, "convert", checkpoint, "-o", top + "/m.kgl", "--golden",
                                   folder + "/golden_f64.tsv", "--ids", folder + "/tokens.txt", "--tolerance", "1e-6"],
                                  capture_output=True, text=True, check=False)
            if made.returncode:
                sys.exit(f"{number}, {form}, {vars(shape)}: {made.stderr}")
    print(f"{count} checkpoints: largest difference below 1e-6")


if __name__ == "__main__":
    main()
