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
      : out_(context.layout[op.out]),
        largest_(context.layout[op.tiles.largest]),
        sums_(context.layout[op.tiles.sums]) {}

  void operator()(StreamFrame& frame) const {
    const float* const largest = largest_.At<float>(frame);
    float* const sums = sums_.At<float>(frame);
    float* const out = out_.At<float>(frame);
    out[2] = ref::Largest(largest, largest_.count);
    out[0] = SoftmaxReference(out[2]);
    ref::PairwiseFold<float> total;
    for (size_t b = 0; b < sums_.count; ++b) {
      // Mostly exp(0).
      const float shift = TileReference(largest[b]) - out[0];
      if (shift != 0.0f) sums[b] *= Exp(shift);
      total.Push(sums[b]);
    }
    out[1] = Log(total.Total());
  }

 private:
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
