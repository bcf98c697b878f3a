// Binding: a plan's operations become device steps (step.h), once, when a model is loaded.
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

// What BindOp needs to bind one step of a plan.
class Binder {
 public:
  Binder(const Plan& of_plan, const BufferLayout& its_layout, WeightStore& its_weights)
      : plan(of_plan), layout(its_layout), weights(its_weights) {}

  // The device steps of plan step `index`. KINGLET_UNSUPPORTED names the operation and the step.
  Result<std::vector<Step>> Bind(size_t index);
  // Bytes of a lane's temporary memory that the steps bound so far need.
  uint64_t temporary_bytes() const { return temporary_bytes_; }

  // --- for BindOp
  const Plan& plan;
  const BufferLayout& layout;
  WeightStore& weights;

  Place At(BufferId id) const {
    const Slot& slot = layout[id];
    return {slot.state ? Space::kState : Space::kScratch, slot.offset};
  }
  uint32_t Count(BufferId id) const { return static_cast<uint32_t>(layout[id].count); }
  // REQUIRES: no 32-bit codes, which Bind refuses.
  Vector VectorOf(BufferId id) const;
  // The logits of a LogSumExp step that was bound, by the buffer of its result.
  Logits LogitsOf(BufferId normaliser) const { return logits_.at(normaliser); }
  void SetLogits(BufferId normaliser, const Logits& logits) { logits_[normaliser] = logits; }
  // Temporary memory of a lane that no other step uses.
  template <class T>
  Place Temporary(uint64_t count) {
    constexpr uint64_t kAlignment = 16;
    const Place place = {Space::kTemporary, temporary_bytes_};
    temporary_bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  // The same, but valid only within this plan step: all plan steps share it. At most once a step.
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
  Place of_step_;  // TemporaryOfStep's, and its size
  uint64_t of_step_bytes_ = 0;
  std::map<BufferId, Logits> logits_;
};

// The vector x of a product.
struct ProductOperand {
  Vector vector;
  int64_t largest = 0;  // the largest magnitude of a code
};
// The first `count` elements of buffer x. Where `input` says that reals are rounded to fixed point,
// appends the step that does it, and returns its codes.
ProductOperand OperandOf(Binder& binder, BufferId x, TailInput input, uint32_t count,
                         std::vector<Step>& steps);
// Appends the step y = finish(weight * x) for lanes whose token is in the range. The product is an
// integer one if both weight and x are integers.
Status AppendProduct(Binder& binder, WeightId weight, const ProductOperand& x, const Finish& finish,
                     Place y, TokenRange tokens, std::vector<Step>& steps);

// The rows of an embedding table, coded or not.
Result<TableRows> TableRowsOf(Binder& binder, WeightId table);

// A row on its way into an embedding's projection, and the step of its codes.
struct ProjectedRow {
  Place row, step;
};
// Memory for the widest row that a bin of the embedding projects. A token has one bin, so all bins
// share it.
ProjectedRow ProjectedRowOf(const EmbedRow& op, Binder& binder);
using Steps = Result<std::vector<Step>>;

// One for each operation, each in the .cc file of the header with its kernels.
Steps BindOp(const LayerNorm& op, Binder& binder);
Steps BindOp(const RootMeanSquareNorm& op, Binder& binder);
Steps BindOp(const ApplyActivation& op, Binder& binder);
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
