// The `cpu` backend: vectorised (SIMD) kernels, whose results equal those of the reference kernels
// bit for bit on quantised and on float models. The instruction set is chosen when a plan is bound:
// the best of this machine, or the one that the environment variable KINGLET_CPU names.
#ifndef KINGLET_KERNELS_CPU_CPU_H_
#define KINGLET_KERNELS_CPU_CPU_H_

#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/many_product.h"
#include "kernels/cpu/vector.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet::cpu {

// "scalar", "neon", "avx2", "avx512", "avx512vnni".
std::string_view TargetName(Target target);
// The targets that this machine can run, best first; the last is always kScalar.
std::vector<Target> SupportedTargets();
// KINGLET_UNSUPPORTED for a name that is unknown or that this machine cannot run.
Result<Target> FindTarget(std::string_view name);
// The best target, or the one that KINGLET_CPU names. Errors: those of FindTarget.
Result<Target> ChosenTarget();

// KINGLET_UNSUPPORTED for a bad KINGLET_CPU; KINGLET_OUT_OF_MEMORY.
Result<std::vector<Kernel>> BindCpu(const Plan& plan, const BufferLayout& layout,
                                    const WeightMemory& memory = {});
// Binds with `functions`, which outlive the kernels, or to the reference kernels if it is null. In
// sessions of many lanes the kernels use the products of `many_products`, if it is not null.
Result<std::vector<Kernel>> BindWith(const VectorFunctions* functions, const Plan& plan,
                                     const BufferLayout& layout, const WeightMemory& memory = {},
                                     ManyProducts* many_products = nullptr);

// The functions of ChosenTarget; those of the reference if it is kScalar or an error.
ClusterFunctions<float> ClusterFunctionsCpu();

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_CPU_H_
