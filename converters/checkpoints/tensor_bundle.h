// TensorFlow's checkpoints (tf.train.Saver, format V2: tensor bundles). PREFIX.index is a sorted
// table of the variables' types, shapes and locations
// (tensorflow/core/protobuf/tensor_bundle.proto); PREFIX.data-00000-of-00001 and so on contain
// their values. PREFIX.meta, the graph, is not needed.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_TENSOR_BUNDLE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_TENSOR_BUNDLE_H_

#include <memory>
#include <string>
#include <vector>

#include "converters/checkpoints/checkpoint_tensors.h"
#include "format/input_file.h"
#include "kinglet/status.h"

namespace kinglet {

struct TensorBundle {
  std::vector<std::shared_ptr<const InputFile>> files;  // the index, then the data files in order
  CheckpointTensors tensors;                            // by name; they keep the files open
};

// Whether the file is called *.index and ends like a sorted table.
bool LooksLikeTensorBundle(const InputFile& index);

// Opens the data files next to the index and compares every variable's bytes with its checksum. A
// variable of a type that no tensor has (texts, complex numbers) is refused only when its values
// are read; the graph of objects that TensorFlow 2 adds is omitted. Refuses variables that were
// saved in slices, bytes that two variables share, and big-endian files. Errors:
// KINGLET_INVALID_CHECKPOINT, naming the file; KINGLET_NOT_FOUND, KINGLET_IO_ERROR.
Result<TensorBundle> OpenTensorBundle(std::shared_ptr<const InputFile> index);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_TENSOR_BUNDLE_H_
