// Plans of MicroNet's published shapes without any weights: counting needs only the shapes of
// tensors and how many of their entries are not zero.
#ifndef KINGLET_TESTS_RUNTIME_SYNTHETIC_PLAN_H_
#define KINGLET_TESTS_RUNTIME_SYNTHETIC_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/blocks.h"
#include "format/encoding.h"
#include "kernels/plan.h"

namespace kinglet {

// The published 8.3 M network unless said otherwise.
struct SyntheticConfig {
  uint32_t vocabulary_size = 267735;
  std::vector<uint32_t> cutoffs = {3500, 25000};
  std::vector<uint32_t> widths = {256, 64, 4};  // of the bins' rows; the first is the model's
  uint32_t layers = 8, heads = 8, key_size = 24, value_size = 24, inner = 768, window = 97;
  uint32_t cache = 0;
  int bits = 0;  // 0: float32; otherwise weights and activations are quantised
};

class SyntheticPlan {
 public:
  explicit SyntheticPlan(const SyntheticConfig& config);
  SyntheticPlan(const SyntheticPlan&) = delete;
  SyntheticPlan& operator=(const SyntheticPlan&) = delete;

  const Plan& plan() const { return plan_; }
  // By tensor; dense until changed. Names are those of the training code.
  std::vector<uint64_t> nonzeros;
  TensorId Find(std::string_view name) const;

 private:
  TensorId AddTensor(const std::string& name, const Shape& shape, bool quantised);
  TensorId AddMatrix(const std::string& name, uint64_t rows, uint64_t cols);
  TensorId AddBias(const std::string& name, uint64_t size);
  MicronetLayer MakeLayer(const std::string& name);
  void AddBins(AdaptiveEmbedding& embedding, AdaptiveSoftmax& softmax);

  SyntheticConfig config_;
  std::vector<TensorView> tensors_;
  Plan plan_;
};

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_SYNTHETIC_PLAN_H_
