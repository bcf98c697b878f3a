// What a compressing pass reports: how far the compressed matrix is from the original, and the
// bytes of both.
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
  // |reconstructed - original| / |original| (Frobenius norms); 0 where nothing differs, infinite
  // where only the original is all zero.
  double relative_error = 0;
  double mean_squared_error = 0;
  double largest_error = 0;   // of one entry, absolute
  uint64_t bytes_before = 0;  // as float32
  uint64_t bytes_after = 0;

  double Ratio() const {
    return static_cast<double>(bytes_before) / static_cast<double>(bytes_after);
  }
};

// Bytes of a coded table: its codes at CodingScheme::CodeBits and its codebook as float32; or the
// codes alone, where the codebook is stored otherwise. Hashed codes take none.
uint64_t BytesOfCodes(const CodedTable& table);
uint64_t BytesOf(const CodedTable& table);
// Table and projection as float32.
uint64_t BytesOf(const LowRank& factors);
// Entries or mask and entries as the tensor says, and its scales as the file holds them. REQUIRES:
// it is not coded, here and below.
uint64_t BytesOf(const EncodedTensor& tensor);

// Writes the float32 values of one row: sub-vectors one after the other, or added in float32 in
// order of position and for the mean divided by their number, as every backend does.
// REQUIRES: the table keeps what CodedTable says; row < rows; Cols(table) entries.
void ExpandRow(const CodedTable& table, uint64_t row, std::span<float> values);
std::vector<float> ExpandedTable(const CodedTable& table);  // [rows, Cols(table)]

// Writes one row of the matrix that the reconstruction stands for.
using RowWriter = std::function<void(uint64_t row, std::span<float> values)>;

// Compares row by row, so that the reconstruction need not fit into memory. REQUIRES: values
// [rows, cols].
Reconstruction Compare(std::span<const float> values, const Shape& shape,
                       const RowWriter& reconstructed, uint64_t bytes_after);
// The same of what passes make. REQUIRES: the shapes are equal.
Reconstruction Compare(std::span<const float> values, const Shape& shape, const CodedTable& table);
Reconstruction Compare(std::span<const float> values, const Shape& shape, const LowRank& factors);
Reconstruction Compare(std::span<const float> values, const EncodedTensor& tensor);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_RECONSTRUCTION_H_
