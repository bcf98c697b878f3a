// Reads a coded table's codes, stored or computed, where they lie.
#ifndef KINGLET_FORMAT_CODED_ROWS_H_
#define KINGLET_FORMAT_CODED_ROWS_H_

#include <cstdint>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Cheap to copy; the view's bytes outlive it. Any thread.
class CodedRows {
 public:
  // REQUIRES: the view is coded and its scheme valid.
  explicit CodedRows(const TensorView& view);

  uint32_t positions() const { return view_.scheme.positions; }
  // Each position's code of `row`, an index within its pool, to out[positions()]. Stored codes are
  // below 2^bits, and below their pool's size once the file is verified.
  void Codes(uint64_t row, uint32_t* out) const;
  // The same as rows of the codebook.
  void CodebookRows(uint64_t row, uint32_t* out) const;
  // Stored bytes that hold the codes of rows [begin, end), or of one; none where they are computed.
  std::span<const std::byte> Memory(uint64_t begin, uint64_t end) const;
  std::span<const std::byte> Memory(uint64_t row) const { return Memory(row, row + 1); }

 private:
  CodedView view_;
  int bits_;
  std::vector<uint64_t> pool_firsts_;  // by position; empty: all are 0
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_CODED_ROWS_H_
