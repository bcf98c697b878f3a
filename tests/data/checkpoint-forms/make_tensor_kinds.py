"""Writes the network of make_forms.py with every kind of tensor that torch.load reads.

    make_tensor_kinds.py FOLDER

Needs NumPy as well. Kinds that hold other numbers than make_forms.py's network, because their type
rounds them or a module computes the weights, have values of their own, golden_*.tsv, which PyTorch
computes in float64 with its own modules.
"""

import collections
import io
import pathlib
import pickle
import struct
import sys
import warnings

import numpy
import torch
import torch._inductor.config
from make_forms import TOKENS, RNNModel, sixteenths
from torch.nn.utils import parametrizations, prune


class MyTensor(torch.Tensor):
    pass


class Global:
    """Stands for a class or function of another installation."""

    def __init__(self, module, name):
        self.module, self.name = module, name


class Call:
    """A call of a Global, then a state."""

    def __init__(self, function, arguments, state=None):
        self.function, self.arguments, self.state = function, arguments, state


class Storage:
    def __init__(self, tensor):
        self.tensor, self.key = tensor.contiguous().view(-1), str(id(tensor))


class OldPickler(pickle._Pickler):
    def __init__(self, *arguments):
        super().__init__(*arguments, protocol=2)
        self.storages = {}

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        self.storages[value.key] = value.tensor
        return ("storage", Global("torch", "FloatStorage"), value.key, "cpu", value.tensor.numel(),
                None)

    def save(self, value, save_persistent_id=True):
        if isinstance(value, Global):
            self.write(f"c{value.module}\n{value.name}\n".encode())
        elif isinstance(value, Call):
            self.save(value.function)
            self.save(value.arguments)
            self.write(pickle.REDUCE)
            if value.state is not None:
                self.save(value.state)
                self.write(pickle.BUILD)
        else:
            super().save(value, save_persistent_id)


def old_parameter(tensor):
    """A parameter as PyTorch 0.1 to 0.3 pickled it."""
    plain = Call(Global("torch._utils", "_rebuild_tensor"),
                 (Storage(tensor), 0, tuple(tensor.shape), tuple(tensor.stride())))
    return Call(Global("torch.nn.parameter", "Parameter"), (plain,), (True, False, {}))


def save_legacy(path, value):
    out = io.BytesIO()
    pickle.dump(0x1950A86A20F9469CFC6C, out, 2)
    pickle.dump(1001, out, 2)
    pickle.dump({"protocol_version": 1001, "little_endian": True}, out, 2)
    pickler = OldPickler(out)
    pickler.dump(value)
    pickle.dump(sorted(pickler.storages), out, 2)
    for key in sorted(pickler.storages):
        out.write(struct.pack("<q", pickler.storages[key].numel()))
        out.write(pickler.storages[key].numpy().tobytes())
    path.write_bytes(out.getvalue())


class OnXla:
    """Pickles as a tensor on a TPU, by one of two functions of torch._utils."""

    def __init__(self, tensor, name):
        self.tensor, self.name = tensor, name

    def __reduce__(self):
        return getattr(torch._utils, self.name), (self.tensor.numpy(), torch.float32, "xla:1", False)


def old_xla_function(*_):
    raise RuntimeError


old_xla_function.__module__ = "torch._utils"
old_xla_function.__qualname__ = old_xla_function.__name__ = "_rebuild_xla_tensor"
torch._utils._rebuild_xla_tensor = old_xla_function


def golden(path, model):
    with torch.no_grad():
        answers = model.double()(torch.tensor(TOKENS))
    path.write_text("".join(f"{p}\t{TOKENS[p]}\t{answers[p - 1, TOKENS[p]]:.17g}\n"
                            for p in range(1, len(TOKENS))))


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1])
    model = sixteenths(RNNModel(), 1)
    plain = collections.OrderedDict((n, v.clone()) for n, v in model.state_dict().items())

    def save(name, value, **options):
        torch.save(value, folder / name, **options)

    save("subclass.pt", {n: v.as_subclass(MyTensor) for n, v in plain.items()})
    save("subclass_of_one.pt", {n: v.as_subclass(MyTensor) if n == "decoder.bias" else v
                                for n, v in plain.items()})
    save("subclass_parameters.pt", {n: torch.nn.Parameter(v).as_subclass(MyTensor)
                                    for n, v in plain.items()})
    save_legacy(folder / "parameters_0_3.pt",
                collections.OrderedDict((n, old_parameter(v)) for n, v in plain.items()))
    arrays = {n: v.numpy() for n, v in plain.items()}
    save("numpy_arrays.pt", {"state_dict": arrays, "epoch": 3})
    save("numpy_fortran.pt", {n: numpy.asfortranarray(v) for n, v in arrays.items()})
    save("numpy_float64.pt", {n: v.astype("f8") for n, v in arrays.items()})
    for protocol in (2, 5):
        (folder / f"numpy_arrays_{protocol}.pkl").write_bytes(pickle.dumps(arrays, protocol))
    save("xla.pt", {n: OnXla(v, "_rebuild_xla_tensor") for n, v in plain.items()})
    save("xla_numpy.pt",
         {n: OnXla(v, "_rebuild_device_tensor_from_numpy") for n, v in plain.items()})
    # The compiler's settings, which a compiled module carries, name folders of the machine.
    folders = {n: "" for n in torch._inductor.config._config if n.endswith("cutlass_dir")}
    with torch._inductor.config.patch(folders):
        save("compiled_whole.pt", torch.compile(model))
    save_unread(save, model, plain)
    # One hidden unit's bias for all words, as a view of one element.
    same = sixteenths(RNNModel(), 1)
    with torch.no_grad():
        same.decoder.bias.fill_(0.25)
        same.encoder.weight.copy_(same.encoder.weight[:, :1].expand(-1, 3))
    expanded = dict(same.state_dict())
    expanded["decoder.bias"] = torch.tensor([0.25]).expand(7)
    expanded["encoder.weight"] = same.encoder.weight[:, :1].detach().clone().expand(-1, 3)
    save("expanded.pt", expanded)
    golden(folder / "golden_expanded.tsv", same)
    save("protocol_1.pt", plain, pickle_protocol=1)
    save("protocol_1_legacy.pt", plain, pickle_protocol=1, _use_new_zipfile_serialization=False)
    save("protocol_5.pt", plain, pickle_protocol=5)
    # Two bits of mantissa, which both types of 8 bits hold.
    rounded = sixteenths(RNNModel(), 1)
    with torch.no_grad():
        for parameter in rounded.parameters():
            parameter.copy_(parameter.to(torch.float8_e5m2).float())
    for name, kind in (("float8_e5m2", torch.float8_e5m2), ("float8_e4m3", torch.float8_e4m3fn)):
        save(name + ".pt", {n: v.to(kind) for n, v in rounded.state_dict().items()})
    golden(folder / "golden_float8.tsv", rounded)

    pruned = sixteenths(RNNModel(), 1)
    torch.manual_seed(3)
    prune.random_unstructured(pruned.decoder, "weight", 0.4)
    prune.l1_unstructured(pruned.rnn, "weight_hh_l0", 0.5)
    save("pruned.pt", pruned.state_dict())
    prune.remove(pruned.rnn, "weight_hh_l0")
    golden(folder / "golden_pruned.tsv", sixteenths_of(pruned))

    unbiased = RNNModel()
    unbiased.rnn = torch.nn.LSTM(3, 3, 1, bias=False)
    unbiased.decoder = torch.nn.Linear(3, 7, bias=False)
    save("no_biases.pt", sixteenths(unbiased, 1).state_dict())
    golden(folder / "golden_no_biases.tsv", unbiased)

    for name, norm in (("weight_norm", torch.nn.utils.weight_norm),
                       ("weight_norm_parametrized", parametrizations.weight_norm)):
        normed = sixteenths(RNNModel(), 1)
        norm(normed.decoder, "weight")
        norm(normed.encoder, "weight", dim=1)
        if norm is torch.nn.utils.weight_norm:
            norm(normed.decoder, "bias", dim=None)
        with torch.no_grad():
            for parameter_name, parameter in normed.named_parameters():
                if parameter_name.endswith(("_g", "original0")):
                    parameter.mul_(1.5)
        save(name + ".pt", normed.state_dict())
        golden(folder / f"golden_{name}.tsv", normed)


def save_unread(save, model, plain):
    """Forms that are refused, with the next step."""
    weight = plain["decoder.weight"]
    for name, form in (("quantised", torch.quantize_per_tensor(weight, 0.0625, 0, torch.qint8)),
                       ("sparse", weight.to_sparse()), ("meta", weight.to("meta")),
                       ("complex", weight.to(torch.complex64))):
        save(name + ".pt", {**plain, "decoder.weight": form})
    half = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    save("quantised_linear.pt", half.state_dict())


def sixteenths_of(pruned):
    """The network with the weights that PyTorch's hooks computed."""
    model = RNNModel()
    with torch.no_grad():
        model.encoder.load_state_dict(pruned.encoder.state_dict())
        model.rnn.load_state_dict(pruned.rnn.state_dict())
        model.decoder.weight.copy_(pruned.decoder.weight)
        model.decoder.bias.copy_(pruned.decoder.bias)
    return model


if __name__ == "__main__":
    main()
