#include "kernels/cuda/program.h"

#include <span>

#include "kernels/cuda/bind.h"
#include "kernels/cuda/weights.h"

namespace kinglet::cuda {

Result<std::shared_ptr<const Program>> Program::Bind(const Plan& plan, const BufferLayout& layout,
                                                     const std::shared_ptr<Device>& device,
                                                     const ReleaseBytes& release) {
  const std::shared_ptr<Program> program(new Program(device));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Queue> queue, device->CreateQueue());
  WeightStore weights(plan, device, *queue, program->memory_);
  Binder binder(plan, layout, weights);
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    program->firsts_.push_back(static_cast<uint32_t>(program->steps_.size()));
    KINGLET_ASSIGN_OR_RETURN(const std::vector<Step> steps, binder.Bind(i));
    program->steps_.insert(program->steps_.end(), steps.begin(), steps.end());
  }
  program->firsts_.push_back(static_cast<uint32_t>(program->steps_.size()));
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

}  // namespace kinglet::cuda
