// Binding: a plan's operations become device nodes (node.h), once, when a model is loaded.
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

// What BindOp needs to bind one node of a plan.
class Binder {
 public:
  // With `text` the plan is one that TextPlanOf (bind_text.h) made.
  Binder(const Plan& of_plan, const BufferLayout& its_layout, WeightStore& its_weights,
         bool text = false)
      : plan(of_plan), layout(its_layout), weights(its_weights), of_text(text) {}

  // The device nodes of plan node `index`. KINGLET_UNSUPPORTED names the operation and the node.
  Result<std::vector<Node>> Bind(size_t index);
  // The bytes of a lane's temporary memory that the nodes bound so far need.
  uint64_t temporary_bytes() const { return temporary_bytes_; }

  // --- for BindOp
  const Plan& plan;
  const BufferLayout& layout;
  WeightStore& weights;
  const bool of_text;

  Place At(BufferId id) const {
    const Slot& slot = layout[id];
    return {slot.state ? Space::kState : Space::kScratch, slot.offset};
  }
  uint32_t Count(BufferId id) const { return static_cast<uint32_t>(layout[id].count); }
  // REQUIRES: no 32-bit codes, which Bind refuses.
  Vector VectorOf(BufferId id) const;
  // The logits of a LogSumExp node that was bound, by the buffer of its result.
  Logits LogitsOf(BufferId normaliser) const { return logits_.at(normaliser); }
  void SetLogits(BufferId normaliser, const Logits& logits) { logits_[normaliser] = logits; }
  // Temporary memory of a lane that no other node uses.
  template <class T>
  Place Temporary(uint64_t count) {
    constexpr uint64_t kAlignment = 16;
    const Place place = {Space::kTemporary, temporary_bytes_};
    temporary_bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  // Temporary memory that is valid only within one plan node: all plan nodes use the same bytes.
  // Call at most once a node.
  template <class T>
  Place TemporaryOfNode(uint64_t count) {
    if (count * sizeof(T) > of_node_bytes_) {
      of_node_bytes_ = count * sizeof(T);
      of_node_ = Temporary<T>(count);
    }
    return of_node_;
  }
  // "cuda: node NAME: expected .., found ..".
  Status Refuse(const std::string& expected, const std::string& found) const;

 private:
  Status CheckBuffers() const;
  size_t index_ = 0;
  uint64_t temporary_bytes_ = 0;
  Place of_node_;  // the memory that TemporaryOfNode hands out, and its size
  uint64_t of_node_bytes_ = 0;
  std::map<BufferId, Logits> logits_;
};

// The vector x of a product.
struct ProductOperand {
  Vector vector;
  int64_t largest = 0;  // the largest magnitude of a code
};
// The first `count` elements of buffer x. If `input` requires that floats are rounded to fixed
// point, appends the node that rounds them, and returns its codes.
ProductOperand OperandOf(Binder& binder, BufferId x, TailInput input, uint32_t count,
                         std::vector<Node>& nodes);
// Appends the node y = finish(weight * x) for lanes whose token is in the range. The product is an
// integer one if both weight and x are integers.
Status AppendProduct(Binder& binder, WeightId weight, const ProductOperand& x, const Finish& finish,
                     Place y, TokenRange tokens, std::vector<Node>& nodes);

// The rows of an embedding table, coded or not.
Result<TableRows> TableRowsOf(Binder& binder, WeightId table);

// A row on its way into an embedding's projection, and the scale of its codes.
struct ProjectedRow {
  Place row, scale;
};
// Memory for the widest row that a bin of the embedding projects. A token has one bin, so all bins
// share it.
ProjectedRow ProjectedRowOf(std::span<const EmbeddingBin> bins, Binder& binder);
using Nodes = Result<std::vector<Node>>;

// BindOp has one overload for each operation, in the .cc file of the header with the operation's
// kernels.
Nodes BindOp(const LayerNorm& op, Binder& binder);
Nodes BindOp(const RootMeanSquareNorm& op, Binder& binder);
Nodes BindOp(const ApplyActivation& op, Binder& binder);
Nodes BindOp(const Quantise& op, Binder& binder);
Nodes BindOp(const Add& op, Binder& binder);
Nodes BindOp(const AddScalar& op, Binder& binder);
Nodes BindOp(const Join& op, Binder& binder);
Nodes BindOp(const MatVec& op, Binder& binder);
Nodes BindOp(const LogSumExp& op, Binder& binder);
Nodes BindOp(const EmbedRow& op, Binder& binder);
// Of the unit's bins; lanes with tokens of others are left alone.
Nodes BindDefineRow(const EmbedRow& op, const DefineRows& define, Binder& binder);
Nodes BindOp(const PartialProducts& op, Binder& binder);
Nodes BindOp(const CodedSums& op, Binder& binder);
Nodes BindOp(const CodedProduct& op, Binder& binder);
// The node before a stream's tokens (ClearForFirstToken), or no node for a plan without such state.
Nodes BindClearForFirstToken(Binder& binder);
Nodes BindOp(const LstmGates& op, Binder& binder);
Nodes BindOp(const GruGates& op, Binder& binder);
Nodes BindOp(const RnnGates& op, Binder& binder);
Nodes BindOp(const QrnnGates& op, Binder& binder);
Nodes BindOp(const BagAppend& op, Binder& binder);
Nodes BindOp(const BagFeatures& op, Binder& binder);
Nodes BindOp(const ScaleShiftRelu& op, Binder& binder);
Nodes BindOp(const WindowAttention& op, Binder& binder);
Nodes BindOp(const SourceAttention& op, Binder& binder);
Nodes BindOp(const CacheAppend& op, Binder& binder);
Nodes BindOp(const CacheWeights& op, Binder& binder);
Nodes BindOp(const AddPositionRow& op, Binder& binder);
Nodes BindOp(const AddSinusoids& op, Binder& binder);
Nodes BindOp(const AddQueryBias& op, Binder& binder);
Nodes BindOp(const StoreRow& op, Binder& binder);
Nodes BindOp(const LoadRow& op, Binder& binder);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_BIND_H_
