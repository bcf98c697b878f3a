// Several checkpoints of one training, averaged tensor by tensor: Polyak averages, "the best five
// epochs".
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_AVERAGE_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_AVERAGE_H_

#include <vector>

#include "converters/checkpoints/checkpoint_file.h"
#include "kinglet/status.h"

namespace kinglet {

// The tensors of one file, with the means of the values of all files: the float32 values are summed
// in double in the order of the files, divided by the number of files and rounded once. Integers
// (counts, codes) must be equal in all files when they are read. Configuration, modules, step and
// path are the first file's. `bytes` are the first file's too; the digest is that of all digests.
// Errors: KINGLET_INVALID_CHECKPOINT for a tensor that a file lacks, that only a later one has, or
// that has another shape. REQUIRES: at least one file.
Result<CheckpointFile> AverageOf(std::vector<CheckpointFile> files);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_AVERAGE_H_
