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
  // The same, but it lasts to the end of this plan step only: others have it too. Once a step.
  template <class T>
  Place TemporaryOfStep(uint64_t count) {
    if (count * sizeof(T) > of_step_bytes_) {
      of_step_bytes_ = count * sizeof(T);
      of_step_ = Temporary<T>(count);
    }
    return of_step_;
  }
  // "cuda: step NAME: expected .., found ..".
  Status Refuse(const std::string& expected, const std::string& found) const;

 private:
  Status CheckBuffers() const;
  size_t index_ = 0;
  uint64_t temporary_bytes_ = 0;
  Place of_step_;  // of so many bytes
  uint64_t of_step_bytes_ = 0;
  std::map<BufferId, Logits> logits_;
};

// A vector on its way into products.
struct ProductOperand {
  Vector vector;
  int64_t largest = 0;  // magnitude of a code
};
// The first `count` elements of a buffer; reals that `input` rounds are codes by a step that is
// appended.
ProductOperand OperandOf(Binder& binder, BufferId x, TailInput input, uint32_t count,
                         std::vector<Step>& steps);
// Appends y = finish(weight * x), of integers where both sides are, for lanes whose token is in
// the range.
Status AppendProduct(Binder& binder, WeightId weight, const ProductOperand& x, const Finish& finish,
                     Place y, TokenRange tokens, std::vector<Step>& steps);

Result<TableRows> TableRowsOf(Binder& binder, WeightId table);

// Whether int32_t holds every sum of n products of numbers up to a and b in magnitude, which fit 31
// bits each.
constexpr bool SumFitsInt32(uint64_t n, int64_t a, int64_t b) {
  const int64_t product = a * b;
  return product == 0 || n <= static_cast<uint64_t>(INT32_MAX / product);
}

using Steps = Result<std::vector<Step>>;

// One for each operation, in the file that its device half is named after.
Steps BindOp(const LayerNorm& op, Binder& binder);
Steps BindOp(const Quantise& op, Binder& binder);
Steps BindOp(const Add& op, Binder& binder);
Steps BindOp(const AddScalar& op, Binder& binder);
Steps BindOp(const MatVec& op, Binder& binder);
Steps BindOp(const LogSumExp& op, Binder& binder);
Steps BindOp(const EmbedRow& op, Binder& binder);
Steps BindDefineRow(const EmbedRow& op, Binder& binder);  // REQUIRES: op.define
Steps BindOp(const PartialProducts& op, Binder& binder);
Steps BindOp(const CodedSums& op, Binder& binder);
Steps BindOp(const LstmGates& op, Binder& binder);
Steps BindOp(const GruGates& op, Binder& binder);
Steps BindOp(const RnnGates& op, Binder& binder);
Steps BindOp(const QrnnGates& op, Binder& binder);
Steps BindOp(const BagAppend& op, Binder& binder);
Steps BindOp(const BagFeatures& op, Binder& binder);
Steps BindOp(const ScaleShiftRelu& op, Binder& binder);
Steps BindOp(const WindowAttention& op, Binder& binder);
Steps BindOp(const SourceAttention& op, Binder& binder);
Steps BindOp(const CacheAppend& op, Binder& binder);
Steps BindOp(const CacheWeights& op, Binder& binder);
Steps BindOp(const AddPositionRow& op, Binder& binder);
Steps BindOp(const AddSinusoids& op, Binder& binder);
Steps BindOp(const AddQueryBias& op, Binder& binder);
Steps BindOp(const StoreRow& op, Binder& binder);
Steps BindOp(const LoadRow& op, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_H_
