// All logits of the next token for few lanes, in one node: of every softmax cluster, the head and
// the tails, and of the neural cache's pairs. C++17.
//
// A work item is a sum tile (1,024 logits) of a cluster of a lane, or a part of its cache. A thread
// block computes a tail's input, the projected hidden state in 15-bit fixed point, for itself: that
// takes less time than to wait for a thread block that computes it for all. NormaliseClusters then
// takes one thread block per lane.
#ifndef KINGLET_KERNELS_CUDA_CLUSTER_LOGITS_H_
#define KINGLET_KERNELS_CUDA_CLUSTER_LOGITS_H_

#include <cstdint>

#include "kernels/cuda/cache.h"
#include "kernels/cuda/fixed_point.h"
#include "kernels/cuda/row_products.h"
#include "kernels/cuda/softmax.h"

namespace kinglet::cuda {

// How a cluster's logits are computed.
struct ClusterLogits {
  TokenRange tokens;
  Logits logits;
  bool projects;              // the product's vector is the projected hidden state
  IntegerProduct projection;  // at most kSumTile rows
  IntegerProduct product;     // the first logits
  IntegerProduct rest;        // the others, with the same vector; without rows if there are none
};

// Which clusters a query needs.
struct QueryClusters {
  const ClusterLogits* clusters;  // [count], in device memory; the head first
  uint32_t count;
  bool only_asked;  // of each lane the head and the cluster of its token (Lane::asked)

  KINGLET_HOST_DEVICE bool Needs(const Lane& lane, uint32_t cluster) const {
    return !only_asked || cluster == 0 || clusters[cluster].tokens.Contains(lane.asked);
  }
};

struct ComputeLogits {
  QueryClusters of;
  uint32_t tiles;    // sum tiles of all clusters
  uint32_t columns;  // of the longest vector of a product
  bool has_cache;
  CacheProducts cache;

  KINGLET_HOST_DEVICE uint32_t ItemsOfLane() const {
    return tiles + (has_cache ? cache.Parts() : 0);
  }
  KINGLET_HOST_DEVICE uint32_t WorkItems(uint32_t lanes, uint32_t) const {
    return lanes * ItemsOfLane();
  }
  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t of_tile =
        internal::BytesOfVector(columns) + SharedMemory::Bytes<float>(kSumTile) + BytesOfSumTile();
    const uint64_t of_cache = has_cache ? cache.SharedBytes() : 0;
    return of_tile < of_cache ? of_cache : of_tile;
  }
};

namespace internal {

// Block-wide: a sum tile's logits, their largest, and their sum.
KINGLET_HOST_DEVICE inline void ComputeTile(const ClusterLogits& cluster, uint32_t columns,
                                            const Work& work, uint32_t lane, uint32_t tile) {
  const Block& block = work.block;
  SharedMemory shared(block);
  const StreamBytes x = TakeVector(shared, columns);
  float* const y = shared.Take<float>(kSumTile);  // projected, then logits
  const IntegerProduct& input = cluster.projects ? cluster.projection : cluster.product;
  const uint32_t cols = input.matrix.cols;
  StageStreams(work, input.x, false, lane, 1, 0, cols, PaddedColumns(cols, cols), x);
  float scale = work.ScaleOf(work.lanes[lane], input.x);

  const uint32_t first = tile * kSumTile, n = cluster.logits.TileSize(tile);
  const uint32_t rows = cluster.product.matrix.rows;
  const uint32_t of_product = first < rows ? Least(n, rows - first) : 0;
  struct Part {
    const IntegerProduct* product;
    uint32_t first, count;  // rows
    float* to;
  };
  const Part parts[] = {
      {&cluster.projection, 0, cluster.projects ? cluster.projection.matrix.rows : 0, y},
      {&cluster.product, first, of_product, y},
      {&cluster.rest, 0, n - of_product, y + of_product}};
  // A loop, so that products are compiled once.
#if KINGLET_CUDA_ON_DEVICE
#pragma unroll 1
#endif
  for (uint32_t i = 0; i < 3; ++i) {
    const Part& part = parts[i];
    if (part.count == 0) continue;
    MultiplyRows(block, *part.product, x, scale, part.first, part.count,
                 [&](uint32_t row, float value) { part.to[row] = value; });
    if (i > 0) continue;
    block.ForEach(PaddedColumns(part.count, part.count) - part.count,
                  [&](uint64_t k) { x.Set(0, part.count + static_cast<uint32_t>(k), 0); });
    scale = RoundToFixedPoint(block, y, part.count, SharedMemory(shared).Take<float>(kLargestParts),
                              [&](uint32_t k, int16_t code) { x.Set(0, k, code); });
  }
  float* const stored = work.At<float>(work.lanes[lane], cluster.logits.x) + first;
  block.ForEach(n, [&](uint64_t i) { stored[i] = y[i]; });
  SumTile(cluster.logits, work, work.lanes[lane], tile, y, shared);
}

}  // namespace internal

KINGLET_HOST_DEVICE inline void Run(const ComputeLogits& p, const Work& work) {
  const LaneItem item(work, p.ItemsOfLane());
  uint32_t tile = item.part;
  for (uint32_t i = 0; i < p.of.count; ++i) {
    const ClusterLogits& cluster = p.of.clusters[i];
    const uint32_t tiles = cluster.logits.TileCount();
    if (tile < tiles) {
      if (!p.of.Needs(work.lanes[item.lane], i)) return;
      return internal::ComputeTile(cluster, p.columns, work, item.lane, tile);
    }
    tile -= tiles;
  }
  const uint32_t part = item.lane * p.cache.Parts() + tile;
  Run(p.cache, Work{work.lanes, work.lane_count, part, work.block});
}

// The normalisers of the clusters, and the cache's weights and total. A work item is a lane.
struct NormaliseClusters : ByLane {
  QueryClusters of;
  uint32_t most_tiles;  // of a cluster
  bool has_cache;
  CacheArguments cache;

  KINGLET_HOST_DEVICE uint64_t SharedBytes() const {
    const uint64_t of_clusters =
        SharedMemory::Bytes<float>(kLargestParts) + SharedMemory::Bytes<float>(most_tiles);
    const uint64_t of_cache = CacheTotal{{}, cache}.SharedBytes();
    return of_clusters < of_cache ? of_cache : of_clusters;
  }
};

KINGLET_HOST_DEVICE inline void Run(const NormaliseClusters& p, const Work& work) {
  const Lane& lane = work.lanes[work.item];
  for (uint32_t i = 0; i < p.of.count; ++i) {
    if (p.of.Needs(lane, i)) NormaliseLogits(p.of.clusters[i].logits, work, lane);
  }
  if (p.has_cache) WeighPairs(p.cache, work, lane);
}

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_CLUSTER_LOGITS_H_
