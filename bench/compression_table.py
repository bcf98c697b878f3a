#!/usr/bin/env python3
"""Bits per byte and speed of `kinglet compress` and of other compressors, as a Markdown table.

    compression_table.py KINGLET MODEL.kgl FILE... [--dictionary TEXT]

gzip, xz and bzip2 are Python's own. zstd, brotli and ppmd are measured where their packages are
installed: pip install zstandard brotli pyppmd. With --dictionary, a text like the FILES, zstd is
also measured with a dictionary of 112,640 bytes trained on it, and xz primed with it. Each result of
kinglet is restored and compared. Speeds are kB (1,000 bytes) of a processor's second, in both
directions, with one thread.
"""

import argparse
import bz2
import gzip
import lzma
import pathlib
import resource
import subprocess
import sys

try:
    import brotli
except ImportError:
    brotli = None
try:
    import pyppmd
except ImportError:
    pyppmd = None
try:
    import zstandard
except ImportError:
    zstandard = None

XZ = lzma.PRESET_EXTREME | 9


def ppmd(data: bytes) -> int:
    def size(order: int) -> int:
        encoder = pyppmd.Ppmd7Encoder(order, 64 << 20)
        return len(encoder.encode(data) + encoder.flush())
    return min(size(order) for order in (6, 8, 16, 32))


def others(data: bytes, dictionary: bytes | None) -> dict[str, int]:
    """The sizes of a file by other compressors at their best."""
    sizes = {"gzip -9": len(gzip.compress(data, 9)), "bzip2 -9": len(bz2.compress(data, 9)),
             "xz -9e": len(lzma.compress(data, preset=XZ))}
    if dictionary is not None:
        sizes["xz -9e, primed"] = len(lzma.compress(dictionary + data, preset=XZ)) - len(
            lzma.compress(dictionary, preset=XZ))
    if zstandard is not None:
        sizes["zstd --ultra -22"] = len(zstandard.ZstdCompressor(level=22).compress(data))
        if dictionary is not None:
            parts = [dictionary[at:at + 4096] for at in range(0, len(dictionary), 4096)]
            trained = zstandard.train_dictionary(112640, parts)
            compressor = zstandard.ZstdCompressor(level=22, dict_data=trained)
            sizes["zstd, trained dictionary"] = len(compressor.compress(data))
    if brotli is not None:
        sizes["brotli -q 11"] = len(brotli.compress(data, quality=11, lgwin=24))
    if pyppmd is not None:
        sizes["ppmd (7z), best of four orders"] = ppmd(data)
    return sizes


def run(command: list[str], data: bytes) -> tuple[bytes, float]:
    """A command's output, and the processor's seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    output = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
    return output, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def kinglet(command: str, model: str, data: bytes, options: list[str]) -> tuple[int, str]:
    archive, there = run([command, "compress", "--model", model, *options], data)
    text, back = run([command, "decompress", "--model", model], archive)
    if text != data:
        sys.exit("compression_table: expected the text again, found another")
    return len(archive), f"{len(data) / there / 1000:.1f}, {len(data) / back / 1000:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("kinglet")
    parser.add_argument("model")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--dictionary", type=pathlib.Path)
    options = parser.parse_args()
    dictionary = options.dictionary.read_bytes() if options.dictionary else None
    print("| file | bytes | compressor | size | bits per byte | kB/s there, back |")
    print("|---|--:|---|--:|--:|--:|")
    for path in options.files:
        data = path.read_bytes()
        rows = {name: (size, "") for name, size in others(data, dictionary).items()}
        rows["`kinglet compress --fast`"] = kinglet(options.kinglet, options.model, data, ["--fast"])
        rows["`kinglet compress`"] = kinglet(options.kinglet, options.model, data, [])
        for name, (size, speed) in rows.items():
            bits = 8 * size / len(data)
            print(f"| {path.name} | {len(data):,} | {name} | {size:,} | {bits:.3f} | {speed} |",
                  flush=True)


if __name__ == "__main__":
    main()
