// The reference backends: the readable specification of every operation, single-threaded,
// instantiated for float (`ref`, which every other backend equals bit for bit on quantised models)
// and double (`ref64`, which equals the original training code's float64). Includes nothing of the
// fast backends.
#ifndef KINGLET_KERNELS_REF_REF_H_
#define KINGLET_KERNELS_REF_REF_H_

#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kernels/ref/weights.h"
#include "kinglet/status.h"

namespace kinglet::ref {

// The kernel of one step. T is float or double.
template <class T>
Kernel BindStep(const Step& step, const Plan& plan, const BufferLayout& layout, WeightStore& store);

extern template Kernel BindStep<float>(const Step&, const Plan&, const BufferLayout&, WeightStore&);
extern template Kernel BindStep<double>(const Step&, const Plan&, const BufferLayout&,
                                        WeightStore&);

// One kernel per step of the plan.
Result<std::vector<Kernel>> BindFloat(const Plan& plan, const BufferLayout& layout,
                                      const ClaimBytes& claim = {});
Result<std::vector<Kernel>> BindDouble(const Plan& plan, const BufferLayout& layout,
                                       const ClaimBytes& claim = {});

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_REF_H_
