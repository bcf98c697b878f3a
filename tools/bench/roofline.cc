#include "tools/bench/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "kernels/read_memory.h"

namespace kinglet {
namespace {

constexpr uint64_t kLine = 64;

}  // namespace

std::vector<std::vector<MemoryRange>> DivideRanges(std::span<const MemoryRange> ranges,
                                                   size_t shares) {
  uint64_t left = 0;
  for (const MemoryRange& range : ranges) left += range.size();
  std::vector<std::vector<MemoryRange>> divided(shares);
  size_t at = 0;
  MemoryRange rest = ranges.empty() ? MemoryRange() : ranges[0];
  for (size_t share = 0; share < shares; ++share) {
    const uint64_t even = left / (shares - share);
    uint64_t wanted = share + 1 == shares ? left : (even + kLine - 1) / kLine * kLine;
    while (wanted > 0 && at < ranges.size()) {
      const uint64_t taken = std::min<uint64_t>(wanted, rest.size());
      if (taken > 0) divided[share].push_back(rest.first(taken));
      rest = rest.subspan(taken);
      wanted -= taken;
      left -= taken;
      if (rest.empty() && ++at < ranges.size()) rest = ranges[at];
    }
  }
  return divided;
}

double FastestRead(std::span<const MemoryRange> ranges, ThreadTeam& team, size_t passes) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::vector<MemoryRange>> shares = DivideRanges(ranges, team.size());
  // Use the sum, or the compiler would remove the reads.
  std::vector<uint64_t> sums(team.size() * kLine / sizeof(uint64_t));
  const auto read = [&](size_t share) {
    uint8_t sum = 0;
    for (const MemoryRange& range : shares[share]) {
      sum = static_cast<uint8_t>(sum ^ ReadMemory(range));
    }
    volatile uint64_t& kept = sums[share * kLine / sizeof(uint64_t)];
    kept = sum;
  };
  double fastest = std::numeric_limits<double>::infinity();
  for (size_t pass = 0; pass < passes; ++pass) {
    const Clock::time_point start = Clock::now();
    team.Run(read);
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return fastest;
}

}  // namespace kinglet
