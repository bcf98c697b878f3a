// A token's interval of the integers below 2^32 (runtime/queries/intervals.h).
#ifndef KINGLET_RUNTIME_QUERIES_INTERVAL_H_
#define KINGLET_RUNTIME_QUERIES_INTERVAL_H_

#include <cstdint>

namespace kinglet {

// [low, high), never empty.
struct Interval {
  uint64_t low, high;
  bool operator==(const Interval&) const = default;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_INTERVAL_H_
