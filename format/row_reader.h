// Reads single rows of a tensor directly from a model file, without decoding the rest.
#ifndef KINGLET_FORMAT_ROW_READER_H_
#define KINGLET_FORMAT_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Rows of a tensor in any encoding but coded. Reading a row takes time in proportion to its length;
// with a mask, to the length of up to kMaskRows rows. Any thread. REQUIRES: the view's bytes
// outlive it.
class RowReader {
 public:
  // The number of entries stored before every kMaskRows-th row of a mask is kept.
  static constexpr uint64_t kMaskRows = 16;

  explicit RowReader(const TensorView& view);

  uint64_t rows() const { return rows_; }
  uint64_t cols() const { return cols_; }
  // Bits of the integers that products may use directly: the codes of a quantised tensor with
  // multiplying scales. 0: products need the floats.
  static int IntegerBits(const TensorView& view);
  int integer_bits() const { return IntegerBits(view_); }
  // The exact float32 values of a row, as DecodedValues gives them, to out[cols()].
  void Floats(uint64_t row, float* out) const;
  // The integers of a row, zeros filled in, to out[cols()], and the scale to multiply them with.
  // REQUIRES: the tensor is quantised.
  void Codes(uint64_t row, int16_t* out) const;
  float Scale(uint64_t row) const;
  // The stored integers of `count` rows from `row` on, without the zeros that a mask omits; returns
  // their number. Fastest where `row` is a multiple of kMaskRows.
  uint64_t StoredCodes(uint64_t row, uint64_t count, int16_t* out) const;
  // Bit row * cols() + column is set if that entry is stored. nullptr: all entries are stored.
  const MaskView* mask() const { return view_.mask ? &*view_.mask : nullptr; }
  // The stored bytes that reading rows [begin, end) touches; of a mask also those of the rows
  // before, back to a multiple of kMaskRows.
  std::vector<std::span<const std::byte>> Memory(uint64_t begin, uint64_t end) const;

 private:
  // Entries stored before the row's own.
  uint64_t StoredBefore(uint64_t row) const;
  template <class T>
  void Spread(uint64_t row, uint64_t stored, T* out) const;

  TensorView view_;
  uint64_t rows_, cols_;
  std::vector<uint64_t> starts_;  // with a mask: entries stored before every kMaskRows-th row
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_ROW_READER_H_
