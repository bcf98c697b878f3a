// The backend `onednn`: the backend `cpu`, but in sessions of many lanes, and in encoders, float32
// products are oneDNN's, whose sums have another order (docs/NUMERICS.md).
#ifndef KINGLET_KERNELS_ONEDNN_BACKEND_H_
#define KINGLET_KERNELS_ONEDNN_BACKEND_H_

#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet::onednn {

// How far log-probabilities may be from those of the backend `ref`.
inline constexpr double kTolerance = 1e-4;

// The library's name and version. Errors: those of Library::Find.
Result<std::string> LibraryName();
// Like cpu::BindCpu. Errors: also those of LibraryName.
Result<std::vector<Kernel>> Bind(const Plan& plan, const BufferLayout& layout,
                                 const WeightMemory& memory);

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_BACKEND_H_
