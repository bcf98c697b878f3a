// Tensors of random values for the models of tests.
#ifndef KINGLET_TESTS_SUPPORT_TENSOR_MAKER_H_
#define KINGLET_TESTS_SUPPORT_TENSOR_MAKER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/model_builder.h"

namespace kinglet {

// Appends tensors to a draft, which outlives it. For builders to inherit from.
class TensorMaker {
 public:
  TensorMaker(ModelDraft& draft, uint64_t seed) : draft_(draft), random_(seed) {}

  TensorId Add(EncodedTensor tensor) {
    draft_.tensors.push_back(std::move(tensor));
    return static_cast<TensorId>(draft_.tensors.size() - 1);
  }
  // Floats from centre - spread to centre + spread.
  TensorId Floats(const std::string& name, Shape shape, float centre, float spread) {
    DenseF32 dense;
    dense.values.resize(Count(shape));
    for (float& value : dense.values) value = centre + spread * random_.Signed();
    return Add({name, std::move(shape), std::move(dense), false});
  }
  // Codes of `bits` bits, with a scale for each row: scale_of(the largest code).
  template <class ScaleOf>
  TensorId Codes(const std::string& name, Shape shape, int bits, ScaleOf scale_of) {
    Quantised quantised;
    quantised.bits = bits;
    const int largest = (1 << (bits - 1)) - 1;
    for (uint64_t i = 0; i < Count(shape); ++i) {
      const auto code = static_cast<int>(random_.Below(2 * static_cast<uint64_t>(largest) + 1));
      quantised.codes.push_back(static_cast<int16_t>(code - largest));
    }
    for (uint64_t row = 0; row < shape[0]; ++row) {
      quantised.scales.push_back(scale_of(static_cast<float>(largest)));
    }
    return Add({name, std::move(shape), std::move(quantised), false});
  }
  // Values from -limit to limit: floats, or with `bits` codes whose rows have scales around
  // limit / largest.
  TensorId Matrix(const std::string& name, uint64_t rows, uint64_t columns, int bits, float limit) {
    if (bits == 0) return Floats(name, {rows, columns}, 0, limit);
    return Codes(name, {rows, columns}, bits,
                 [&](float largest) { return limit * (1 + 0.5f * random_.Signed()) / largest; });
  }

 protected:
  ModelDraft& draft_;
  TestRandom random_;
};

// "the", "<eos>", "<unk>", "w3", "w4", ...
inline std::vector<std::string> TinyVocabulary(uint32_t words) {
  std::vector<std::string> vocabulary = {"the", "<eos>", "<unk>"};
  for (uint32_t id = 3; id < words; ++id) vocabulary.push_back("w" + std::to_string(id));
  return vocabulary;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_TENSOR_MAKER_H_
