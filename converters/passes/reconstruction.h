// The report of a compressing pass: how much the compressed matrix differs from the original, and
// the bytes of both.
#ifndef KINGLET_CONVERTERS_PASSES_RECONSTRUCTION_H_
#define KINGLET_CONVERTERS_PASSES_RECONSTRUCTION_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "converters/passes/coded_table.h"
#include "converters/passes/low_rank.h"
#include "format/encoding.h"

namespace kinglet {

struct Reconstruction {
  // |reconstructed - original| / |original| (Frobenius norms); 0 if nothing differs, infinite if
  // only the original is all zero.
  double relative_error = 0;
  double mean_squared_error = 0;
  double largest_error = 0;   // of one entry, absolute
  uint64_t bytes_before = 0;  // as float32
  uint64_t bytes_after = 0;

  double Ratio() const {
    return static_cast<double>(bytes_before) / static_cast<double>(bytes_after);
  }
};

// Bytes of a table's codes at CodingScheme::CodeBits, including hashed codes, which are not stored.
uint64_t BytesOfCodes(const CodedTable& table);
uint64_t BytesOf(const CodedTable& table);  // codes, and the codebook as float32
uint64_t BytesOf(const LowRank& factors);   // table and projection as float32
// Entries, or mask and entries if tensor.pruned; and the scales as the file packs them. REQUIRES:
// the tensor is not coded, here and below.
uint64_t BytesOf(const EncodedTensor& tensor);

// Writes the float32 values of one row, with the same roundings as every backend: sub-vectors one
// after the other, or added in float32 in order of position and, for the mean, divided by their
// number. REQUIRES: a valid CodedTable; row < rows; Cols(table) entries.
void ExpandRow(const CodedTable& table, uint64_t row, std::span<float> values);
std::vector<float> ExpandedTable(const CodedTable& table);  // [rows, Cols(table)]

// Writes one row of the reconstructed matrix.
using RowWriter = std::function<void(uint64_t row, std::span<float> values)>;

// Compares row by row, so that the complete reconstruction is never in memory. REQUIRES: values
// [rows, cols].
Reconstruction Compare(std::span<const float> values, const Shape& shape,
                       const RowWriter& reconstructed, uint64_t bytes_after);
// Compares with the result of a pass. REQUIRES: the shapes are equal.
Reconstruction Compare(std::span<const float> values, const Shape& shape, const CodedTable& table);
Reconstruction Compare(std::span<const float> values, const Shape& shape, const LowRank& factors);
Reconstruction Compare(std::span<const float> values, const EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_RECONSTRUCTION_H_
