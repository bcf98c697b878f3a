"""Writes what torch.save writes (zip format), without PyTorch."""
import collections
import pickle
import struct
import sys
import types
import zipfile


class Tensor:
    """float32; `values` is a flat list, which tied tensors share."""

    def __init__(self, shape, values):
        self.shape, self.values = tuple(shape), values

    def __reduce__(self):
        strides, size = [], 1
        for n in reversed(self.shape):
            strides.insert(0, size)
            size *= n
        return (sys.modules["torch._utils"]._rebuild_tensor_v2,
                (Storage(self.values), 0, self.shape, tuple(strides), False,
                 collections.OrderedDict()))


class Storage:
    def __init__(self, values):
        self.values = values


def _global(module, name, value):
    """A name that the pickle refers to."""
    sys.modules.setdefault(module, types.ModuleType(module))
    value.__module__, value.__name__, value.__qualname__ = module, name, name
    setattr(sys.modules[module], name, value)
    return value


_global("torch._utils", "_rebuild_tensor_v2", lambda *arguments: None)
FLOAT_STORAGE = _global("torch", "FloatStorage", type("FloatStorage", (), {}))


def save(value, path):
    storages = []  # lists of values, by key

    class Pickler(pickle.Pickler):
        def persistent_id(self, found):
            if not isinstance(found, Storage):
                return None
            keys = [i for i, values in enumerate(storages) if values is found.values]
            if not keys:
                storages.append(found.values)
            key = keys[0] if keys else len(storages) - 1
            return ("storage", FLOAT_STORAGE, str(key), "cpu", len(found.values))

    name = path.rsplit("/", 1)[1].rsplit(".", 1)[0]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        def write(entry, data):
            archive.writestr(zipfile.ZipInfo(f"{name}/{entry}", (1980, 1, 1, 0, 0, 0)), data)

        class Bytes(list):
            write = list.append

        pieces = Bytes()
        Pickler(pieces, protocol=2).dump(value)
        write("data.pkl", b"".join(pieces))
        for key, values in enumerate(storages):
            write(f"data/{key}", struct.pack(f"<{len(values)}f", *values))
        write("version", "3\n")
