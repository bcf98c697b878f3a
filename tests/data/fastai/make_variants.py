#!/usr/bin/env python3
"""Writes the checkpoints of this folder: small AWD-LSTM language models with random weights that fastai (2.7.13) built,
in the forms that its versions save, and the log-probabilities that its own network gives in float64. The QRNN is
../recurrent-variants/awd-qrnn under the names of fastai 1.

    python3 make_variants.py          writes next to itself; needs torch and fastai
"""
import os
import pickle
import shutil
import sys
import warnings

warnings.filterwarnings("ignore")
import torch  # noqa: E402
from fastai.text.models.awdlstm import AWD_LSTM, awd_lstm_lm_config  # noqa: E402
from fastai.text.models.core import get_language_model  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from fixtures import ids_of, named_class, write_answers  # noqa: E402

WORDS = 23


def old_names(state):
    """As fastai 0.7 named the tensors of the same modules."""
    renamed = {}
    for name, value in state.items():
        name = name.replace("0.encoder_dp.emb.", "0.encoder_with_dropout.embed.")
        renamed[name.replace("weight_hh_l0_raw", "module.weight_hh_l0_raw")] = value
    return renamed


def twins(state):
    """As fastai 1 saved it: the last step's dropped-out copy next to each raw weight."""
    renamed = {}
    for name, value in state.items():
        renamed[name] = value
        if name.endswith("_raw"):
            name = name.replace("weight_hh_l0_raw", "module.weight_hh_l0")
            renamed[name] = torch.nn.functional.dropout(value, 0.5)
    return renamed


# The settings of the network, and how its state is saved.
VARIANTS = {
    "with-optimizer": ({}, lambda state: {"model": state, "opt": {"state": [], "hypers": [{"lr": 1e-3}]}}),
    "twins-state-dict": ({"n_layers": 3}, twins),
    "untied": ({"tie_weights": False}, dict),
    "one-layer-0-7": ({"n_layers": 1}, old_names),
}


def main():
    for seed, (name, (options, form)) in enumerate(VARIANTS.items()):
        torch.manual_seed(seed)
        settings = dict(awd_lstm_lm_config, emb_sz=6, n_hid=9, n_layers=2)
        settings.update(options)
        model = get_language_model(AWD_LSTM, WORDS, config=settings).eval()
        for parameter in model.parameters():
            parameter.data = torch.randn(parameter.shape) * 0.6
        if not settings["tie_weights"]:
            assert model[1].decoder.weight is not model[0].encoder.weight
        folder = f"{HERE}/{name}"
        os.makedirs(folder, exist_ok=True)
        torch.save(form(model.state_dict()), f"{folder}/model.pth")
        ids = ids_of(WORDS, 60)
        with torch.no_grad():
            model.double()
            model.reset()
            for rnn in model[0].rnns:
                rnn.module.weight_hh_l0 = rnn.weight_hh_l0_raw.data
            logits = model(torch.tensor([ids]))[0][0]
        write_answers(folder, ids, torch.log_softmax(logits, -1).tolist())
    with open(f"{HERE}/with-optimizer/itos.pkl", "wb") as out:
        words = ["xxunk", "xxpad", "xxbos", "xxeos"]
        pickle.dump(words + [f"w{i}" for i in range(len(words), WORDS)], out)
    write_qrnn()


def write_qrnn():
    source, folder = f"{HERE}/../recurrent-variants/awd-qrnn", f"{HERE}/qrnn"
    os.makedirs(folder, exist_ok=True)
    for module, name in (("model", "RNNModel"), ("weight_drop", "WeightDrop"), ("locked_dropout", "LockedDropout"),
                         ("torchqrnn.qrnn", "QRNNLayer"), ("splitcross", "SplitCrossEntropyLoss")):
        named_class(module, name, torch.nn.Module)
    torch.nn.Module.nothing = lambda self: None
    state = {}
    for name, value in torch.load(f"{source}/model.pt", weights_only=False)[0].state_dict().items():
        layer = name.startswith("rnns.")
        name = name.replace(".linear.module.weight_raw", ".linear.weight_raw").replace(".linear", ".layers.0.linear")
        state[("0." if layer or name.startswith("encoder") else "1.") + name] = value
    state["0.encoder_dp.emb.weight"] = state["0.encoder.weight"]
    torch.save(state, f"{folder}/model.pth")
    for name in ("tokens.txt", "golden_f64.tsv"):
        shutil.copy(f"{source}/{name}", folder)


if __name__ == "__main__":
    main()
