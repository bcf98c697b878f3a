// Reads single rows of a tensor where they lie in a model file, without decoding the rest.
#ifndef KINGLET_FORMAT_ROW_READER_H_
#define KINGLET_FORMAT_ROW_READER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Rows of a tensor that is not coded, in any other encoding. Reading takes time in proportion to
// the row; of a masked tensor, to a few rows. The view's bytes outlive it. Any thread.
class RowReader {
 public:
  // How many rows of a mask share the count of what is stored before them.
  static constexpr uint64_t kMaskRows = 16;

  explicit RowReader(const TensorView& view);

  uint64_t rows() const { return rows_; }
  uint64_t cols() const { return cols_; }
  // Of an integer that products may use as it is (quantised with multiplying scales); 0: reals.
  static int IntegerBits(const TensorView& view);
  int integer_bits() const { return IntegerBits(view_); }
  // The exact float32 values of a row, as DecodedValues gives them, to out[cols()].
  void Reals(uint64_t row, float* out) const;
  // The integers of a row, zeros filled in, to out[cols()], and what to multiply them with.
  // REQUIRES: the tensor is quantised.
  void Codes(uint64_t row, int16_t* out) const;
  float Scale(uint64_t row) const;
  // Of `count` rows from `row` on without the zeros of a mask; returns how many are left. Fastest
  // from a multiple of kMaskRows on.
  uint64_t StoredCodes(uint64_t row, uint64_t count, int16_t* out) const;
  // Null: nothing is left out. Bit row * cols() + column says whether that entry is stored.
  const MaskView* mask() const { return view_.mask ? &*view_.mask : nullptr; }
  // Stored bytes that are read for rows [begin, end): of a mask, those of the rows before, back to
  // a multiple of kMaskRows, too.
  std::vector<std::span<const std::byte>> Memory(uint64_t begin, uint64_t end) const;

 private:
  // Entries stored before the row's own.
  uint64_t StoredBefore(uint64_t row) const;
  template <class T>
  void Spread(uint64_t row, uint64_t stored, T* out) const;

  TensorView view_;
  uint64_t rows_, cols_;
  std::vector<uint64_t> starts_;  // of a mask: entries stored before every kMaskRows-th row
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_ROW_READER_H_
