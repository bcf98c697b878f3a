// Mixes predictions of one bit: odds are added with weights that adapt to the errors. Several sets
// of weights, each chosen by a context of its own, give an answer each; a last set mixes these.
#ifndef KINGLET_RUNTIME_COMPRESS_MIXER_H_
#define KINGLET_RUNTIME_COMPRESS_MIXER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/compress/logistic.h"

namespace kinglet::compress {

// Weights are counted in 2^-20ths.
inline constexpr int kOneWeight = 1 << 20;

class WeightSet {
 public:
  // A row of weights for each context; context c begins with first[c % first.size()].
  WeightSet(std::span<const std::vector<int32_t>> first, size_t contexts)
      : inputs_(first[0].size()) {
    weights_.reserve(inputs_ * contexts);
    for (size_t i = 0; i < contexts; ++i) {
      const std::vector<int32_t>& row = first[i % first.size()];
      weights_.insert(weights_.end(), row.begin(), row.end());
    }
  }

  // The odds that the inputs give together in a context.
  int Mix(std::span<const int32_t> inputs, size_t context) {
    chosen_ = weights_.data() + context * inputs_;
    int64_t sum = 0;
    for (size_t i = 0; i < inputs_; ++i) sum += int64_t{inputs[i]} * chosen_[i];
    odds_ = static_cast<int>(std::clamp<int64_t>(sum / kOneWeight, -kMostOdds, kMostOdds));
    return odds_;
  }
  // Moves the weights so that the same inputs would have predicted the bit better. `rate` is
  // counted in 2^-16ths of a weight's unit for an input and an error of 1.
  void Update(std::span<const int32_t> inputs, bool bit, int rate) {
    const int64_t error = int64_t{(bit ? kOne : 0) - Squash(odds_)} * rate;
    for (size_t i = 0; i < inputs_; ++i) {
      const int64_t moved = chosen_[i] + ((inputs[i] * error + (1 << 15)) >> 16);
      chosen_[i] = static_cast<int32_t>(std::clamp<int64_t>(moved, -kMostWeight, kMostWeight));
    }
  }

 private:
  static constexpr int64_t kMostWeight = 16 * kOneWeight;
  size_t inputs_;
  std::vector<int32_t> weights_;
  int32_t* chosen_ = nullptr;
  int odds_ = 0;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_MIXER_H_
