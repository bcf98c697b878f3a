#include "format/row_reader.h"

#include <algorithm>
#include <bit>

#include "format/bitpack.h"
#include "format/little_endian.h"

namespace kinglet {
namespace {

// Bytes that hold bits [begin, end) of a stream.
std::span<const std::byte> BytesOfBits(std::span<const std::byte> bytes, uint64_t begin,
                                       uint64_t end) {
  return bytes.subspan(begin / 8, (end + 7) / 8 - begin / 8);
}

// The value if is_kept is 1, +0 if it is 0, without a branch, which nothing could foretell.
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
  const auto* packed = std::get_if<PackedView>(&view.values);
  return packed != nullptr && packed->rule != ScaleRule::kDividePerTensor ? packed->bits : 0;
}

uint64_t RowReader::StoredBefore(uint64_t row) const {
  if (!view_.mask) return row * cols_;
  if (row == rows_) return view_.mask->nonzeros;
  const uint64_t known = row / kMaskRows;
  return starts_[known] + CountSetBits(view_.mask->bytes, known * kMaskRows * cols_, row * cols_);
}

// The row's `stored` entries, which out begins with, go to the places of the mask's set bits.
template <class T>
void RowReader::Spread(uint64_t row, uint64_t stored, T* out) const {
  if (!view_.mask) return;
  // Of the 64 bits from a byte on, 57 are those of any place in that byte and after.
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
  const auto& packed = std::get<PackedView>(view_.values);
  const uint64_t first = StoredBefore(row), stored = StoredBefore(row + count) - first;
  UnpackSigned(packed.codes, packed.bits, std::span(out, stored), first);
  return stored;
}

void RowReader::Codes(uint64_t row, int16_t* out) const {
  Spread(row, StoredCodes(row, 1, out), out);
}

float RowReader::Scale(uint64_t row) const {
  const auto& packed = std::get<PackedView>(view_.values);
  const ScalesView& scales = packed.scales;
  const auto bits = static_cast<uint64_t>(scales.bits);
  const uint64_t at = (scales.count == 1 ? 0 : row) * bits;
  const uint64_t word = LoadWord(scales.bytes, at / 8) >> (at % 8);
  const auto field = static_cast<uint32_t>(word & ((uint64_t{1} << bits) - 1));
  return std::bit_cast<float>(field << scales.shift);
}

void RowReader::Reals(uint64_t row, float* out) const {
  const uint64_t first = StoredBefore(row), count = StoredBefore(row + 1) - first;
  if (const auto* packed = std::get_if<PackedView>(&view_.values)) {
    // A few at a time, so that rows may be of any length.
    int16_t codes[256];
    const float scale = Scale(row);
    for (uint64_t done = 0; done < count; done += std::size(codes)) {
      const uint64_t n = std::min<uint64_t>(std::size(codes), count - done);
      UnpackSigned(packed->codes, packed->bits, std::span(codes, n), first + done);
      for (uint64_t i = 0; i < n; ++i) {
        const auto code = static_cast<float>(codes[i]);
        out[done + i] = packed->rule == ScaleRule::kDividePerTensor ? code / scale : code * scale;
      }
    }
  } else if (const auto* dense = std::get_if<DenseView>(&view_.values)) {
    const bool wide = dense->type == FloatType::kF32;
    const std::byte* from = dense->bytes.data() + first * (wide ? 4 : 2);
    for (uint64_t i = 0; i < count; ++i) {
      out[i] =
          wide ? LoadLittle<float>(from + 4 * i) : HalfToFloat(LoadLittle<uint16_t>(from + 2 * i));
    }
  }
  Spread(row, count, out);
}

std::vector<std::span<const std::byte>> RowReader::Memory(uint64_t begin, uint64_t end) const {
  std::vector<std::span<const std::byte>> memory;
  const uint64_t first = StoredBefore(begin), last = StoredBefore(end);
  if (const auto* packed = std::get_if<PackedView>(&view_.values)) {
    const auto bits = static_cast<uint64_t>(packed->bits);
    memory.push_back(BytesOfBits(packed->codes, first * bits, last * bits));
    const auto scale_bits = static_cast<uint64_t>(packed->scales.bits);
    const bool one = packed->scales.count == 1;
    memory.push_back(BytesOfBits(packed->scales.bytes, (one ? 0 : begin) * scale_bits,
                                 (one ? 1 : end) * scale_bits));
  } else if (const auto* dense = std::get_if<DenseView>(&view_.values)) {
    const uint64_t size = dense->type == FloatType::kF32 ? 4 : 2;
    memory.push_back(dense->bytes.subspan(first * size, (last - first) * size));
  }
  if (view_.mask) {
    const uint64_t known = begin / kMaskRows * kMaskRows;
    memory.push_back(BytesOfBits(view_.mask->bytes, known * cols_, end * cols_));
  }
  return memory;
}

}  // namespace kinglet
