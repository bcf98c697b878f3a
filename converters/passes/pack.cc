#include "converters/passes/pack.h"

#include <algorithm>
#include <variant>
#include <vector>

#include "format/bitpack.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

int BitsOfEntries(const EncodedTensor& tensor) {
  return std::visit(
      Overloaded{[](const DenseF32&) { return 32; }, [](const DenseF16&) { return 16; },
                 [](const Quantised& quantised) { return quantised.bits; },
                 [](const Coded&) { return 0; }},
      tensor.values);
}

uint64_t CountNonzeros(const RowCodes& rows, const Shape& shape) {
  std::vector<int16_t> codes(Cols(shape));
  uint64_t zeros = 0;
  for (uint64_t row = 0; row < Rows(shape); ++row) {
    rows.make(row, codes);
    zeros += static_cast<uint64_t>(std::count(codes.begin(), codes.end(), 0));
  }
  return Count(shape) - zeros;
}

EntryBytes BytesOf(uint64_t count, uint64_t nonzeros, int bits) {
  return {PackedBytes(count, bits), PackedBytes(count, 1) + PackedBytes(nonzeros, bits)};
}

}  // namespace

EntryBytes BytesOfEntries(const EncodedTensor& tensor) {
  return BytesOf(Count(tensor.shape), CountNonzeros(tensor), BitsOfEntries(tensor));
}

uint64_t ChooseMask(EncodedTensor& tensor, const std::optional<RowCodes>& rows) {
  if (tensor.coded()) return 0;
  const uint64_t nonzeros =
      rows ? CountNonzeros(*rows, tensor.shape) : kinglet::CountNonzeros(tensor);
  const EntryBytes bytes =
      BytesOf(Count(tensor.shape), nonzeros, rows ? rows->bits : BitsOfEntries(tensor));
  tensor.pruned = bytes.pruned < bytes.dense;
  return nonzeros;
}

}  // namespace kinglet
