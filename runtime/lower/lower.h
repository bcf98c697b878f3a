// Blocks -> plan. One file per kind of block in this folder; lower.cc puts them together.
#ifndef KINGLET_RUNTIME_LOWER_LOWER_H_
#define KINGLET_RUNTIME_LOWER_LOWER_H_

#include "format/model_file.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// The plan refers to the file's tensors; the file must outlive it.
Result<Plan> Lower(const ModelFile& file);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_LOWER_H_
