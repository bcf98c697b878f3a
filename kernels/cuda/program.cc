#include "kernels/cuda/program.h"

#include <span>
#include <string>
#include <variant>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/demand.h"
#include "kernels/cuda/weights.h"

namespace kinglet::cuda {
namespace {

// Lets an integer product quantise its own result where the next plan step would do that, which
// then has no device steps. Each saves a barrier of all blocks.
void JoinQuantisers(const Plan& plan, std::vector<std::vector<Step>>& bound) {
  for (size_t i = 1; i < plan.steps.size(); ++i) {
    const auto* product = std::get_if<MatVec>(&plan.steps[i - 1].op);
    const auto* quantise = std::get_if<Quantise>(&plan.steps[i].op);
    if (product == nullptr || quantise == nullptr || product->y != quantise->x) continue;
    Step& last = bound[i - 1].back();
    if (!IsKind<IntegerProduct>(last)) continue;
    auto joined = ArgumentsOf<IntegerProduct>(last);
    const auto codes = ArgumentsOf<QuantiseVector>(bound[i].back());
    if (joined.matrix.rows != codes.count) continue;
    joined.quantises = true;
    joined.codes = codes.codes;
    joined.rounding = codes.rounding;
    last = MakeStep(joined);
    bound[i].clear();
  }
}

// Refuses a step that needs more shared memory than a block of the device can have.
Status CheckSharedBytes(const std::string& name, const std::vector<Step>& steps,
                        const Device& device) {
  const uint64_t most = device.SharedBytesOfBlock();
  for (const Step& step : steps) {
    if (SharedBytesOf(step) <= most) continue;
    return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "step " + name,
                           "at most " + std::to_string(most) + " bytes of a block's shared memory",
                           std::to_string(SharedBytesOf(step)));
  }
  return Status();
}

}  // namespace

Result<std::shared_ptr<const Program>> Program::Bind(const Plan& plan, const BufferLayout& layout,
                                                     const std::shared_ptr<Device>& device,
                                                     const ReleaseBytes& release) {
  const std::shared_ptr<Program> program(new Program(device));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, device->CreateQueue());
  WeightStore weights(plan, device, *queue, program->memory_);
  Binder binder(plan, layout, weights);
  std::vector<std::vector<Step>> bound;  // by plan step
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(std::vector<Step> steps, binder.Bind(i));
    KINGLET_RETURN_IF_ERROR(CheckSharedBytes(plan.steps[i].name, steps, *device));
    bound.push_back(std::move(steps));
  }
  JoinQuantisers(plan, bound);
  for (const std::vector<Step>& steps : bound) {
    program->firsts_.push_back(static_cast<uint32_t>(program->steps_.size()));
    program->steps_.insert(program->steps_.end(), steps.begin(), steps.end());
  }
  program->firsts_.push_back(static_cast<uint32_t>(program->steps_.size()));
  KINGLET_ASSIGN_OR_RETURN(program->queries_, Queries::Bind(plan, bound, *device, binder));
  program->weight_bytes_ = weights.bytes();
  KINGLET_ASSIGN_OR_RETURN(program->on_device_,
                           weights.Constants(std::span<const Step>(program->steps_)));
  KINGLET_RETURN_IF_ERROR(queue->Wait());
  weights.Release(release);
  program->temporary_bytes_ = binder.temporary_bytes();
  return std::shared_ptr<const Program>(program);
}

StepList Program::List(StepRange range) const {
  const uint32_t begin = firsts_[range.begin], end = firsts_[range.end];
  return {steps_.data() + begin, end - begin, on_device_ + begin};
}

std::optional<DeviceDemand> Program::DemandOf(size_t step,
                                              std::span<const StreamFrame> lanes) const {
  const StepList list = List({step, step + 1});
  if (list.count == 0) return std::nullopt;
  DeviceDemand demand;
  for (uint32_t i = 0; i < list.count; ++i) demand += cuda::DemandOf(list.steps[i], lanes);
  return demand;
}

}  // namespace kinglet::cuda
