// The normaliser of a softmax over any number of logits.
#include <algorithm>
#include <cstddef>

#include "kernels/cpu/bind.h"
#include "kernels/cpu/logit_tiles.h"
#include "kernels/functions.h"
#include "kernels/ref/softmax.h"
#include "kernels/ref/sum.h"

namespace kinglet::cpu {
namespace {

// Combines the tiles' largest logits and sums into the normaliser.
class FoldTiles {
 public:
  FoldTiles(const LogSumExp& op, const BindContext& context)
      : vector_(&context.vector),
        out_(context.layout[op.out]),
        largest_(context.layout[op.tiles.largest]),
        sums_(context.layout[op.tiles.sums]) {}

  void operator()(StreamFrame& frame) const {
    const float* const largest = largest_.At<float>(frame);
    float* const sums = sums_.At<float>(frame);
    float* const out = out_.At<float>(frame);
    out[0] = ref::Largest(largest, largest_.count);
    ref::PairwiseFold<float> total;
    constexpr size_t kTogether = 128;
    for (size_t begin = 0; begin < sums_.count; begin += kTogether) {
      const size_t n = std::min(kTogether, sums_.count - begin);
      float factors[kTogether];
      for (size_t i = 0; i < n; ++i) factors[i] = TileReference(largest[begin + i]) - out[0];
      vector_->exponentials(factors, n, factors);
      for (size_t i = 0; i < n; ++i) total.Push(sums[begin + i] *= factors[i]);
    }
    out[1] = Log(total.Total());
  }

 private:
  const VectorFunctions* vector_;
  Slot out_, largest_, sums_;
};

// Tiles of a chunk.
constexpr size_t kChunkTiles = 2;

}  // namespace

Kernel BindOp(const LogSumExp& op, const BindContext& context) {
  const FoldTiles fold(op, context);
  if (context.summed_products != nullptr && context.summed_products->IsSummed(op)) {
    return {EachFrame(fold)};
  }
  const LogitTileSums sums(op, context.layout, context.vector);
  const size_t chunks = (sums.count() + kChunkTiles - 1) / kChunkTiles;
  if (chunks == 1) {
    return {EachFrame([sums, fold](StreamFrame& frame) {
      sums.Sum(frame, 0, sums.count());
      fold(frame);
    })};
  }
  const auto sum = [sums](StreamFrame& frame, Chunks part) {
    sums.Sum(frame, part.begin * kChunkTiles, std::min(part.end * kChunkTiles, sums.count()));
  };
  return {{FramePhase(sum, chunks), FramePhase(fold)}};
}

}  // namespace kinglet::cpu
