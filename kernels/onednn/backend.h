// The backend `onednn`: the backend `cpu`, but in sessions of many lanes float32 products are
// oneDNN's, whose sums have another order (docs/NUMERICS.md).
#ifndef KINGLET_KERNELS_ONEDNN_BACKEND_H_
#define KINGLET_KERNELS_ONEDNN_BACKEND_H_

#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet::onednn {

// As cpu::BindCpu.
Result<std::vector<Kernel>> Bind(const Plan& plan, const BufferLayout& layout,
                                 const ReleaseBytes& release);

}  // namespace kinglet::onednn

#endif  // KINGLET_KERNELS_ONEDNN_BACKEND_H_
