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
                                                   size_t readers) {
  uint64_t remaining = 0;
  for (const MemoryRange& range : ranges) remaining += range.size();
  std::vector<std::vector<MemoryRange>> divided(readers);
  size_t at = 0;
  MemoryRange rest = ranges.empty() ? MemoryRange() : ranges[0];
  for (size_t reader = 0; reader < readers; ++reader) {
    const uint64_t even_bytes = remaining / (readers - reader);
    uint64_t wanted_bytes =
        reader + 1 == readers ? remaining : (even_bytes + kLine - 1) / kLine * kLine;
    while (wanted_bytes > 0 && at < ranges.size()) {
      const uint64_t taken_bytes = std::min<uint64_t>(wanted_bytes, rest.size());
      if (taken_bytes > 0) divided[reader].push_back(rest.first(taken_bytes));
      rest = rest.subspan(taken_bytes);
      wanted_bytes -= taken_bytes;
      remaining -= taken_bytes;
      if (rest.empty() && ++at < ranges.size()) rest = ranges[at];
    }
  }
  return divided;
}

double FastestRead(std::span<const MemoryRange> ranges, ThreadTeam& team, size_t repeats) {
  using Clock = std::chrono::steady_clock;
  const std::vector<std::vector<MemoryRange>> readers = DivideRanges(ranges, team.size());
  // The sum is used, or the compiler would remove the reads.
  std::vector<uint64_t> sums(team.size() * kLine / sizeof(uint64_t));
  const auto read = [&](size_t reader) {
    uint8_t sum = 0;
    for (const MemoryRange& range : readers[reader]) {
      sum = static_cast<uint8_t>(sum ^ ReadMemory(range));
    }
    volatile uint64_t& sink = sums[reader * kLine / sizeof(uint64_t)];
    sink = sum;
  };
  double fastest = std::numeric_limits<double>::infinity();
  for (size_t repeat = 0; repeat < repeats; ++repeat) {
    const Clock::time_point start = Clock::now();
    team.Run(read);
    fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return fastest;
}

}  // namespace kinglet
