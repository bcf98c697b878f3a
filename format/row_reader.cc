#include "format/row_reader.h"

#include <algorithm>
#include <bit>

#include "format/bitpack.h"
#include "format/little_endian.h"
#include "format/overloaded.h"

namespace kinglet {
namespace {

// The value if is_kept is 1, +0 if is_kept is 0. Without a branch: masks are irregular, so a
// processor would often mispredict it.
int16_t ValueOrZero(int16_t value, uint64_t is_kept) {
  return static_cast<int16_t>(value & -static_cast<int>(is_kept));
}
float ValueOrZero(float value, uint64_t is_kept) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & -static_cast<uint32_t>(is_kept));
}

}  // namespace

RowReader::RowReader(const TensorView& view)
    : view_(view), rows_(Rows(view.shape)), cols_(Cols(view.shape)) {
  RequireHeld(view);
  if (!view_.mask) return;
  uint64_t stored = 0;
  for (uint64_t row = 0; row < rows_; row += kMaskRows) {
    starts_.push_back(stored);
    const uint64_t end = std::min(rows_, row + kMaskRows);
    stored += CountSetBits(view_.mask->bytes, row * cols_, end * cols_);
  }
}

int RowReader::IntegerBits(const TensorView& view) {
  const PackedView* packed = view.packed();
  return packed != nullptr && packed->rule != ScaleRule::kDividePerTensor ? packed->bits : 0;
}

uint64_t RowReader::StoredBefore(uint64_t row) const {
  if (!view_.mask) return row * cols_;
  if (row == rows_) return view_.mask->nonzeros;
  const uint64_t group = row / kMaskRows;
  return starts_[group] + CountSetBits(view_.mask->bytes, group * kMaskRows * cols_, row * cols_);
}

// Moves the row's `stored` entries from the front of `out` to the positions of the mask's set bits,
// from the last to the first, and writes zeros between them.
template <class T>
void RowReader::Spread(uint64_t row, uint64_t stored, T* out) const {
  if (!view_.mask) return;
  // A 64-bit value starts at a byte, so after up to 7 skipped bits it has 57 bits of the mask.
  constexpr uint64_t kAtOnce = 56;
  for (uint64_t end = cols_; end > 0;) {
    const uint64_t begin = (end - 1) / kAtOnce * kAtOnce;
    const uint64_t bit = row * cols_ + begin;
    const uint64_t kept = LoadWord(view_.mask->bytes, bit / 8) >> (bit % 8);
    for (uint64_t i = end; i-- > begin;) {
      const uint64_t is_kept = kept >> (i - begin) & 1;
      stored -= is_kept;
      out[i] = ValueOrZero(out[stored], is_kept);
    }
    end = begin;
  }
}

uint64_t RowReader::StoredCodes(uint64_t row, uint64_t count, int16_t* out) const {
  const PackedView& packed = *view_.packed();
  const uint64_t first = StoredBefore(row), stored = StoredBefore(row + count) - first;
  UnpackSigned(packed.codes, packed.bits, std::span(out, stored), first);
  return stored;
}

void RowReader::Codes(uint64_t row, int16_t* out) const {
  Spread(row, StoredCodes(row, 1, out), out);
}

float RowReader::Scale(uint64_t row) const {
  const ScalesView& scales = view_.packed()->scales;
  const uint32_t field = LoadField(scales.bytes, scales.bits, scales.count == 1 ? 0 : row);
  return std::bit_cast<float>(field << scales.shift);
}

void RowReader::Floats(uint64_t row, float* out) const {
  const uint64_t first = StoredBefore(row), count = StoredBefore(row + 1) - first;
  std::visit(Overloaded{
                 [&](const PackedView& packed) {
                   // A few codes at a time, so that rows may be of any length.
                   int16_t codes[256];
                   const float scale = Scale(row);
                   const bool divide = packed.rule == ScaleRule::kDividePerTensor;
                   for (uint64_t done = 0; done < count; done += std::size(codes)) {
                     const uint64_t n = std::min<uint64_t>(std::size(codes), count - done);
                     UnpackSigned(packed.codes, packed.bits, std::span(codes, n), first + done);
                     for (uint64_t i = 0; i < n; ++i) {
                       const auto code = static_cast<float>(codes[i]);
                       out[done + i] = divide ? code / scale : code * scale;
                     }
                   }
                 },
                 [&](const DenseView& dense) {
                   const bool wide = dense.type == FloatType::kF32;
                   const std::byte* from = dense.bytes.data() + first * (wide ? 4 : 2);
                   for (uint64_t i = 0; i < count; ++i) {
                     out[i] = wide ? LoadLittle<float>(from + 4 * i)
                                   : HalfToFloat(LoadLittle<uint16_t>(from + 2 * i));
                   }
                 },
                 [](const CodedView&) {},  // the constructor requires another encoding
             },
             view_.values);
  Spread(row, count, out);
}

std::vector<std::span<const std::byte>> RowReader::Memory(uint64_t begin, uint64_t end) const {
  std::vector<std::span<const std::byte>> memory;
  const uint64_t first = StoredBefore(begin), last = StoredBefore(end);
  std::visit(Overloaded{
                 [&](const PackedView& packed) {
                   memory.push_back(BytesOfFields(packed.codes, packed.bits, first, last));
                   const ScalesView& scales = packed.scales;
                   const bool one = scales.count == 1;
                   memory.push_back(
                       BytesOfFields(scales.bytes, scales.bits, one ? 0 : begin, one ? 1 : end));
                 },
                 [&](const DenseView& dense) {
                   const int bits = dense.type == FloatType::kF32 ? 32 : 16;
                   memory.push_back(BytesOfFields(dense.bytes, bits, first, last));
                 },
                 [](const CodedView&) {},
             },
             view_.values);
  if (view_.mask) {
    const uint64_t first_row = begin / kMaskRows * kMaskRows;
    memory.push_back(BytesOfFields(view_.mask->bytes, 1, first_row * cols_, end * cols_));
  }
  return memory;
}

}  // namespace kinglet
