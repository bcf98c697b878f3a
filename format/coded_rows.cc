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
  for (uint32_t j = 0; j < scheme.positions; ++j) {
    out[j] = LoadField(view_.codes, bits_, row * scheme.positions + j);
  }
}

void CodedRows::CodebookRows(uint64_t row, uint32_t* out) const {
  Codes(row, out);
  for (size_t j = 0; j < pool_firsts_.size(); ++j) out[j] += static_cast<uint32_t>(pool_firsts_[j]);
}

std::span<const std::byte> CodedRows::Memory(uint64_t begin, uint64_t end) const {
  if (view_.seed) return {};
  const uint64_t positions = view_.scheme.positions;
  return BytesOfFields(view_.codes, bits_, begin * positions, end * positions);
}

}  // namespace kinglet
