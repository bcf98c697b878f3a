#include "kernels/cuda/demand.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/operations.h"
#include "kernels/ring.h"

namespace kinglet::cuda {
namespace {

uint64_t RealBytes(uint64_t count) { return count * sizeof(float); }

uint64_t BytesOf(const ByteMatrix& matrix) {
  return matrix.low_bytes() + matrix.high_bytes() + RealBytes(matrix.rows);
}

uint64_t BytesOf(const Finish& finish, uint64_t rows) {
  return finish.bias == nullptr ? 0 : RealBytes(rows);
}

class NodeDemand {
 public:
  explicit NodeDemand(std::span<const StreamFrame> lanes) : lanes_(lanes) {}

  // Nodes that read no weights and use no tensor cores.
  DeviceDemand operator()(const QuantiseVector&) const { return {}; }
  DeviceDemand operator()(const AddVector&) const { return {}; }
  DeviceDemand operator()(const ScaleToUnitMeanSquare&) const { return {}; }
  DeviceDemand operator()(const ActivateVector&) const { return {}; }
  DeviceDemand operator()(const AddOne&) const { return {}; }
  DeviceDemand operator()(const JoinVectors&) const { return {}; }
  DeviceDemand operator()(const FixedPoint&) const { return {}; }
  DeviceDemand operator()(const SumsOfTiles&) const { return {}; }
  DeviceDemand operator()(const LogOfSum&) const { return {}; }
  DeviceDemand operator()(const WeighValues&) const { return {}; }
  DeviceDemand operator()(const AppendToCache&) const { return {}; }
  DeviceDemand operator()(const StoreOwnRow&) const { return {}; }
  DeviceDemand operator()(const MoveState&) const { return {}; }
  DeviceDemand operator()(const CacheProducts&) const { return {}; }
  DeviceDemand operator()(const CacheTotal&) const { return {}; }
  DeviceDemand operator()(const CopyRow&) const { return {}; }
  DeviceDemand operator()(const ClearForFirstToken&) const { return {}; }
  DeviceDemand operator()(const Cell&) const { return {}; }
  DeviceDemand operator()(const AppendToBag&) const { return {}; }
  DeviceDemand operator()(const FeaturesOfBag&) const { return {}; }
  // A DeFINE unit's weights do not count (demand.h).
  DeviceDemand operator()(const ComputeDefineRow&) const { return {}; }
  // Nodes of queries, which are not a plan's.
  template <bool kHalves>
  DeviceDemand operator()(const SumsOfProducts<kHalves>&) const {
    return {};
  }
  DeviceDemand operator()(const RankTokens&) const { return {}; }
  DeviceDemand operator()(const TokenLogProbability&) const { return {}; }
  DeviceDemand operator()(const ComputeLogits&) const { return {}; }
  DeviceDemand operator()(const NormaliseClusters&) const { return {}; }
  // Several plan nodes' work, which they count.
  DeviceDemand operator()(const BetweenAttentions&) const { return {}; }
  DeviceDemand operator()(const AttendTokens&) const { return {}; }
  template <class Shape>
  DeviceDemand operator()(const DecoderStack<Shape>&) const {
    return {};
  }

  DeviceDemand operator()(const NormaliseVector& p) const {
    return {(p.gain == nullptr ? 0 : RealBytes(p.count)) +
            (p.bias == nullptr ? 0 : RealBytes(p.count))};
  }
  DeviceDemand operator()(const IntegerProduct& p) const {
    const auto count = static_cast<uint32_t>(lanes_.size());
    constexpr uint32_t lanes_of_item = IntegerProduct::kStreams;
    uint64_t streams = 0;
    for (uint32_t first = 0; first < count; first += lanes_of_item) {
      if (AnyIn(p.tokens, lanes_.subspan(first, std::min(lanes_of_item, count - first)))) {
        streams += lanes_of_item;
      }
    }
    if (streams == 0) return {};
    const uint64_t read = BytesOf(p.matrix) + BytesOf(p.finish, p.matrix.rows);
    if (p.matrix.narrow()) return {read};
    const uint64_t planes = (p.matrix.form == ByteForm::kByte ? 1 : 2) * (p.x_is_byte ? 1 : 2);
    return {read, p.matrix.tiles() * kTileBytes * planes * streams};
  }
  DeviceDemand operator()(const RealProduct& p) const {
    if (!AnyIn(p.tokens, lanes_)) return {};
    return {RealBytes(uint64_t{p.rows} * p.cols) + BytesOf(p.finish, p.rows)};
  }
  DeviceDemand operator()(const PartProducts& p) const {
    const StoredRows& rows = p.codebook;
    if (rows.floats == nullptr) return {BytesOf(rows.integers)};
    return {RealBytes(uint64_t{p.pool == 0 ? p.count : p.pool} * rows.cols)};
  }
  DeviceDemand operator()(const SumOfParts& p) const {
    return {p.codes.positions * p.codes.plane_size() * sizeof(uint32_t) +
            BytesOf(p.finish, p.codes.rows)};
  }
  DeviceDemand operator()(const SumOfDots& p) const {
    const uint64_t rows = uint64_t{p.codes.rows} * p.codes.positions;
    return {p.codes.positions * p.codes.plane_size() * sizeof(uint32_t) +
            RealBytes(rows * p.codebook.cols) + BytesOf(p.finish, p.codes.rows)};
  }
  DeviceDemand operator()(const ScoreSlots& p) const { return OfPositions(p.attention); }
  // The lanes may all be at one position, and then read the same row.
  DeviceDemand operator()(const AddRowOfPosition& p) const { return {RealBytes(p.count)}; }
  DeviceDemand operator()(const AddToHeads& p) const {
    return {RealBytes(uint64_t{p.heads} * p.size)};
  }
  DeviceDemand operator()(const GatherRow& p) const { return {p.least_row_bytes * lanes_.size()}; }
  DeviceDemand operator()(const ScaleAndRelu& p) const { return {2 * RealBytes(p.count)}; }

 private:
  static bool AnyIn(const TokenRange& tokens, std::span<const StreamFrame> lanes) {
    return std::any_of(lanes.begin(), lanes.end(),
                       [&](const StreamFrame& lane) { return tokens.Contains(lane.word()); });
  }
  // The rows of all distances, up to the largest distance of the lane with the most visible slots.
  DeviceDemand OfPositions(const Attention& p) const {
    if (p.positions.rows == nullptr) return {};
    uint64_t slots = 0;
    for (const StreamFrame& lane : lanes_) {
      const RingWindow window(lane.position, p.window, p.restarts);
      slots = std::max<uint64_t>(slots, p.masked ? window.filled : window.size);
    }
    const uint64_t rows = std::min<uint64_t>(slots, p.positions.count);
    const uint64_t row = uint64_t{p.positions.of_heads ? p.heads : 1} * p.key_size;
    return {RealBytes(rows * (row + (p.positions.constants == nullptr ? 0 : p.heads)))};
  }

  std::span<const StreamFrame> lanes_;
};

}  // namespace

DeviceDemand DemandOf(const Node& node, std::span<const StreamFrame> lanes) {
  DeviceDemand demand;
  internal::WithArguments(Operations(), node,
                          [&](const auto& p) { demand = NodeDemand(lanes)(p); });
  return demand;
}

}  // namespace kinglet::cuda
