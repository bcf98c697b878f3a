// NumPy's .npy and .npz files as tensors that are read on demand. numpy.save writes one array
// (.npy); numpy.savez and savez_compressed write a zip archive of .npy entries (.npz). TensorFlow
// checkpoints arrive as .npz. The format is specified in the documentation of numpy.lib.format.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_NUMPY_TENSORS_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_NUMPY_TENSORS_H_

#include <memory>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

bool LooksLikeNpy(const InputFile& file);
// Whether the file is a zip archive whose first entry is called NAME.npy.
bool LooksLikeNpz(const InputFile& file);

// Both keep the file open and take types |i1 |u1 |b1 <i2 <u2 <i4 <u4 <i8 <f2 <f4 <f8, in C or
// Fortran order. An array of another type is refused only when its values are read: an archive may
// contain a list of words next to the tables. Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
//
// One tensor, named as the file without folder and extension: "emb.codebook" for emb.codebook.npy.
Result<CheckpointTensors> NpyTensors(const std::shared_ptr<const InputFile>& file);
// A tensor NAME for each entry NAME.npy. Refuses other entries, repeated names, and entries that
// together claim more bytes than the file has.
Result<CheckpointTensors> NpzTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_NUMPY_TENSORS_H_
