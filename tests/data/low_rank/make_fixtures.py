"""Matrices and their singular values by numpy.linalg.svd in float64, for low_rank_test.cc.

    python3 make_fixtures.py        writes its files beside itself
"""

import pathlib

import numpy as np

HERE = pathlib.Path(__file__).parent


def write(name, matrix):
    matrix = matrix.astype(np.float32)
    np.save(HERE / f"{name}.npy", matrix)
    values = np.linalg.svd(matrix.astype(np.float64), compute_uv=False)
    np.save(HERE / f"{name}_singular_values.npy", values)


def main():
    random = np.random.RandomState(4)
    # A spectrum that falls from 1 to 1e-3, as embeddings' do, far from 0 in its first column.
    left, _ = np.linalg.qr(random.randn(300, 24))
    right, _ = np.linalg.qr(random.randn(24, 24))
    falling = (left * np.logspace(0, -3, 24)) @ right.T
    falling[:, 0] += 0.5
    write("falling", falling)
    write("wide", random.randn(7, 19))
    write("rank3", random.randn(40, 3) @ random.randn(3, 12))


if __name__ == "__main__":
    main()
