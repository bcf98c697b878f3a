// The reference backends: the readable specification of every operation, single-threaded,
// instantiated for float (`ref`, which every other backend equals bit for bit on quantised models)
// and double (`ref64`, which equals the original framework's float64). These files include no code
// of the fast backends.
#ifndef KINGLET_KERNELS_REF_REF_H_
#define KINGLET_KERNELS_REF_REF_H_

#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kernels/ref/weights.h"
#include "kinglet/status.h"

namespace kinglet::ref {

// The kernel of one node. T is float or double.
template <class T>
Kernel BindNode(const Node& node, const Plan& plan, const BufferLayout& layout, WeightStore& store);

extern template Kernel BindNode<float>(const Node&, const Plan&, const BufferLayout&, WeightStore&);
extern template Kernel BindNode<double>(const Node&, const Plan&, const BufferLayout&,
                                        WeightStore&);

// One kernel per node of the plan.
Result<std::vector<Kernel>> BindFloat(const Plan& plan, const BufferLayout& layout,
                                      const ClaimBytes& claim = {});
Result<std::vector<Kernel>> BindDouble(const Plan& plan, const BufferLayout& layout,
                                       const ClaimBytes& claim = {});

}  // namespace kinglet::ref

#endif  // KINGLET_KERNELS_REF_REF_H_
