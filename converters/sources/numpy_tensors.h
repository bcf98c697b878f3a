// Arrays that numpy.save (.npy) and numpy.savez or savez_compressed (.npz: a zip archive of .npy
// entries) wrote, as tensors that are read on demand.
#ifndef KINGLET_CONVERTERS_SOURCES_NUMPY_TENSORS_H_
#define KINGLET_CONVERTERS_SOURCES_NUMPY_TENSORS_H_

#include <memory>

#include "converters/sources/input_file.h"
#include "converters/sources/source_weights.h"
#include "kinglet/status.h"

namespace kinglet {

bool LooksLikeNpy(const InputFile& file);
// Whether the file is a zip archive whose first entry is called NAME.npy.
bool LooksLikeNpz(const InputFile& file);

// Types |i1 |u1 |b1 <i2 <u2 <i4 <u4 <i8 <f2 <f4 <f8, in C or Fortran order; an array of another
// type is refused when it is read, so that a list of words may lie beside the tables. The tensors
// keep the file open. Errors: KINGLET_INVALID_CHECKPOINT, KINGLET_IO_ERROR.
//
// One tensor, called as the file without folder and extension: "emb.codebook" of emb.codebook.npy.
Result<SourceWeights> NpyTensors(const std::shared_ptr<const InputFile>& file);
// A tensor of each entry NAME.npy, called NAME. Refuses other entries, names that come twice, and
// entries that take more bytes together than the file has.
Result<SourceWeights> NpzTensors(const std::shared_ptr<const InputFile>& file);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_NUMPY_TENSORS_H_
