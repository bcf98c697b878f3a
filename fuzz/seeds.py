#!/usr/bin/env python3
"""Makes the seeds of the fuzzers that need no model: tests/data/fuzz keeps what this writes.

    seeds.py FOLDER     writes FOLDER/TARGET/NAME

build/fuzz/fuzz/fuzz_write_seeds FOLDER writes the others.

Small on purpose: a fuzzer grows them, and plain ctest replays them.
"""

import collections
import io
import json
import pathlib
import pickle
import struct
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"


def copies() -> dict[str, list[pathlib.Path]]:
    """Small files of tests/data, by target."""
    forms = DATA / "checkpoint-forms"
    speech = DATA / "speech-lm-variants"
    return {
        "torch_zip": [forms / "net.pt", forms / "half.pt", forms / "one_storage.pt"],
        "pickle": [forms / "legacy.pt", forms / "arrays.pkl"],
        "recipe": [DATA / "kinglet-torch" / "everything" / "model.recipe.json",
                   DATA / "kinglet-torch" / "define-hgt" / "model.recipe.json",
                   DATA / "transformer-xl-variants" / "hf-published" / "config.json",
                   speech / "speechbrain-rnn-gru-references" / "hyperparams.yaml"],
    }


def npy(kind: str, shape: tuple[int, ...], data: bytes, version: int = 1) -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + b"\n" + data


def made() -> dict[str, dict[str, bytes]]:
    words = {"idx2sym": ["the", "<eos>", "\u00e9"], "sym2idx": collections.OrderedDict(the=0)}
    header = json.dumps({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]},
                         "b": {"dtype": "BF16", "shape": [24], "data_offsets": [16, 64]},
                         "__metadata__": {"format": "pt"}}).encode()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("w.npy", npy("<f4", (2, 3), bytes(24)))
    texts = [b"the\n<eos>\n<unk>\nword\n", b"3 4 5\n6 ||| 2 4 5\n", b"utt-1 a b\nutt-2 c\n",
             b"#version: 0.2\na b\nab c</w>\n", b'{"text": "a \\u00e9", "id": 3}\n',
             b"the \xc3\xa9 a\n\nthe", b'{"ids": [1, 2, 3]}',
             b"the 12\na 7 #fairseq:overwrite\n", b'["a", "\\n"]', b"utt\t-1.5\tsome text\n",
             b"[PAD]\n[UNK]\nthe\n##s\n", b"1.5\t\xe2\x96\x81the\n"]
    # Tables chosen by bytes (tests/fuzz/random_tables.h), then a text; maps of characters; models of
    # such tables, and the beginning of a text.
    chosen = {f"tables{i}": bytes([7]) + bytes((17 * i + 41 * j) % 256 for j in range(64))
              for i in range(8)}
    chosen |= {f"map{i}": bytes([8, i, 0]) + bytes((29 * i + 13 * j) % 256 for j in range(48))
               for i in range(4)}
    chosen |= {f"model{i}": bytes([9]) + bytes((23 * i + 31 * j) % 256 for j in range(96))
               for i in range(4)}
    return {
        "pickle": {f"vocabulary{protocol}": pickle.dumps(words, protocol)
                   for protocol in range(6)},
        "torch_zip": {"dict": pickle.dumps({"a": [1.5, None, True], "b": b"bytes"}, 2)},
        "safetensors": {"header": header,
                        "file": struct.pack("<Q", len(header)) + header + bytes(64)},
        "numpy": {"floats": npy("<f4", (2, 3), bytes(24)), "scalar": npy("<i8", (), bytes(8)),
                  "strings": npy("<U3", (2,), "abcxyz".encode("utf-32-le")),
                  "second": npy("|u1", (4,), bytes(4), 2), "npz": archive.getvalue()},
        "recipe": {"yaml": b"a: 1\nb: [1, 2]\nc: !ref <a>\nd: {e: 1e-05, f: 'x'}\n"},
        "texts": {str(i): bytes([i % 7]) + text for i, text in enumerate(texts)} | chosen,
        "calls": {str(i): bytes((i + 37 * j * (i + 3)) % 251 for j in range(96))
                  for i in range(10)},
        "differential": {str(i): bytes([i % 8]) + bytes((7 * i + 59 * j) % 256 for j in range(40))
                         for i in range(16)} |
                        {f"stack{i}": bytes([6]) + bytes((11 * i + 43 * j) % 256 for j in range(14)) +
                                      bytes([1]) + bytes((37 * i + 71 * j) % 256 for j in range(24))
                         for i in range(4)} |
                        {"window_of_one": bytes([6, 1, 0, 1, 2, 0, 20, 0, 7, 0, 0, 0, 9, 0, 3, 1, 3, 1, 1, 7, 0, 11]) +
                                          bytes(range(1, 60, 5))},
    }


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[1])
    for target, seeds in made().items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (folder / target / name).write_bytes(content)
    for target, paths in copies().items():
        for path in paths:
            (folder / target / f"{path.parent.name}-{path.name}").write_bytes(path.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
