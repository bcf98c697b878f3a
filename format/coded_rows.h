// Reads the codes of a coded table row by row: KD codes, DPQ and product quantisation codes, which
// are stored, or HashNet codes, which are computed.
#ifndef KINGLET_FORMAT_CODED_ROWS_H_
#define KINGLET_FORMAT_CODED_ROWS_H_

#include <cstdint>
#include <vector>

#include "format/encoding.h"

namespace kinglet {

// Cheap to copy. Any thread. REQUIRES: the view's bytes outlive it.
class CodedRows {
 public:
  // REQUIRES: the view is coded and its scheme valid.
  explicit CodedRows(const TensorView& view);

  uint32_t positions() const { return view_.scheme.positions; }
  // Writes the code of each position of `row`, an index within the position's pool, to
  // out[positions()]. In a file that is not verified yet a stored code may be beyond its pool, but
  // is below 2^CodeBits().
  void Codes(uint64_t row, uint32_t* out) const;
  // The row of the codebook that the code of position `position` of `row` stands for.
  uint32_t CodebookRow(uint64_t row, uint32_t position) const {
    const uint64_t first = pool_firsts_.empty() ? 0 : pool_firsts_[position];
    return Code(row, position) + static_cast<uint32_t>(first);
  }
  // CodebookRow of each position, to out[positions()].
  void CodebookRows(uint64_t row, uint32_t* out) const;
  // The stored bytes with the codes of rows [begin, end), or of one row; empty where codes are
  // computed.
  std::span<const std::byte> Memory(uint64_t begin, uint64_t end) const;
  std::span<const std::byte> Memory(uint64_t row) const { return Memory(row, row + 1); }

 private:
  uint32_t Code(uint64_t row, uint32_t position) const;

  CodedView view_;
  int bits_;
  std::vector<uint64_t> pool_firsts_;  // [positions]; empty: all are 0
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_CODED_ROWS_H_
