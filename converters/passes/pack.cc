#include "converters/passes/pack.h"

#include <variant>

#include "format/bitpack.h"

namespace kinglet {

EntryBytes BytesOfEntries(const EncodedTensor& tensor) {
  constexpr int kFloatBits = 32, kHalfBits = 16;
  const auto* quantised = std::get_if<Quantised>(&tensor.values);
  const bool half = std::holds_alternative<DenseF16>(tensor.values);
  const int bits = quantised != nullptr ? quantised->bits : (half ? kHalfBits : kFloatBits);
  const uint64_t count = Count(tensor.shape);
  return {PackedBytes(count, bits),
          PackedBytes(count, 1) + PackedBytes(CountNonzeros(tensor), bits)};
}

void PackTensors(ModelDraft& draft) {
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.coded()) continue;
    const EntryBytes bytes = BytesOfEntries(tensor);
    tensor.pruned = bytes.pruned < bytes.dense;
  }
}

}  // namespace kinglet
