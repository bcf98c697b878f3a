#!/usr/bin/env python3
"""Trains a small GPT-2 with transformers on one processor, as the language model of compare.py's case gpt2.

    bench/peers/train_gpt2.py FOLDER --train wiki.train.tokens --test wiki.test.tokens [--minutes 35] [--seed 1]

Byte-level pieces are trained with tokenizers. FOLDER gets a checkpoint as transformers writes it, with vocab.json and
merges.txt, calibration.txt (the beginning of the training text) and ids.txt (the test text). Every training text begins with
<|endoftext|>, as kinglet's streams of the family do. Needs PyTorch, transformers and tokenizers from PyPI.
"""
import argparse
import math
import os
import pathlib
import time

os.environ["OMP_NUM_THREADS"] = "1"
import tokenizers  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402

END, ROWS, POSITIONS = "<|endoftext|>", 8, 256


def pieces(tokenizer, path: pathlib.Path) -> list:
    return tokenizer.encode(path.read_text()).ids


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--test", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=35)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--words", type=int, default=8192)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    torch.set_num_threads(1)
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train([str(options.train)], vocab_size=options.words, special_tokens=[END])
    tokenizer.save_model(str(options.folder))
    ids = pieces(tokenizer, options.train)
    (options.folder / "calibration.txt").write_text(options.train.read_text()[:20000])
    (options.folder / "ids.txt").write_text(" ".join(map(str, pieces(tokenizer, options.test))) + "\n")
    end = tokenizer.token_to_id(END)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.get_vocab_size(), n_positions=POSITIONS, n_embd=256, n_layer=4, n_head=4,
        bos_token_id=end, eos_token_id=end, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    model = transformers.GPT2LMHeadModel(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0.01)
    stream = torch.tensor(ids)
    before = torch.full((ROWS, 1), end)
    began, steps, mean = time.monotonic(), 0, 0.0
    while (done := (time.monotonic() - began) / (60 * options.minutes)) < 1:
        for group in optimiser.param_groups:
            group["lr"] = 1.5e-3 * min(1, (steps + 1) / 100) * 0.5 * (1 + math.cos(math.pi * done))
        starts = torch.randint(len(stream) - POSITIONS, (ROWS,))
        rows = torch.stack([stream[i:i + POSITIONS] for i in starts.tolist()])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(torch.cat([before, rows[:, :-1]], 1)).logits
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), rows.flatten())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        steps += 1
        mean = loss.item() if steps == 1 else 0.95 * mean + 0.05 * loss.item()
        if steps % 25 == 0:
            print(f"{steps} steps, {100 * done:.0f} %, loss {mean:.3f}", flush=True)
    model.save_pretrained(options.folder)


if __name__ == "__main__":
    main()
