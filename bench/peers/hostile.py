#!/usr/bin/env python3
"""What fifty hostile files do to kinglet, safetensors, PyTorch's weights_only and ONNX Runtime.

    bench/peers/hostile.py KINGLET [--seconds 20] [--growth 256]

needs numpy, safetensors, torch, onnxruntime and xxhash (pip). Nineteen safetensors files, nineteen torch.save files and twelve models.
Each file is read by a process of its own: kinglet (`convert` for safetensors, `inspect` for torch.save files, `verify` for models), and the
peer that reads this kind. A model of each idea exists as .kgl, with repaired digests, and as .onnx. Prints a table in Markdown:

    refused    an error that the caller can handle
    accepted   it was loaded
    RAN        a command that the file names was executed
    crash      the process was ended by a signal
    memory     more than --growth MB beyond what the harmless file of this kind takes
    time       longer than --seconds
"""
import argparse
import io
import json
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT = 8 << 30  # bytes of data that a process may hold

READERS = {
    "safetensors": "import sys, numpy, safetensors.numpy as s; s.load_file(sys.argv[1])",
    "torch": "import sys, torch; torch.load(sys.argv[1], weights_only=True)",
    "onnxruntime": "import sys, onnxruntime as o; o.set_default_logger_severity(4); o.InferenceSession(sys.argv[1])",
}


# --- safetensors: a small BERT

def safetensors_files():
    """The harmless file, and its hostile variants."""
    base = (ROOT / "tests/data/bert/classifier-3/model.safetensors").read_bytes()
    size = struct.unpack("<Q", base[:8])[0]
    header, data = json.loads(base[8:8 + size]), base[8 + size:]
    name = "classifier.weight" if "classifier.weight" in header else sorted(header)[0]

    def with_text(text, tail=data):
        raw = text if isinstance(text, bytes) else text.encode()
        return struct.pack("<Q", len(raw)) + raw + tail

    def with_entry(**changes):
        changed = dict(header)
        changed[name] = dict(header[name], **changes)
        return with_text(json.dumps(changed))

    begin, end = header[name]["data_offsets"]
    other = next(key for key in sorted(header) if key not in (name, "__metadata__"))
    entry = json.dumps(header[name])
    return base, [
        ("empty file", b""),
        ("header of 2^63 bytes", struct.pack("<Q", 1 << 63) + base[8:]),
        ("header longer than the file", struct.pack("<Q", len(base)) + base[8:]),
        ("header that is no JSON", with_text("{" + "x" * 100)),
        ("header nested 100,000 deep", with_text('{"a":' + "[" * 100000 + "]" * 100000 + "}")),
        ("header that is no UTF-8", with_text(b'{"\xff\xfe":' + entry.encode() + b"}")),
        ("a type that does not exist", with_entry(dtype="F31")),
        ("shape whose product is 2^64", with_entry(shape=[1 << 32, 1 << 32], data_offsets=[begin, begin])),
        ("a size below zero", with_entry(shape=[-3, -8])),
        ("a size that is no integer", with_entry(shape=[3.5, 8])),
        ("1,000,000 sizes of 1", with_entry(shape=[1] * 1000000)),
        ("offsets beyond the file", with_entry(data_offsets=[begin, begin + (1 << 40)])),
        ("offsets backwards", with_entry(data_offsets=[end, begin])),
        ("offsets that do not fit the shape", with_entry(data_offsets=[begin, end - 4])),
        ("two tensors on the same bytes", with_entry(**header[other])),
        ("a hole between tensors", with_text(json.dumps({k: v for k, v in header.items() if k != name}))),
        ("a name twice", with_text(json.dumps(header)[:-1] + f', "{name}": {entry}}}')),
        ("bytes after the tensors", base + b"\0" * 64),
        ("the last byte missing", base[:-1]),
    ]


# --- torch.save: pickles in archives

def torch_files(mark):
    command = f"touch {mark}".encode()
    text = b"X" + struct.pack("<I", len(command)) + command

    def name(module, function):
        return f"c{module}\n{function}\n".encode()

    def word(value):
        return b"X" + struct.pack("<I", len(value)) + value.encode()

    def archive(pickle, storage=bytes(16), again=None, compressed=False):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED) as zipped:
            zipped.writestr("archive/data.pkl", pickle)
            if again is not None:
                zipped.writestr("archive/data.pkl", again)
            zipped.writestr("archive/data/0", storage)
            zipped.writestr("archive/version", "3\n")
        return out.getvalue()

    def tensor(offset, sizes, strides, elements=4):
        def integers(values):
            return b"(" + b"".join(b"\x8a\x08" + struct.pack("<q", v) for v in values) + b"t"
        storage = (b"(" + word("storage") + name("torch", "FloatStorage") + word("0") + word("cpu") + b"\x8a\x08"
                   + struct.pack("<q", elements) + b"tQ")
        body = (name("torch._utils", "_rebuild_tensor_v2") + b"(" + storage + b"\x8a\x08" + struct.pack("<q", offset) + integers(sizes)
                + integers(strides) + b"\x89" + name("collections", "OrderedDict") + b")RtR")
        return b"\x80\x02}" + word("w") + body + b"s."

    call = b"\x80\x02" + name("os", "system") + text + b"\x85R."
    doubled = b"]q\0" + b"".join(b"](h" + bytes([i - 1]) + b"h" + bytes([i - 1]) + b"eq" + bytes([i]) for i in range(1, 41))
    evaluated = f"__import__('os').system('touch {mark}')".encode()
    expression = b"X" + struct.pack("<I", len(evaluated)) + evaluated
    good = tensor(0, [2, 2], [2, 1])
    return archive(good), [
        ("os.system, GLOBAL and REDUCE", archive(call)),
        ("posix.system, STACK_GLOBAL", archive(b"\x80\x04" + word("posix") + word("system") + b"\x93" + text + b"\x85R.")),
        ("builtins.eval, INST", archive(b"(" + expression + b"ibuiltins\neval\n.")),
        ("subprocess.getoutput, OBJ", archive(b"(" + name("subprocess", "getoutput") + text + b"o.")),
        ("builtins.exec, NEWOBJ", archive(b"\x80\x02" + name("builtins", "exec") + expression + b"\x85\x81.")),
        ("runpy._run_code, NEWOBJ_EX",
         archive(b"\x80\x04" + word("runpy") + word("_run_code") + b"\x93" + expression + b"}\x86}\x92.")),
        ("getattr of a module, by name chain",
         archive(b"\x80\x04" + word("builtins") + word("getattr") + b"\x93" + word("os") + word("system") + b"\x86R" + text + b"\x85R.")),
        ("BUILD with a state that is code", archive(b"\x80\x02" + name("os", "system") + text + b"b.")),
        ("torch.load inside", archive(b"\x80\x02" + name("torch", "load") + text + b"\x85R.")),
        ("a class by extension code", archive(b"\x80\x02\x82\x01)R.")),
        ("a persistent id that is code", archive(name("os", "system") + text + b"\x85RQ.")),
        ("os.system without an archive", call),
        ("os.system, then truncated", archive(call[:-1])),
        ("an archive with two pickles, one of them code", archive(good, again=call)),
        ("lists that double 40 times", archive(b"\x80\x02" + doubled + b".")),
        ("a text of 2^63 - 1 bytes", archive(b"\x80\x04\x8d" + struct.pack("<Q", (1 << 63) - 1) + b"a.")),
        ("a tensor of 2^40 values over 4", archive(tensor(0, [1 << 20, 1 << 20], [1 << 20, 1]))),
        ("a tensor that begins before its values", archive(tensor(-100, [2, 2], [2, 1]))),
        ("an archive that unpacks to 1 GB", archive(tensor(0, [2, 2], [2, 1], 1 << 28), bytes(1 << 30), compressed=True)),
    ]


# --- models: the same idea as .kgl, with right digests, and as .onnx

def field(number, value):
    def varint(n):
        n &= (1 << 64) - 1
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def onnx_model(dims=(4, 4), raw=None, initializers=1, nodes=None, extra=b"", nested=0, target="y", elements=1):
    raw = struct.pack("<16f", *range(16)) if raw is None else raw
    weight = b"".join(field(1, d) for d in dims) + field(2, elements) + field(8, "w") + extra + (field(9, raw) if not extra else b"")
    inner = field(1, field(1, "v") + field(2, "v") + field(4, "Identity"))
    for _ in range(nested):
        inner = field(1, field(1, "c") + field(2, "v") + field(4, "If") + field(5, field(1, "then_branch") + field(20, 5) + field(6, inner)))
    nodes = nodes if nodes is not None else [("x", "w", "y")]
    graph = b"".join(field(1, field(1, a) + field(1, b) + field(2, c) + field(4, "MatMul")) for a, b, c in nodes)
    if nested:
        graph += inner
    shape = field(2, field(1, field(1, 1)) + field(1, field(1, 4)))

    def value(name):
        return field(1, name) + field(2, field(1, field(1, 1) + shape))
    graph += field(2, "g") + field(5, weight) * initializers + field(11, value("x")) + field(12, value(target))
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


class Kgl:
    """A model file with a changed header and repaired digests."""

    def __init__(self, data):
        self.data = bytearray(data)

    def repaired(self, hashes):
        size = struct.unpack_from("<Q", self.data, 24)[0]
        digest = hashes.xxh3_128_intdigest(bytes(self.data[64:64 + size]))
        struct.pack_into("<QQ", self.data, 32, digest & ((1 << 64) - 1), digest >> 64)
        struct.pack_into("<Q", self.data, 56, hashes.xxh3_64_intdigest(bytes(self.data[:56])))
        return bytes(self.data)

    def replace(self, old, new):
        at = self.data.find(old, 64)
        assert at >= 0 and len(old) == len(new)
        self.data[at:at + len(old)] = new
        return self

    def segments(self, hashes):
        """Repairs the digests of segments: entries of offset, size and digest."""
        size = struct.unpack_from("<Q", self.data, 24)[0]
        for at in range(64, 64 + size - 23, 8):
            offset, count, _ = struct.unpack_from("<QQQ", self.data, at)
            if offset >= 64 + size and offset % 64 == 0 and 0 < count <= len(self.data) - offset:
                struct.pack_into("<Q", self.data, at + 16, hashes.xxh3_64_intdigest(bytes(self.data[offset:offset + count])))
        return self


def model_files(kgl):
    import xxhash
    onnx = onnx_model()
    shape = struct.pack("<II", 31, 12)
    noise = bytes((i * 2654435761 >> 16) & 255 for i in range(4096))

    def flip(data, at):
        return data[:at] + bytes([data[at] ^ 4]) + data[at + 1:]

    def sizes(*numbers):
        return Kgl(kgl).replace(shape, struct.pack("<II", *numbers)).repaired(xxhash)

    first = (64 + struct.unpack_from("<Q", kgl, 24)[0] + 63) // 64 * 64  # segment

    def with_nan():
        changed = Kgl(kgl)
        struct.pack_into("<f", changed.data, first, float("nan"))
        return changed.segments(xxhash).repaired(xxhash)

    other = field(13, field(1, "location") + field(2, "../../../../../../etc/passwd")) + field(14, 1)
    return (kgl, onnx), [
        ("empty file", b"", b""),
        ("4,096 bytes of noise", noise, noise),
        ("the second half missing", kgl[:len(kgl) // 2], onnx[:len(onnx) // 2]),
        ("a bit of a weight flipped", flip(kgl, first + 2), flip(onnx, onnx.find(struct.pack("<f", 9)) + 2)),
        ("64 bytes appended", kgl + bytes(64), onnx + bytes(64)),
        ("a tensor of about 2^64 values", sizes((1 << 32) - 1, (1 << 32) - 1), onnx_model(dims=(1 << 32, 1 << 32))),
        ("a tensor of 2^40 values over 16", sizes(1 << 20, 1 << 20), onnx_model(dims=(1 << 20, 1 << 20))),
        ("a size of -1", sizes((1 << 32) - 1, 12), onnx_model(dims=(-1, 4))),
        ("fewer values than the shape", sizes(31, 13), onnx_model(raw=bytes(20))),
        ("a weight that is not a number", with_nan(), onnx_model(raw=struct.pack("<16f", *[float("nan")] * 16))),
        ("nodes in a circle", None, onnx_model(nodes=[("x", "b", "a"), ("a", "w", "b")], target="b")),
        ("weights in ../../etc/passwd", None, onnx_model(extra=other)),
    ]


# --- running

def limit():
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(words, seconds, mark):
    """Outcome and peak of resident memory in MB."""
    mark.unlink(missing_ok=True)
    waiter = ("import resource, subprocess, sys\n"
              "try: code = subprocess.run(sys.argv[2:], timeout=float(sys.argv[1])).returncode\n"
              "except subprocess.TimeoutExpired: code = 'time'\n"
              "print('\\n', code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    done = subprocess.run([sys.executable, "-c", waiter, str(seconds), *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          preexec_fn=limit, check=False)
    code, peak = done.stdout.decode(errors="replace").split()[-2:]
    outcome = "time" if code == "time" else "accepted" if code == "0" else "crash" if int(code) < 0 else "refused"
    return ("RAN" if mark.exists() else outcome), int(peak) / 1024


class Reader:
    def __init__(self, words, harmless, options, mark):
        self.words, self.options, self.mark = words, options, mark
        outcome, self.base = run(words(harmless), options.seconds, mark)
        if outcome != "accepted":
            sys.exit(f"hostile: expected success with a harmless file, found {outcome}: {words(harmless)}")

    def outcome(self, path):
        outcome, peak = run(self.words(path), self.options.seconds, self.mark)
        grown = peak - self.base
        return f"{outcome}, memory +{grown:,.0f} MB" if grown > self.options.growth else outcome


def table(title, peer, rows):
    print(f"\n| {title} | kinglet | {peer} |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinglet")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--growth", type=float, default=256, help="MB")
    options = parser.parse_args()
    import numpy, onnxruntime, safetensors, torch  # noqa: E401
    print(f"numpy {numpy.__version__}, safetensors {safetensors.__version__}, torch {torch.__version__}, "
          f"onnxruntime {onnxruntime.__version__}")
    warnings.simplefilter("ignore")  # an archive with a name twice
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        mark = folder / "mark"
        bert = folder / "bert"
        bert.mkdir()
        source = ROOT / "tests/data/bert/classifier-3"
        for companion in ("config.json", "vocab.txt"):
            (bert / companion).write_bytes((source / companion).read_bytes())

        def write(path, data):
            path.write_bytes(data)
            return path

        def python(reader):
            return lambda path: [sys.executable, "-c", READERS[reader], str(path)]

        def pairs(kind, path, harmless, files, words):
            kinglet_reader = Reader(words, write(path, harmless), options, mark)
            peer_reader = Reader(python(kind), path, options, mark)
            return [(what, kinglet_reader.outcome(write(path, data)), peer_reader.outcome(path)) for what, data in files]

        harmless, files = safetensors_files()
        out = str(folder / "out.kgl")
        table("safetensors file", "safetensors", pairs("safetensors", bert / "model.safetensors", harmless, files,
                                                       lambda path: [options.kinglet, "convert", str(path), "-o", out]))
        harmless, files = torch_files(mark)
        table("torch.save file", "torch, weights_only", pairs("torch", folder / "model.pt", harmless, files,
                                                             lambda path: [options.kinglet, "inspect", str(path)]))
        subprocess.run([options.kinglet, "convert", str(source), "-o", out], check=True, stdout=subprocess.DEVNULL)
        harmless, files = model_files(pathlib.Path(out).read_bytes())
        ours, theirs = folder / "m.kgl", folder / "m.onnx"
        kinglet_reader = Reader(lambda path: [options.kinglet, "verify", str(path)], write(ours, harmless[0]), options, mark)
        peer_reader = Reader(python("onnxruntime"), write(theirs, harmless[1]), options, mark)
        rows = []
        for what, kgl, onnx in files:
            rows.append((what, kinglet_reader.outcome(write(ours, kgl)) if kgl is not None else "the format has none",
                         peer_reader.outcome(write(theirs, onnx))))
        table("model", "ONNX Runtime", rows)


if __name__ == "__main__":
    main()
