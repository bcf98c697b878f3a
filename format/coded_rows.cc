#include "format/coded_rows.h"

#include "format/bitpack.h"
#include "format/hashed_codes.h"

namespace kinglet {

CodedRows::CodedRows(const TensorView& view)
    : view_(std::get<CodedView>(view.values)), bits_(view_.scheme.CodeBits()) {
  RequireHeld(view);
  if (view_.scheme.pools.size() > 1) pool_firsts_ = view_.scheme.PoolFirsts();
}

void CodedRows::Codes(uint64_t row, uint32_t* out) const {
  const CodingScheme& scheme = view_.scheme;
  if (view_.seed) {
    for (uint32_t j = 0; j < scheme.positions; ++j) {
      out[j] = HashedCode(*view_.seed, static_cast<uint32_t>(row), j, scheme.PoolSize(j));
    }
    return;
  }
  const uint64_t mask = (uint64_t{1} << bits_) - 1;
  uint64_t bit = row * scheme.positions * static_cast<uint64_t>(bits_);
  for (uint32_t j = 0; j < scheme.positions; ++j, bit += static_cast<uint64_t>(bits_)) {
    out[j] = static_cast<uint32_t>((LoadWord(view_.codes, bit / 8) >> (bit % 8)) & mask);
  }
}

void CodedRows::CodebookRows(uint64_t row, uint32_t* out) const {
  Codes(row, out);
  for (size_t j = 0; j < pool_firsts_.size(); ++j) out[j] += static_cast<uint32_t>(pool_firsts_[j]);
}

std::span<const std::byte> CodedRows::Memory(uint64_t begin, uint64_t end) const {
  if (view_.seed) return {};
  const uint64_t row_bits = uint64_t{view_.scheme.positions} * static_cast<uint64_t>(bits_);
  const uint64_t first = begin * row_bits / 8;
  return view_.codes.subspan(first, (end * row_bits + 7) / 8 - first);
}

}  // namespace kinglet
