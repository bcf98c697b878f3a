// Lowering: turns the blocks of a model file into a plan, which is nodes over named buffers. Each
// kind of block has a file in this folder; lower.cc joins them.
#ifndef KINGLET_RUNTIME_LOWER_LOWER_H_
#define KINGLET_RUNTIME_LOWER_LOWER_H_

#include <span>
#include <vector>

#include "format/model_file.h"
#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/lower/builder.h"

namespace kinglet {

// The name of the buffer of the decoder's output (in floats, for a quantised decoder), which the
// output layers read. Without output layers it is the hidden state.
inline const char* DecodedName(const DenseLayers* output_layers) {
  return output_layers == nullptr ? "hidden" : "decoded";
}

// Lowers a description. `tensors` is the directory that its tensor ids index; only shapes are read.
// The plan refers to the directory, which must outlive it. Errors: KINGLET_INVALID_MODEL if a block
// is missing.
//
// `points`, where not null, gets what each quantiser of the description is for; values of
// quantisers then count for nothing, and the plan is that of the model without any.
Result<Plan> Lower(const ModelDescription& description, std::span<const TensorView> tensors,
                   std::vector<QuantiserPoint>* points = nullptr);
// Lowers a file, which must outlive the plan.
Result<Plan> Lower(const ModelFile& file);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_LOWER_LOWER_H_
