#include "kernels/cpu/cpu.h"

#include <array>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "kernels/cpu/bind.h"
#include "kernels/ref/cluster_tokens.h"
#include "kernels/ref/ref.h"

namespace kinglet::cpu {
namespace {

constexpr std::array<Target, 6> kBestFirst = {Target::kAvx512Vnni, Target::kAvx512,
                                              Target::kAvx2,       Target::kNeon,
                                              Target::kWasm,       Target::kScalar};

bool Supported(Target target) {
  return target == Target::kScalar || FindVectorFunctions(target) != nullptr;
}

// A reference kernel decodes all tensors that it needs when it is bound, except codes.
struct KeepCodedTables : OperandVisitor {
  const Plan& plan;
  WeightStore& weights;
  KeepCodedTables(const Plan& of, WeightStore& store) : plan(of), weights(store) {}
  void Codes(WeightId table) {
    if (plan.weights[table].coded() != nullptr) weights.Keep(table);
  }
};

}  // namespace

std::string_view TargetName(Target target) {
  switch (target) {
    case Target::kScalar:
      return "scalar";
    case Target::kNeon:
      return "neon";
    case Target::kWasm:
      return "wasm";
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx512:
      return "avx512";
    case Target::kAvx512Vnni:
      return "avx512vnni";
  }
  return "";
}

std::vector<Target> SupportedTargets() {
  std::vector<Target> supported;
  for (const Target target : kBestFirst) {
    if (Supported(target)) supported.push_back(target);
  }
  return supported;
}

Result<Target> FindTarget(std::string_view name) {
  std::string known;
  for (const Target target : SupportedTargets()) {
    if (TargetName(target) == name) return target;
    if (!known.empty()) known += ", ";
    known += TargetName(target);
  }
  return Status::Refusal(KINGLET_UNSUPPORTED, "cpu", "KINGLET_CPU",
                         "one of " + known + " on this machine", "\"" + std::string(name) + "\"");
}

Operand::Operand(const BindContext& context, BufferId id)
    : slot(context.layout[id]), element(context.plan.buffer(id).element) {
  const BufferSpec& buffer = context.plan.buffer(id);
  if (buffer.quantiser) {
    scale = buffer.quantiser->scale;
    largest = LargestCode(*buffer.quantiser);
  }
}

Result<std::vector<Kernel>> BindWith(const VectorFunctions* functions, const Plan& plan,
                                     const BufferLayout& layout, const WeightMemory& memory,
                                     ManyProducts* many_products) {
  if (functions == nullptr) return ref::BindFloat(plan, layout, memory.claim);
  try {
    WeightStore weights(plan, *functions, memory);
    ref::WeightStore reference_weights(plan, memory.claim);
    SummedProducts summed_products(plan);
    const BindContext context{plan, layout, *functions, weights, many_products, &summed_products};
    std::vector<Kernel> kernels;
    kernels.reserve(plan.nodes.size());
    for (const Node& node : plan.nodes) {
      Kernel kernel = std::visit(
          [&]<class Operation>(const Operation& op) -> Kernel {
            if constexpr (kOfOtherModels<Operation>) {
              return {};
            } else {
              return BindOp(op, context);
            }
          },
          node.op);
      if (!kernel) {
        kernel = ref::BindNode<float>(node, plan, layout, reference_weights);
        kernel.is_substitute = true;
        VisitOperands(plan, node.op, KeepCodedTables(plan, weights));
      }
      kernels.push_back(std::move(kernel));
    }
    weights.LayOut();
    if (many_products != nullptr) many_products->LayOut();
    return kernels;
  } catch (const std::bad_alloc&) {
    return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cpu", "weights", "memory for their layout",
                           "none left");
  }
}

Result<Target> ChosenTarget() {
  const char* name = std::getenv("KINGLET_CPU");
  if (name != nullptr && *name != '\0') return FindTarget(name);
  return SupportedTargets().front();
}

Result<std::vector<Kernel>> BindCpu(const Plan& plan, const BufferLayout& layout,
                                    const WeightMemory& memory) {
  KINGLET_ASSIGN_OR_RETURN(const Target target, ChosenTarget());
  return BindWith(FindVectorFunctions(target), plan, layout, memory);
}

ClusterFunctions<float> ClusterFunctionsCpu() {
  const Result<Target> target = ChosenTarget();
  const VectorFunctions* functions = target.ok() ? FindVectorFunctions(*target) : nullptr;
  if (functions == nullptr) return ref::kClusterFunctions<float>;
  return {functions->log_probabilities, functions->at_least, functions->mix,
          functions->exponentials};
}

}  // namespace kinglet::cpu
