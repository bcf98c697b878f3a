"""Writes one small network in the forms in which people keep their checkpoints.

    make_forms.py FOLDER

The network is word_language_model's LSTM of pytorch/examples with 7 words. All its weights are
multiples of 1/16, so that half, bfloat16, float64 and an average hold the same numbers: every form
that converts must give golden_f64.tsv, which PyTorch computes here in float64.
"""

import argparse
import collections
import json
import pathlib
import pickle
import struct
import sys

import torch

WORDS = ["<eos>", "<unk>", "the", "cat", "sat", "on", "mat"]
WIDTH = 3
TOKENS = [0, 2, 3, 4, 5, 2, 6, 0, 1, 2, 1, 4, 0, 0, 6, 5, 4, 3, 2, 1]


class RNNModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn_type = "LSTM"
        self.encoder = torch.nn.Embedding(len(WORDS), WIDTH)
        self.rnn = torch.nn.LSTM(WIDTH, WIDTH, 1)
        self.decoder = torch.nn.Linear(WIDTH, len(WORDS))

    def forward(self, ids):
        hidden, _ = self.rnn(self.encoder(ids))
        return torch.log_softmax(self.decoder(hidden), -1)


class Wrapper(torch.nn.Module):
    """A training framework's module, which has the network as an attribute."""

    def __init__(self, model):
        super().__init__()
        self.model = model


def sixteenths(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-24, 25, parameter.shape, generator=generator) / 16)
    return model


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in tensors.items():
        content = tensor.numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def renamed(tensors, change):
    return collections.OrderedDict((change(name), value) for name, value in tensors.items())


def main():
    folder = pathlib.Path(sys.argv[1])
    model = sixteenths(RNNModel(), 1)
    state = model.state_dict()
    plain = collections.OrderedDict((name, value.clone()) for name, value in state.items())
    optimiser = torch.optim.SGD(model.parameters(), lr=20).state_dict()

    def save(name, value, **options):
        torch.save(value, folder / name, **options)

    save("state_dict.pt", plain)
    save("legacy.pt", plain, _use_new_zipfile_serialization=False)
    # Dicts around the state dict.
    save("model_state_dict.pt", {"epoch": 3, "model_state_dict": plain,
                                 "optimizer_state_dict": optimiser, "loss": 1.25})
    save("model_state.pt", {"model_state": plain, "optimizer_state": optimiser, "step": 7})
    save("imagenet.pth.tar", {"epoch": 3, "arch": "lstm", "state_dict": plain, "best_acc1": 0.5})
    save("args.pt", {"args": argparse.Namespace(lr=20, path=pathlib.PurePosixPath("data")),
                     "model": plain, "optimizer": optimiser})
    save("net.pt", {"net": plain, "step": 7, "config": {"model": {"type": "lstm"}}})
    save("nested.pt", {"model": {"state_dict": plain, "config": {"layers": 1}}})
    save("pair.pt", (plain, optimiser))
    save("whole_in_dict.pt", {"model": model, "epoch": 3})
    # Wrappers in the names.
    save("data_parallel.pt", renamed(plain, lambda name: "module." + name))
    save("data_parallel_whole.pt", torch.nn.DataParallel(model))
    save("compiled.pt", renamed(plain, lambda name: "_orig_mod." + name))
    save("compiled_parts.pt", renamed(plain, lambda name: name.replace("rnn.", "rnn._orig_mod.")))
    save("compiled_parallel.pt",
         {"model_state_dict": renamed(plain, lambda name: "module._orig_mod." + name)})
    averaged = torch.optim.swa_utils.AveragedModel(model)
    averaged.update_parameters(model)
    save("swa.pt", averaged.state_dict())
    (folder / "parallel.safetensors").write_bytes(
        safetensors(renamed(plain, lambda name: "module." + name)))
    save("lightning.ckpt", {"epoch": 3, "pytorch-lightning_version": "2.1.0",
                            "state_dict": Wrapper(model).state_dict(),
                            "hyper_parameters": {"lr": 20}})
    save("two_parts.pt", renamed(plain, lambda name: "model.lm." + name))
    # Other tensors and entries, other types, shared storages.
    save("more_tensors.pt", {**plain, "rnn._extra_state": torch.zeros(0),
                             "probe.weight": torch.ones(2, 2)})
    save("extra_entries.pt", {**plain, "epoch": 3, "words": WORDS, "best": None})
    flat = torch.cat([value.flatten() for value in plain.values()])
    views, at = collections.OrderedDict(), 0
    for name, value in plain.items():
        views[name] = flat[at:at + value.numel()].view(value.shape)
        at += value.numel()
    save("one_storage.pt", views)
    transposed = collections.OrderedDict(
        (name, value.t().contiguous().t() if value.dim() == 2 else value)
        for name, value in plain.items())
    save("transposed.pt", transposed)
    for name, kind in (("float64", torch.float64), ("bfloat16", torch.bfloat16),
                       ("half", torch.float16)):
        save(name + ".pt", collections.OrderedDict((n, v.to(kind)) for n, v in plain.items()))
    # Views whose sign torch keeps apart from the numbers, and weights that training drops entries of.
    save("negated.pt", {name: torch._neg_view(-value) for name, value in plain.items()})
    save("conjugated.pt", {name: torch.complex(value, -value).conj().imag
                           for name, value in plain.items()})
    dropped = collections.OrderedDict(("0." + name.replace("rnn.", "rnns.0.module."), value)
                                      for name, value in plain.items())
    dropped["0.rnns.0.weight_hh_l0_raw"] = plain["rnn.weight_hh_l0"]
    dropped["0.rnns.0.module.weight_hh_l0"] = plain["rnn.weight_hh_l0"] * 2
    dropped["0.rnns.0.module.weight_hh_l0"][::2] = 0
    for name in ("decoder.weight", "decoder.bias"):
        dropped["1." + name] = dropped.pop("0." + name)
    dropped["0.encoder_dp.emb.weight"] = dropped["0.encoder.weight"]
    save("fastai.pth", {"model": dropped, "opt": {}})
    # Three checkpoints whose mean is the network.
    for name, change in (("epoch1.pt", -0.375), ("epoch2.pt", 0.125), ("epoch3.pt", 0.25)):
        save(name, collections.OrderedDict((n, v + change) for n, v in plain.items()))
    save("other_shape.pt", sixteenths(torch.nn.Linear(2, 2), 2).state_dict())
    # What has to be refused.
    save("ema.pt", {"online": plain, "ema": plain, "decay": 0.999})
    save("two_networks.pt", {"model": plain, "net": plain})
    save("optimiser_alone.pt", optimiser)
    (folder / "pointer.pt").write_bytes(
        b"version https://git-lfs.github.com/spec/v1\n"
        b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 3145\n")
    (folder / "empty.pt").write_bytes(b"")
    (folder / "page.pt").write_bytes(b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n")
    (folder / "cut.pt").write_bytes((folder / "state_dict.pt").read_bytes()[:1500])
    (folder / "arrays.pkl").write_bytes(
        pickle.dumps({name: value.tolist() for name, value in plain.items()}, protocol=2))
    torch.jit.save(torch.jit.script(sixteenths(torch.nn.Linear(2, 2), 2)), folder / "script.pt")
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(2, 1, 2), 1)
    save("unknown.pt", sixteenths(encoder, 3).state_dict())

    with torch.no_grad():
        answers = model.double()(torch.tensor(TOKENS))
    lines = [f"{position}\t{TOKENS[position]}\t{answers[position - 1, TOKENS[position]]:.17g}\n"
             for position in range(1, len(TOKENS))]
    (folder / "golden_f64.tsv").write_text("".join(lines))
    (folder / "tokens.txt").write_text(" ".join(map(str, TOKENS)) + "\n")
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in WORDS))


if __name__ == "__main__":
    main()
