#include "kernels/ref/weights.h"

#include <span>
#include <utility>

namespace kinglet::ref {

std::vector<MemoryRange> Weights::Memory(bool integers, uint64_t begin, uint64_t end) const {
  const uint64_t n = end - begin;
  if (!integers) return {std::as_bytes(std::span(values).subspan(begin * cols, n * cols))};
  return {std::as_bytes(std::span(codes).subspan(begin * cols, n * cols)),
          std::as_bytes(std::span(scales).subspan(begin, n))};
}

SharedWeights WeightStore::Get(WeightId id) {
  SharedWeights& slot = decoded_[id];
  if (slot) return slot;
  const TensorView& view = plan_.weights[id];
  Claim(Count(view.shape) * (sizeof(float) + (view.quantised() ? sizeof(int16_t) : 0)) +
        (view.quantised() ? Rows(view.shape) * sizeof(float) : 0));
  auto weights = std::make_shared<Weights>();
  weights->rows = Rows(view.shape);
  weights->cols = Cols(view.shape);
  weights->values = DecodedValues(view);
  if (view.quantised()) {
    DecodedCodes decoded = DecodeCodes(view);
    if (decoded.rule != ScaleRule::kDividePerTensor) {
      weights->integer = true;
      weights->codes = std::move(decoded.codes);
      weights->scales = std::move(decoded.scales);
      // A tensor with one scale: repeat it for every row.
      if (weights->scales.size() == 1) weights->scales.resize(weights->rows, weights->scales[0]);
    }
  }
  slot = std::move(weights);
  return slot;
}

}  // namespace kinglet::ref
