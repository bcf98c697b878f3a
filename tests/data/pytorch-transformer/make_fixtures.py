#!/usr/bin/env python3
"""Writes the checkpoints of this folder: Transformers of pytorch/examples word_language_model with random weights,
saved by torch.save as its main.py saves them, and as a state dict, with log-probabilities that PyTorch's own
nn.TransformerEncoder gives in float64. Shares nothing with kinglet. Needs PyTorch (made with 2.15).

    python3 make_fixtures.py          writes next to itself
"""
import math
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from fixtures import named_class  # noqa: E402

WORDS, WIDTH, HEADS, INNER, LAYERS, POSITIONS, TOKENS = 13, 12, 3, 10, 2, 24, 20


PositionalEncoding = named_class("model", "PositionalEncoding", torch.nn.Module)
TransformerModel = named_class("model", "TransformerModel", torch.nn.Transformer)


def network(generator):
    model = TransformerModel(d_model=WIDTH, nhead=HEADS, dim_feedforward=INNER, num_encoder_layers=LAYERS,
                             num_decoder_layers=0)
    model.model_type, model.src_mask, model.ninp = "Transformer", None, WIDTH
    model.pos_encoder = PositionalEncoding()
    model.pos_encoder.dropout = torch.nn.Dropout(0.2)
    position = torch.arange(POSITIONS, dtype=torch.float).unsqueeze(1)
    steps = torch.exp(torch.arange(0, WIDTH, 2).float() * (-math.log(10000.0) / WIDTH))
    table = torch.zeros(POSITIONS, WIDTH)
    table[:, 0::2], table[:, 1::2] = torch.sin(position * steps), torch.cos(position * steps)
    model.pos_encoder.register_buffer("pe", table.unsqueeze(1))
    model.input_emb = torch.nn.Embedding(WORDS, WIDTH)
    model.decoder = torch.nn.Linear(WIDTH, WORDS)
    for parameter in model.parameters():
        scale = 0.4 if parameter.dim() == 1 else 1.2 / math.sqrt(parameter.shape[-1])
        parameter.data = torch.randn(parameter.shape, generator=generator) * scale + (parameter.dim() == 1)
    return model


def log_probabilities(model, ids):
    model = model.double().eval()
    mask = torch.full((len(ids), len(ids)), -math.inf, dtype=torch.float64).triu(1)
    with torch.no_grad():
        hidden = model.input_emb(torch.tensor(ids)[:, None]) * math.sqrt(WIDTH)
        hidden = hidden + model.pos_encoder.pe[:len(ids)]
        hidden = model.encoder(hidden, mask=mask)
        return torch.log_softmax(model.decoder(hidden)[:, 0], 1)


def write(name, content, model, more=()):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    torch.save(content, folder / "model.pt")
    generator = torch.Generator().manual_seed(7)
    ids = torch.randint(WORDS, (TOKENS,), generator=generator).tolist()
    logs = log_probabilities(model, ids)
    (folder / "tokens.txt").write_text("\n".join(map(str, ids)) + "\n")
    (folder / "golden.tsv").write_text("".join(f"{i}\t{ids[i]}\t{logs[i - 1, ids[i]]:.17g}\n"
                                               for i in range(1, TOKENS)))
    for file, text in more:
        (folder / file).write_text(text)


for kind in ("module", "state-dict"):
    made = network(torch.Generator().manual_seed(11))
    saved = made if kind == "module" else made.state_dict()
    write(kind, saved, made, [("config.yaml", f"nhead: {HEADS}\n")] if kind == "state-dict" else [])
