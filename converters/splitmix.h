// Random integers that are the same on every machine: splitmix64 (Steele, Lea & Flood 2014, "Fast
// splittable pseudorandom number generators").
#ifndef KINGLET_CONVERTERS_SPLITMIX_H_
#define KINGLET_CONVERTERS_SPLITMIX_H_

#include <cstdint>

namespace kinglet {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }
  // Uniform in [0, bound), up to a bias below 2^-32. REQUIRES: 0 < bound <= 2^32.
  uint32_t Below(uint64_t bound) { return static_cast<uint32_t>(((Next() >> 32) * bound) >> 32); }
  // A multiple of 2^-53 in [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // A multiple of 2^-20 in [-1, 1).
  float Signed() {
    return static_cast<float>(static_cast<int32_t>(Next() >> 43) - (1 << 20)) * 0x1p-20f;
  }

 private:
  uint64_t state_;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SPLITMIX_H_
