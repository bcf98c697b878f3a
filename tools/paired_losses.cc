#include "tools/paired_losses.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace kinglet {

void BlockLosses::Add(double loss) {
  if (tokens_ % kTokens == 0) sums_.push_back(0);
  sums_.back() += loss;
  ++tokens_;
}

double BlockLosses::Mean() const {
  return std::accumulate(sums_.begin(), sums_.end(), 0.0) / static_cast<double>(tokens_);
}

double StudentsT(uint64_t freedom) {
  // The expansion around the normal distribution (Fisher and Cornish 1960).
  const double z = 1.959963984540054, v = static_cast<double>(freedom), z2 = z * z;
  const double terms[] = {
      z, z * (z2 + 1) / 4, z * (5 * z2 * z2 + 16 * z2 + 3) / 96,
      z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / 384,
      z * (79 * z2 * z2 * z2 * z2 + 776 * z2 * z2 * z2 + 1482 * z2 * z2 - 1920 * z2 - 945) / 92160};
  double sum = 0, power = 1;
  for (const double term : terms) {
    sum += term * power;
    power /= v;
  }
  return sum;
}

PairedDifference Compare(const BlockLosses& first, const BlockLosses& second) {
  constexpr uint64_t kMostBlocks = 200, kLeastBlocks = 10;
  const size_t small = first.sums().size();
  const size_t group_size = (small + kMostBlocks - 1) / kMostBlocks;
  PairedDifference found;
  found.block_tokens = group_size * BlockLosses::kTokens;
  found.blocks = (small + group_size - 1) / group_size;
  const auto tokens = static_cast<double>(first.tokens());
  std::vector<double> differences(found.blocks), sizes(found.blocks);
  for (size_t i = 0; i < small; ++i) {
    differences[i / group_size] += second.sums()[i] - first.sums()[i];
    sizes[i / group_size] += static_cast<double>(
        std::min(BlockLosses::kTokens, first.tokens() - i * BlockLosses::kTokens));
  }
  found.mean = std::accumulate(differences.begin(), differences.end(), 0.0) / tokens;
  if (found.blocks < kLeastBlocks || !std::isfinite(found.mean)) return found;
  // The variance of a ratio of sums: differences over tokens.
  double squares = 0;
  for (size_t i = 0; i < found.blocks; ++i) {
    const double residual = differences[i] - found.mean * sizes[i];
    squares += residual * residual;
  }
  const auto blocks = static_cast<double>(found.blocks);
  const double error = std::sqrt(blocks / (blocks - 1) * squares) / tokens;
  const double half = StudentsT(found.blocks - 1) * error;
  found.interval = {found.mean - half, found.mean + half};
  return found;
}

void AppendDifference(const PairedDifference& found, JsonLine& line) {
  line.Key("difference").BeginObject().Key("nll").Number(found.mean).Key("interval");
  if (found.interval) {
    line.BeginArray().Number(found.interval->low).Number(found.interval->high).EndArray();
  } else {
    line.Null();
  }
  line.Key("blocks").Integer(found.blocks).Key("block_tokens").Integer(found.block_tokens);
  line.EndObject();
}

}  // namespace kinglet
