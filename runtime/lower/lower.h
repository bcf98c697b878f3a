// Blocks -> plan. One file per kind of block in this folder; lower.cc puts them together.
#ifndef KINGLET_RUNTIME_LOWER_LOWER_H_
#define KINGLET_RUNTIME_LOWER_LOWER_H_

#include <span>

#include "format/model_file.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// A description and the directory its tensor ids index, of which only shapes are read; the plan
// refers to the directory.
Result<Plan> Lower(const ModelDescription& description, std::span<const TensorView> tensors);
// The plan refers to the file's tensors; the file must outlive it.
Result<Plan> Lower(const ModelFile& file);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_LOWER_H_
