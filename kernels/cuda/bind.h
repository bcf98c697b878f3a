// From a plan's operations to a device's steps, once, at load.
#ifndef KINGLET_KERNELS_CUDA_BIND_H_
#define KINGLET_KERNELS_CUDA_BIND_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/weights.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

// What binding one step of the plan works with.
class Binder {
 public:
  Binder(const Plan& of_plan, const BufferLayout& its_layout, WeightStore& its_weights)
      : plan(of_plan), layout(its_layout), weights(its_weights) {}

  // The steps that plan step `index` becomes. KINGLET_UNSUPPORTED names the operation and the step.
  Result<std::vector<Step>> Bind(size_t index);
  // Of a lane, that all steps bound so far need.
  uint64_t temporary_bytes() const { return temporary_bytes_; }

  // --- for the operations
  const Plan& plan;
  const BufferLayout& layout;
  WeightStore& weights;

  Place At(BufferId id) const {
    const Slot& slot = layout[id];
    return {slot.state ? Space::kState : Space::kScratch, slot.offset};
  }
  uint32_t Count(BufferId id) const { return static_cast<uint32_t>(layout[id].count); }
  // REQUIRES: no codes of 32 bits; Bind has seen to that.
  Vector VectorOf(BufferId id) const;
  // What a LogSumExp step that was bound works on, by the buffer of its result.
  Logits LogitsOf(BufferId normaliser) const { return logits_.at(normaliser); }
  void SetLogits(BufferId normaliser, const Logits& logits) { logits_[normaliser] = logits; }
  // Memory of a lane that no other step uses.
  template <class T>
  Place Temporary(uint64_t count) {
    constexpr uint64_t kAlignment = 16;
    const Place place = {Space::kTemporary, temporary_bytes_};
    temporary_bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  // "cuda: step NAME: expected .., found ..".
  Status Refuse(const std::string& expected, const std::string& found) const;

 private:
  Status CheckBuffers() const;
  size_t index_ = 0;
  uint64_t temporary_bytes_ = 0;
  std::map<BufferId, Logits> logits_;
};

using Steps = Result<std::vector<Step>>;

// One for each operation, in the file that its device half is named after.
Steps BindOp(const LayerNorm& op, Binder& binder);
Steps BindOp(const Quantise& op, Binder& binder);
Steps BindOp(const Add& op, Binder& binder);
Steps BindOp(const AddScalar& op, Binder& binder);
Steps BindOp(const MatVec& op, Binder& binder);
Steps BindOp(const LogSumExp& op, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_H_
