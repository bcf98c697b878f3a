// The rows of a coded table, decoded for comparison in double precision.
#ifndef KINGLET_TESTS_CONVERTERS_PASSES_CODED_ROWS_H_
#define KINGLET_TESTS_CONVERTERS_PASSES_CODED_ROWS_H_

#include <vector>

#include "converters/passes/coded_table.h"

namespace kinglet {

inline std::vector<double> DecodedRows(const CodedTable& table) {
  std::vector<double> rows(table.rows * Cols(table), 0);
  for (uint64_t row = 0; row < table.rows; ++row) {
    uint64_t first = 0;
    for (uint64_t position = 0; position < table.positions; ++position) {
      const uint64_t entry = first + table.codes.at(row * table.positions + position);
      for (uint64_t i = 0; i < table.length; ++i) {
        const double value = table.codebook.at(entry * table.length + i);
        if (table.combine == Combine::kConcatenate) {
          rows[row * Cols(table) + position * table.length + i] = value;
        } else {
          rows[row * table.length + i] += table.combine == Combine::kMean
                                              ? value / static_cast<double>(table.positions)
                                              : value;
        }
      }
      if (table.pools.size() > 1) first += table.pools[position];
    }
  }
  return rows;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_CONVERTERS_PASSES_CODED_ROWS_H_
