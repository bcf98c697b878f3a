#!/usr/bin/env python3
"""Writes this folder: embeddings by codes with random weights, and the codes and rows that PyTorch gives for them in
float64. Shares nothing with kinglet. Needs numpy and PyTorch (made with 1.13: Debian's python3-torch).

    python3 make_codes.py          writes beside itself

Each file is one flat float64 array.
dpq_*.npy: query, keys, values (none for VQ), batch norm mean and variance (none without), codes [50, 4], rows [50, d].
kd_*.npy: codes [50, 4], code embeddings, (with a dense layer: batch norm gain, offset, mean and variance, kernel and
bias), rows.
"""
import os

import numpy
import torch

F = torch.nn.functional
HERE = os.path.dirname(os.path.abspath(__file__))
WORDS, POSITIONS, CHOICES = 50, 4, 8


def drawer(seed):
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator).float().double()


def write(name, *arrays):
    numpy.save(os.path.join(HERE, name + ".npy"), torch.cat([a.double().flatten() for a in arrays]).numpy())


def rows_of(values, codes):
    """The value vectors that codes [V, D] choose: [V, D, length]."""
    values = values.expand(codes.shape[1], -1, -1)
    return torch.stack([values[j][codes[:, j]] for j in range(codes.shape[1])], 1)


def write_dpq(name, seed, euclidean, shared, norm, additive, key_length, value_length):
    draw = drawer(seed)
    subspaces = 1 if shared else POSITIONS
    query = draw(WORDS, POSITIONS, key_length)
    keys = draw(subspaces, CHOICES, key_length)
    arrays = [query, keys]
    values = keys
    if not euclidean:
        values = draw(subspaces, CHOICES, value_length)
        arrays.append(values)
    by_position = keys.expand(POSITIONS, -1, -1)
    if euclidean:
        response = -((query[:, :, None, :] - by_position[None]) ** 2).sum(-1)
    else:
        response = torch.einsum("vdi,dki->vdk", query, by_position)
    if norm is not None:
        width, eps = (CHOICES, 1e-3) if norm == "choice" else (POSITIONS * CHOICES, 1e-5)
        mean, variance = draw(width), (draw(width) ** 2).float().double()
        arrays += [mean, variance]
        response = F.batch_norm(response.reshape(-1, width), mean, variance, eps=eps).view_as(response)
    codes = response.argmax(-1)
    rows = rows_of(values, codes)
    rows = rows.mean(1) if additive else rows.flatten(1)
    write("dpq_" + name, *arrays, codes, rows)


def write_kd(name, seed, shared, length, width=None):
    draw = drawer(seed)
    codes = torch.randint(CHOICES, (WORDS, POSITIONS), generator=torch.Generator().manual_seed(seed))
    embeddings = draw(1 if shared else POSITIONS, CHOICES, length)
    rows = rows_of(embeddings, codes).mean(1)
    arrays = [codes, embeddings]
    if width is not None:
        gain, offset, mean, variance = draw(length), draw(length), draw(length), (draw(length) ** 2).float().double()
        kernel, bias = draw(length, width), draw(width)
        rows = F.batch_norm(rows, mean, variance, gain, offset, eps=1e-3) @ kernel + bias
        arrays += [gain, offset, mean, variance, kernel, bias]
    write("kd_" + name, *arrays, rows)


write_dpq("sx_shared_choice", 1, False, True, "choice", False, 3, 5)
write_dpq("sx_choice", 2, False, False, "choice", False, 3, 3)
write_dpq("sx_response_additive", 3, False, False, "response", True, 6, 6)
write_dpq("vq_shared_response", 4, True, True, "response", False, 3, 3)
write_dpq("vq_choice", 5, True, False, "choice", False, 3, 3)
write_dpq("vq_shared_additive", 6, True, True, None, True, 6, 6)
write_kd("mean", 7, False, 6)
write_kd("mean_shared", 8, True, 6)
write_kd("mean_linear", 9, False, 5, 7)
