// The `cpu` backend: the reference kernels in vectors, equal to them bit for bit on quantised and
// on float models alike. The instruction set is chosen once, when a plan is bound: the best the
// machine has, or the one the environment variable KINGLET_CPU names.
#ifndef KINGLET_KERNELS_CPU_CPU_H_
#define KINGLET_KERNELS_CPU_CPU_H_

#include <string_view>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/vector.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet::cpu {

// "scalar", "neon", "avx2", "avx512", "avx512vnni".
std::string_view TargetName(Target target);
// What this machine can run, best first; kScalar is always there, last.
std::vector<Target> SupportedTargets();
// KINGLET_UNSUPPORTED for a name that is unknown or that this machine cannot run.
Result<Target> FindTarget(std::string_view name);
// What is to run: the best, or the one KINGLET_CPU names. Errors: those of FindTarget.
Result<Target> ChosenTarget();

// KINGLET_UNSUPPORTED for a bad KINGLET_CPU; KINGLET_OUT_OF_MEMORY.
Result<std::vector<Kernel>> BindCpu(const Plan& plan, const BufferLayout& layout,
                                    const ReleaseBytes& release = {});
// With given functions, which outlive the kernels; null: the reference kernels.
Result<std::vector<Kernel>> BindWith(const VectorFunctions* functions, const Plan& plan,
                                     const BufferLayout& layout, const ReleaseBytes& release = {});

// Of ChosenTarget; of the reference where it is kScalar or an error.
ClusterFunctions<float> ClusterFunctionsCpu();

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_CPU_H_
