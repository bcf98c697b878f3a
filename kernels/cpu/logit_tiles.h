// The part of LogSumExp that needs no other tile of the logits: each tile's largest one and its
// sum (kernels/op.h).
#ifndef KINGLET_KERNELS_CPU_LOGIT_TILES_H_
#define KINGLET_KERNELS_CPU_LOGIT_TILES_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "kernels/backend.h"
#include "kernels/cpu/vector.h"
#include "kernels/numerics.h"
#include "kernels/op.h"
#include "kernels/plan.h"

namespace kinglet::cpu {

class LogitTileSums {
 public:
  LogitTileSums(const LogSumExp& op, const BufferLayout& layout, const VectorFunctions& vector)
      : vector_(&vector),
        x_(layout[op.x]),
        largest_(layout[op.tiles.largest]),
        sums_(layout[op.tiles.sums]) {}

  size_t count() const { return sums_.count; }
  // Computes the largest logits and the sums of tiles [begin, end), whose logits are in the frame.
  void Sum(const StreamFrame& frame, size_t begin, size_t end) const {
    for (size_t tile = begin; tile < end; ++tile) {
      const float* const logits = x_.At<float>(frame) + tile * kSumTile;
      *LargestOf(frame, tile) = vector_->largest(logits, CountOf(tile));
      SumOne(frame, tile, logits, {});
    }
  }
  // Computes the sum of one tile with these logits. REQUIRES: LargestOf contains the largest.
  void SumOne(const StreamFrame& frame, size_t tile, const float* logits,
              const LinesAhead& ahead) const {
    vector_->sum_logit_tiles(logits, CountOf(tile), x_.count < kShortSum, LargestOf(frame, tile),
                             ahead, sums_.At<float>(frame) + tile);
  }
  float* LargestOf(const StreamFrame& frame, size_t tile) const {
    return largest_.At<float>(frame) + tile;
  }

 private:
  size_t CountOf(size_t tile) const {
    return std::min<size_t>(x_.count - tile * kSumTile, kSumTile);
  }

  const VectorFunctions* vector_;
  Slot x_, largest_, sums_;
};

// Products that compute all logits of the normaliser after them. A product's kernel sums each tile
// while the tile's logits are in the first-level cache: for a large vocabulary and many lanes, all
// logits together fit no cache.
class SummedProducts {
 public:
  explicit SummedProducts(const Plan& plan);
  // The normaliser whose logits all come from `product`, a node of the plan. Null if there is no
  // such normaliser.
  const LogSumExp* NormaliserOf(const MatVec& product) const;

  // Records that a product's kernel sums the normaliser's tiles, so that the normaliser's kernel
  // need not.
  void SetSummed(const LogSumExp& normaliser) { summed_.insert(&normaliser); }
  bool IsSummed(const LogSumExp& normaliser) const { return summed_.contains(&normaliser); }

 private:
  std::map<const MatVec*, const LogSumExp*> normalisers_;
  std::set<const LogSumExp*> summed_;
};

}  // namespace kinglet::cpu

#endif  // KINGLET_KERNELS_CPU_LOGIT_TILES_H_
