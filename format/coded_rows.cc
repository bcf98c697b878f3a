#include "format/coded_rows.h"

#include "format/bitpack.h"
#include "format/hashed_codes.h"

namespace kinglet {

CodedRows::CodedRows(const TensorView& view)
    : view_(std::get<CodedView>(view.values)), bits_(view_.scheme.CodeBits()) {
  RequireHeld(view);
  if (view_.scheme.pools.size() > 1) pool_firsts_ = view_.scheme.PoolFirsts();
}

uint32_t CodedRows::Code(uint64_t row, uint32_t position) const {
  const CodingScheme& scheme = view_.scheme;
  if (!view_.seed) return LoadField(view_.codes, bits_, row * scheme.positions + position);
  return HashedCode(*view_.seed, static_cast<uint32_t>(row), position, scheme.PoolSize(position));
}

void CodedRows::Codes(uint64_t row, uint32_t* out) const {
  for (uint32_t j = 0; j < positions(); ++j) out[j] = Code(row, j);
}

void CodedRows::CodebookRows(uint64_t row, uint32_t* out) const {
  for (uint32_t j = 0; j < positions(); ++j) out[j] = CodebookRow(row, j);
}

std::span<const std::byte> CodedRows::Memory(uint64_t begin, uint64_t end) const {
  if (view_.seed) return {};
  const uint64_t positions = view_.scheme.positions;
  return BytesOfFields(view_.codes, bits_, begin * positions, end * positions);
}

}  // namespace kinglet
