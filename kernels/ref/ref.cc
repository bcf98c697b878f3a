#include "kernels/ref/ref.h"

#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "format/small_build.h"
#include "kernels/ref/attention.h"
#include "kernels/ref/bag.h"
#include "kernels/ref/cache.h"
#include "kernels/ref/define.h"
#include "kernels/ref/elementwise.h"
#include "kernels/ref/embedding.h"
#include "kernels/ref/matvec.h"
#include "kernels/ref/positions.h"
#include "kernels/ref/recurrent.h"
#include "kernels/ref/softmax.h"
#include "kernels/ref/source.h"

namespace kinglet::ref {
namespace {

// A kernel that reads the same weights for every token.
template <class K>
Kernel WithWeights(K kernel) {
  std::vector<MemoryRange> weights = kernel.WeightMemory();
  return {EachFrame(std::move(kernel)), std::move(weights)};
}

// A kernel that reads weights that depend on the token, and perhaps others for every token.
template <class K>
Kernel WithTokenWeights(const K& kernel) {
  Kernel made = {
      EachFrame(kernel), {}, [kernel](uint32_t token) { return kernel.TokenMemory(token); }};
  if constexpr (requires { kernel.WeightMemory(); }) made.weights = kernel.WeightMemory();
  return made;
}

// One overload per operation: adding an operation without a definition here does not compile.
template <class T>
struct Binder {
  const Plan& plan;
  const BufferLayout& layout;
  WeightStore& store;

  Kernel operator()(const CacheAppend& op) const {
    return {EachFrame(CacheAppendKernel<T>(op, plan, layout))};
  }
  Kernel operator()(const EmbedRow& op) const {
    const auto plain = [&](std::span<const EmbeddingBin> bins) {
      return EmbedRowKernel<T>(BinRows<T>(bins, op.scale, plan, store), layout[op.out]);
    };
    if (op.units.empty()) return WithTokenWeights(plain(op.bins));
    const auto unit = [&](const DefineRows& define) {
      using Spelled =
          std::conditional_t<kSmallBuild, NoSpelledRows<T>, SpelledRows<T, FilterProducts<T>>>;
      std::shared_ptr<const Spelled> spelled;
      if constexpr (!kSmallBuild) {
        if (const EmbeddingBin* const bin = op.SpellingOf(define)) {
          spelled = std::make_shared<const Spelled>(
              *bin, plan.weights, store.claim(),
              FilterProducts<T>(*bin->spelling, plan.weights, store.claim()));
        }
      }
      return DefineRowKernel<T, BinRows<T>, Spelled, DefineFunctions<T>>(
          op, define, layout, plan.weights, store.claim(),
          BinRows<T>(op.TablesOf(define), 1, plan, store), std::move(spelled),
          DefineFunctions<T>(define, plan.weights, store.claim()));
    };
    return BindUnits(op, unit, plain);
  }
  Kernel operator()(const LayerNorm& op) const {
    return WithWeights(LayerNormKernel<T>(op, layout, store));
  }
  Kernel operator()(const RootMeanSquareNorm& op) const {
    return {EachFrame(RootMeanSquareNormKernel<T>(op, layout))};
  }
  Kernel operator()(const ApplyActivation& op) const {
    return {EachFrame(ActivateKernel<T>(op, layout))};
  }
  Kernel operator()(const MatVec& op) const {
    return WithWeights(MatVecKernel<T>(op, plan, layout, store));
  }
  Kernel operator()(const PartialProducts& op) const {
    store.Claim(BytesOfPositions(plan.weights[op.table]));
    return WithWeights(PartialProductsKernel<T>(op, plan, layout, store));
  }
  Kernel operator()(const CodedSums& op) const { return InChunks<CodedSumsKernel<T>>(op); }
  Kernel operator()(const CodedProduct& op) const { return InChunks<CodedProductKernel<T>>(op); }
  template <class K, class Operation>
  Kernel InChunks(const Operation& op) const {
    store.Claim(BytesOfPositions(plan.weights[op.table]));
    K kernel(op, plan, layout, store);
    std::vector<MemoryRange> weights = kernel.WeightMemory();
    const size_t chunks = kernel.chunks();
    return {{FramePhase(std::move(kernel), chunks)}, std::move(weights)};
  }
  Kernel operator()(const Quantise& op) const {
    return {EachFrame(QuantiseKernel<T>(op, plan, layout))};
  }
  Kernel operator()(const Add& op) const { return {EachFrame(AddKernel<T>(op, plan, layout))}; }
  Kernel operator()(const AddScalar& op) const {
    return {EachFrame(AddScalarKernel<T>(op, layout))};
  }
  Kernel operator()(const AddPositionRow& op) const {
    const AddPositionRowKernel<T> kernel(op, layout, store);
    return {EachFrame(kernel), {}, {}, [kernel](uint64_t position) {
              return kernel.PositionMemory(position);
            }};
  }
  Kernel operator()(const AddSinusoids& op) const {
    return WithWeights(AddSinusoidsKernel<T>(op, layout, store));
  }
  Kernel operator()(const AddQueryBias& op) const {
    return WithWeights(AddQueryBiasKernel<T>(op, layout, store));
  }
  Kernel operator()(const WindowAttention& op) const {
    return WithWeights(WindowAttentionKernel<T>(op, plan, layout, store));
  }
  Kernel operator()(const LogSumExp& op) const {
    return {EachFrame(LogSumExpKernel<T>(op, layout))};
  }
  Kernel operator()(const CacheWeights& op) const {
    return {EachFrame(CacheWeightsKernel<T>(op, plan, layout))};
  }
  Kernel operator()(const LstmGates& op) const {
    return {EachFrame(LstmGatesKernel<T>(op, layout))};
  }
  Kernel operator()(const GruGates& op) const { return {EachFrame(GruGatesKernel<T>(op, layout))}; }
  Kernel operator()(const RnnGates& op) const { return {EachFrame(RnnGatesKernel<T>(op, layout))}; }
  Kernel operator()(const QrnnGates& op) const {
    return {EachFrame(QrnnGatesKernel<T>(op, layout))};
  }
  Kernel operator()(const BagAppend& op) const {
    return {EachFrame(BagAppendKernel<T>(op, layout))};
  }
  Kernel operator()(const BagFeatures& op) const {
    return {EachFrame(BagFeaturesKernel<T>(op, layout))};
  }
  Kernel operator()(const ScaleShiftRelu& op) const {
    return WithWeights(ScaleShiftReluKernel<T>(op, layout, store));
  }
  Kernel operator()(const StoreRow& op) const {
    return {EachFrame(StoreRowKernel<T>(op, plan, layout))};
  }
  Kernel operator()(const LoadRow& op) const {
    return {EachFrame(LoadRowKernel<T>(op, plan, layout))};
  }
  Kernel operator()(const SourceAttention& op) const {
    return WithWeights(SourceAttentionKernel<T>(
        op, plan, layout, op.score_weight ? store.Get(*op.score_weight) : nullptr));
  }
  Kernel operator()(const Join& op) const { return {EachFrame(JoinKernel<T>(op, layout))}; }
};

template <class T>
Result<std::vector<Kernel>> BindAll(const Plan& plan, const BufferLayout& layout,
                                    const ClaimBytes& claim) {
  WeightStore store(plan, claim);
  std::vector<Kernel> kernels;
  kernels.reserve(plan.nodes.size());
  for (const Node& node : plan.nodes) kernels.push_back(BindNode<T>(node, plan, layout, store));
  return kernels;
}

}  // namespace

template <class T>
Kernel BindNode(const Node& node, const Plan& plan, const BufferLayout& layout,
                WeightStore& store) {
  return std::visit(
      [&]<class Operation>(const Operation& op) -> Kernel {
        if constexpr (kOfOtherModels<Operation>) {
          return {};
        } else {
          return Binder<T>{plan, layout, store}(op);
        }
      },
      node.op);
}

template Kernel BindNode<float>(const Node&, const Plan&, const BufferLayout&, WeightStore&);
template Kernel BindNode<double>(const Node&, const Plan&, const BufferLayout&, WeightStore&);

Result<std::vector<Kernel>> BindFloat(const Plan& plan, const BufferLayout& layout,
                                      const ClaimBytes& claim) {
  return BindAll<float>(plan, layout, claim);
}
Result<std::vector<Kernel>> BindDouble(const Plan& plan, const BufferLayout& layout,
                                       const ClaimBytes& claim) {
  return BindAll<double>(plan, layout, claim);
}

}  // namespace kinglet::ref
