"""Mappings that are computed and never stored."""
import numpy
import torch

PRIMES = [numpy.uint64(p) for p in (11400714785074694791, 14029467366897019727, 1609587929392839161,
                                    9650029242287828579, 2870177450012600261)]


def rotated(x, bits: int):
    return (x << numpy.uint64(bits)) | (x >> numpy.uint64(64 - bits))


def xxh64(keys: numpy.ndarray, seed: int) -> numpy.ndarray:
    """XXH64 (Yann Collet, xxHash) of inputs of 8 bytes, each given as a little-endian uint64."""
    p1, p2, p3, p4, p5 = PRIMES
    with numpy.errstate(over="ignore"):  # arithmetic is modulo 2^64
        lane = rotated(keys.astype(numpy.uint64) * p2, 31) * p1
        h = (numpy.uint64(seed) + p5 + numpy.uint64(8)) ^ lane
        h = rotated(h, 27) * p1 + p4
        h = (h ^ (h >> numpy.uint64(33))) * p2
        h = (h ^ (h >> numpy.uint64(29))) * p3
        return h ^ (h >> numpy.uint64(32))


def hashed_mapping(words: int, pools: list, seed: int) -> torch.Tensor:
    """[words, len(pools)] int64: XXH64 of the little-endian bytes {u32 word, u32 position}, modulo the position's pool.
    `seed` is below 2^64."""
    word = numpy.arange(words, dtype=numpy.uint64)[:, None]
    position = numpy.arange(len(pools), dtype=numpy.uint64)[None, :]
    hashes = xxh64(word | (position << numpy.uint64(32)), seed)
    return torch.from_numpy((hashes % numpy.array(pools, dtype=numpy.uint64)).astype(numpy.int64))
