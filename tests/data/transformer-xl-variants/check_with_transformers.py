#!/usr/bin/env python3
"""Compares golden_f64.tsv of the hf-* folders with Hugging Face's own TransfoXLLMHeadModel in float64. Needs
`transformers` with those classes (checked with 4.30.2) besides PyTorch.

    python3 check_with_transformers.py
"""
import glob
import json
import os

import torch
from transformers import TransfoXLConfig, TransfoXLLMHeadModel

# The classes round attention scores to float32 on the way through a mask.
torch.Tensor.float = lambda tensor: tensor
HERE = os.path.dirname(os.path.abspath(__file__))


def safetensors(path):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + length]), bytearray(data[8 + length:])
    types = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}
    return {name: torch.frombuffer(body, dtype=types[e["dtype"]], count=(e["data_offsets"][1] - e["data_offsets"][0]) //
                                   torch.tensor([], dtype=types[e["dtype"]]).element_size(),
                                   offset=e["data_offsets"][0]).view(e["shape"])
            for name, e in header.items() if name != "__metadata__"}


def state_of(folder):
    state = {}
    for path in sorted(glob.glob(folder + "/*.bin")):
        if "vocab" not in path:
            state.update(torch.load(path))
    for path in glob.glob(folder + "/*.safetensors"):
        state.update(safetensors(path))
    return state


for folder in sorted(glob.glob(HERE + "/hf-*")):
    model = TransfoXLLMHeadModel(TransfoXLConfig(**json.load(open(folder + "/config.json"))))
    result = model.load_state_dict(state_of(folder), strict=False)
    assert not result.unexpected_keys, result
    model.tie_weights()
    model = model.double().eval()
    ids = [int(t) for t in open(folder + "/tokens.txt").read().split()]
    golden = {int(line.split()[0]): float(line.split()[2]) for line in open(folder + "/golden_f64.tsv")}
    largest, mems = 0, None
    with torch.no_grad():
        for t in range(len(ids) - 1):
            out = model(torch.tensor([[ids[t]]]), mems=mems)
            mems = out.mems
            largest = max(largest, abs(out.prediction_scores.view(-1)[ids[t + 1]].item() - golden[t + 1]))
    print("%-40s largest difference %.2e, missing %s" % (os.path.basename(folder), largest, result.missing_keys))
