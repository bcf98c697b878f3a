"""Writes the checkpoint, pickle and array files the converters' tests read.

    make_fixtures.py FOLDER

Needs numpy. The pickles come from Python's own pickler and the arrays from numpy.save; torch is not
needed, because its files are pickles whose classes and persistent ids only have to be named as torch
names them. The files are committed, so that tests need no Python; run this again to change them.
"""

import collections
import io
import json
import pathlib
import pickle
import struct
import sys
import types
import zipfile

import numpy

TYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "BFloat16Storage": "<u2",
         "LongStorage": "<i8", "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "|i1",
         "ByteStorage": "|u1", "BoolStorage": "|u1"}


def stand_in_torch():
    """Modules with torch's names, so that the pickler writes these names."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in TYPES:
        setattr(torch, name, type(name, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2():
        pass

    def _rebuild_parameter():
        pass

    for function in (_rebuild_tensor_v2, _rebuild_parameter):
        function.__module__, function.__qualname__ = "torch._utils", function.__name__
        setattr(utils, function.__name__, function)
    torch._utils = utils
    sys.modules.update({"torch": torch, "torch._utils": utils})
    return torch


torch = stand_in_torch()


class Storage:
    def __init__(self, kind, key, values, view=None):
        self.kind, self.key, self.view = kind, key, view
        self.values = numpy.asarray(values, dtype=TYPES[kind])


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.arguments = (storage, offset, size, stride, False, collections.OrderedDict())

    def __reduce__(self):
        return torch._utils._rebuild_tensor_v2, self.arguments


class Parameter:
    def __init__(self, tensor):
        self.tensor = tensor

    def __reduce__(self):
        return torch._utils._rebuild_parameter, (self.tensor, True, collections.OrderedDict())


class Pickler(pickle._Pickler):
    """The pickler in Python: the one in C looks globals up by import, this one too, but ids first."""

    def __init__(self, file, protocol, fields):
        super().__init__(file, protocol)
        self.fields, self.storages = fields, {}

    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        self.storages[value.key] = value
        location = "cuda:0" if value.kind == "HalfStorage" else "cpu"
        id = ("storage", getattr(torch, value.kind), value.key, location, len(value.values))
        return id + (value.view,) if self.fields == 6 else id


def dumps(value, protocol, fields):
    file = io.BytesIO()
    pickler = Pickler(file, protocol, fields)
    pickler.dump(value)
    return file.getvalue(), pickler.storages


def legacy(value, protocol=2, little=True):
    machine = {"protocol_version": 1001, "little_endian": little,
               "type_sizes": {"short": 2, "int": 4, "long": 4}}
    pickled, storages = dumps(value, protocol, 6)
    out = b"".join(pickle.dumps(part, protocol)
                   for part in (0x1950A86A20F9469CFC6C, 1001, machine))
    out += pickled + pickle.dumps(sorted(storages), protocol)
    for key in sorted(storages):
        out += struct.pack("<q", len(storages[key].values)) + storages[key].values.tobytes()
    return out


def archive(path, entries, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in entries.items():
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, compression)


def zip_entries(value, root, protocol=2):
    pickled, storages = dumps(value, protocol, 5)
    entries = {root + "/data.pkl": pickled}
    for key, storage in storages.items():
        entries[f"{root}/data/{key}"] = storage.values.tobytes()
    entries[root + "/version"] = b"3\n"
    return entries


def state_dict(slices):
    """Every storage type, and every way a tensor can look at its storage."""
    ramp = Storage("FloatStorage", "10", numpy.arange(24) * 0.5 - 3)
    whole = Storage("FloatStorage", "20", numpy.arange(10, 20))
    state = collections.OrderedDict()
    state["plain"] = Tensor(ramp, 0, (4, 6), (6, 1))
    state["transposed"] = Tensor(ramp, 0, (6, 4), (1, 6))
    state["offset"] = Tensor(ramp, 13, (5,), (1,))
    state["every_other"] = Tensor(ramp, 1, (2, 3), (12, 2))
    state["scalar"] = Tensor(ramp, 7, (), ())
    state["one"] = Tensor(ramp, 7, (1,), (1,))
    state["empty"] = Tensor(ramp, 0, (0, 5), (5, 1))
    state["parameter"] = Parameter(Tensor(whole, 0, (10,), (1,)))
    if slices:
        part = Storage("FloatStorage", "20", numpy.arange(10, 20), ("21", 4, 5))
        state["slice"] = Tensor(part, 1, (2, 2), (2, 1))
    for i, (kind, values) in enumerate({
            "DoubleStorage": [1 / 3, -2.5, 1e-300], "HalfStorage": [0.5, -65504, 2**-24],
            "BFloat16Storage": [0x3F80, 0xC040, 0x7F80], "LongStorage": [-1, 2**40, 16777217],
            "IntStorage": [-5, 7, 2**31 - 1], "ShortStorage": [-32768, 0, 99],
            "CharStorage": [-128, 0, 127], "ByteStorage": [0, 128, 255],
            "BoolStorage": [0, 1, 1]}.items()):
        state[kind] = Tensor(Storage(kind, str(30 + i), values), 0, (3,), (1,))
    return state


class Cyclic:
    """An object that contains itself, with a state that is no dict."""

    def __init__(self):
        self.me = self

    def __getstate__(self):
        return (self.me, "state")


def plain_objects():
    shared = ["shared"]
    return {"integers": [0, 1, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**63 - 1, -(2**63)],
            "floats": [0.0, -0.5, 1e300, 5e-324], "text": "caf\u00e9 \u4e16 \U0001f600 \\ 'q'\n",
            "none": None, "booleans": [True, False], "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
            "shared": [shared, shared], "ordered": collections.OrderedDict([("a", 1), ("b", 2)]),
            "default": collections.defaultdict(list, {"k": [3]}), "counter": collections.Counter("aab"),
            "set": {7}, "frozen": frozenset([8]), "cyclic": Cyclic(), "nested": {"a": {"b": {"c": 4}}}}


def named_arrays():
    """Every type that a container of tensors alone may hold, and the shapes that are easily mistaken."""
    ramp = numpy.arange(6)
    return {"F64": ramp.reshape(2, 3) / 4 - 0.5, "F32": (ramp * 0.5 - 1).astype("<f4"), "F16": (ramp / 8).astype("<f2"),
            "I64": numpy.array([2**31 - 1, 2**31, -2**40 - 1]), "I32": numpy.array([[-2**31], [16777217]], "<i4"),
            "I16": numpy.array([-32768, 32767], "<i2"), "I8": numpy.array([-128, 127], "i1"),
            "U32": numpy.array([2**32 - 1, 0], "<u4"), "U16": numpy.array([65535, 1], "<u2"),
            "U8": numpy.array([255, 2], "u1"), "BOOL": numpy.array([True, False, True]),
            "empty": numpy.zeros((0, 5), "<f4"), "scalar": numpy.array(0.25), "deep/name.0": numpy.ones((1, 2, 1, 2), "<f4")}


def safetensors(path, arrays):
    """As huggingface/safetensors describes its format; BF16 is what numpy lacks."""
    names = {"f8": "F64", "f4": "F32", "f2": "F16", "i8": "I64", "i4": "I32", "i2": "I16", "i1": "I8", "u4": "U32",
             "u2": "U16", "u1": "U8", "b1": "BOOL"}
    parts = [(name, names[array.dtype.str[1:]], array.shape, array.tobytes()) for name, array in arrays.items()]
    parts.append(("BF16", "BF16", (3,), struct.pack("<3H", 0x3F80, 0xC040, 0x4049)))
    header, at = {"__metadata__": {"format": "np"}}, 0
    for name, dtype, shape, data in parts:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(part[3] for part in parts))


def main():
    folder = pathlib.Path(sys.argv[1])
    for protocol in range(6):
        # As a training script would have it: its classes live in __main__ or in a module of its own.
        Cyclic.__module__ = "model"
        sys.modules["model"] = sys.modules["__main__"]
        (folder / f"objects_protocol{protocol}.pkl").write_bytes(pickle.dumps(plain_objects(), protocol))

    for protocol in (2, 4):
        (folder / f"legacy_protocol{protocol}.pth").write_bytes(legacy(state_dict(True), protocol))
    (folder / "legacy_big_endian.pth").write_bytes(legacy(state_dict(True), little=False))
    (folder / "legacy_not_tensors.pth").write_bytes(legacy({"weight": Cyclic()}))

    entries = zip_entries(state_dict(False), "tiny model")
    archive(folder / "zip.pt", {**entries, "tiny model/byteorder": b"little"})
    archive(folder / "zip_big_endian.pt", {**entries, "tiny model/byteorder": b"big"})
    archive(folder / "zip_deflated.pt", entries, zipfile.ZIP_DEFLATED)
    archive(folder / "zip_no_pickle.pt", {"tiny model/version": b"3\n"})
    archive(folder / "zip_two_pickles.pt", {**entries, "other/data.pkl": entries["tiny model/data.pkl"]})
    archive(folder / "zip_missing_storage.pt",
            {name: content for name, content in entries.items() if not name.endswith("data/10")})
    archive(folder / "zip_short_storage.pt",
            {name: content[:-4] if name.endswith("data/10") else content for name, content in entries.items()})

    for name, values in {"i1": numpy.array([-128, 127], "i1"), "u1": numpy.array([[0, 255], [1, 2]], "u1"),
                         "i2": numpy.array([-32768], "<i2"), "u2": numpy.array([0, 65535], "<u2"),
                         "i4": numpy.array([-2**31, 5], "<i4"), "u4": numpy.array([2**32 - 1], "<u4"),
                         "i8": numpy.array([2**40, -2], "<i8"), "f4": numpy.array([[0.1], [-3]], "<f4"),
                         "f8": numpy.array(1 / 3), "none": numpy.zeros((0, 3), "<i4"),
                         "strings": numpy.array(["the", "caf\u00e9", "\U0001f600"]),
                         "objects": numpy.array(["the", "caf\u00e9", "\U0001f600"], object),
                         "big_endian": numpy.array([1], ">i4"), "complex": numpy.array([1j]),
                         "structure": numpy.zeros(1, [("a", "<i4")]), "numbers_as_objects": numpy.array([1, 2], object),
                         "fortran": numpy.asfortranarray(numpy.arange(6).reshape(2, 3))}.items():
        numpy.save(folder / f"{name}.npy", values)
    for version in ((2, 0), (3, 0)):
        with open(folder / f"version{version[0]}.npy", "wb") as file:
            numpy.lib.format.write_array(file, numpy.arange(3, dtype="<i4"), version)

    arrays = named_arrays()
    safetensors(folder / "tensors.safetensors", arrays)
    arrays["fortran"] = numpy.asfortranarray(numpy.arange(24, dtype="<f4").reshape(2, 3, 4))
    arrays["words"] = numpy.array(["the", "of"])
    numpy.savez(folder / "tensors.npz", **arrays)
    numpy.savez_compressed(folder / "tensors_deflated.npz", **arrays, zeros=numpy.zeros((20, 50), "<f4"))
    numpy.savez_compressed(folder / "large.npz", ramp=(numpy.arange(400_000, dtype="<i4") % 1000))


main()
