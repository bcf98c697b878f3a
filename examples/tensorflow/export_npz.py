#!/usr/bin/env python3
"""Writes the variables of a TensorFlow checkpoint (TF 1 or 2) into one .npz, under their own names.

    python3 export_npz.py CHECKPOINT OUT.npz

CHECKPOINT is what tf.train.latest_checkpoint gives: the path without ".index" and ".data-...". Then:

    kinglet convert OUT.npz -o model.kgl --family zaremba-tf
"""
import sys

import numpy
import tensorflow as tf


TF2_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # what TensorFlow 2 appends to the name of a variable


def main(checkpoint, output):
    reader = tf.train.load_checkpoint(checkpoint)
    variables = {}
    for name in sorted(reader.get_variable_to_shape_map()):
        value = numpy.asarray(reader.get_tensor(name))
        if value.dtype.kind not in "fiub":  # TensorFlow 2's descriptions of its objects
            print("omitted:", name, value.dtype)
            continue
        if name.endswith(TF2_SUFFIX):
            name = name[:-len(TF2_SUFFIX)]
        variables[name] = value
        print(name, list(value.shape), value.dtype)
    numpy.savez(output, **variables)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
