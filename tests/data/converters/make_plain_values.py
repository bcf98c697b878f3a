"""Writes plain_values_protocol2.pkl, .._protocol4.pkl, .._protocol5.pkl: values as options have them.

    make_plain_values.py FOLDER    (needs numpy and omegaconf)
"""

import collections
import dataclasses
import enum
import pathlib
import pickle
import sys

import numpy
from omegaconf import OmegaConf


class Choice(enum.Enum):
    TEXT = "relu"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Slotted:
    __slots__ = ("width", "name")
    width: int
    name: str


@dataclasses.dataclass
class Plain:
    width: int
    name: str


class AttributeDict(dict):
    pass


class Words(list):
    pass


def main():
    configuration = OmegaConf.create({
        "model": {"width": 8, "half": 0.5, "same": "${model.width}", "far": "${model.same}",
                  "layers": [1, 2], "nothing": None, "lost": "${model.none}"},
        "name": "${model.layers}"})
    values = {
        "int64": numpy.int64(-7), "int8": numpy.int8(-7), "uint64": numpy.uint64(7),
        "float64": numpy.float64(0.1), "float32": numpy.float32(0.5), "half": numpy.float16(0.25),
        "bool": numpy.bool_(True), "str": numpy.str_("caf\u00e9"), "empty": numpy.str_(""),
        "whole": 4.0, "part": 4.5, "huge": 1e300,
        "integers": numpy.array([1000, 2500]), "floats": numpy.array([1.0, 2.0], "f4"),
        "list": [1, 2.0, numpy.int32(3)], "scalar": numpy.array(5), "none": numpy.array([], "i8"),
        "objects": numpy.array(["a", "bc"], dtype=object), "texts": numpy.array(["a", "bc"]),
        "matrix": numpy.arange(6, dtype="f4").reshape(2, 3).T,
        "big": numpy.array([1, 2], ">i4"), "config": configuration,
        "enum": Choice.TEXT, "level": Level.HIGH, "path": pathlib.PurePosixPath("/data", "a/b"),
        "slots": Slotted(3, "x"), "dataclass": Plain(3, "x"),
        "subclass": AttributeDict(width=3), "words": Words(["a", "b"]),
        "counter": collections.Counter("aab"), "bytes": b"\xff\x00a", "no_bytes": b"",
    }
    for protocol in (2, 4, 5):
        path = pathlib.Path(sys.argv[1]) / f"plain_values_protocol{protocol}.pkl"
        path.write_bytes(pickle.dumps(values, protocol))


if __name__ == "__main__":
    main()
