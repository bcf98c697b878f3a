// Every encoding of a table combined with every use of a table in a model, and the edge cases of
// coded tables (tests/support/op_cases.h).
#ifndef KINGLET_TESTS_SUPPORT_CODED_CASES_H_
#define KINGLET_TESTS_SUPPORT_CODED_CASES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/case_builder.h"
#include "tests/support/op_cases.h"

namespace kinglet {

struct CodingLine {
  Combine combine = Combine::kConcatenate;
  bool one_pool = true;  // false: a pool for each position, of different sizes
  bool hashed = false;
};

// One encoding. For a coded table storage, bits and pruned are the codebook's.
struct EncodingLine {
  std::string name;
  Storage storage;
  int bits = 0;
  bool pruned = false;
  std::optional<CodingLine> coding = std::nullopt;
};

// A use of the table.
enum class TableUse {
  kEmbeddingRow,
  kProjectedRow,         // by a matrix of floats
  kProjectedByIntegers,  // by a 9-bit matrix
  kProductWithFloats,
  kProductWithCodes,
  kProductWithFixedPoint,
  // Of coded tables only: products row by row (CodedProduct).
  kRowsWithFloats,
  kRowsWithCodes,
  kRowsWithFixedPoint,
};

// A plan of one or two nodes, and its result by the textbook formula over the decoded table, in
// double.
struct TableCase {
  OpCase op_case;
  BufferId out;
  std::vector<double> expected;
  // For each element the sum of its terms' magnitudes; rounding errors are relative to this sum.
  std::vector<double> magnitude;
  Combine combine = Combine::kConcatenate;  // of a coded table
  bool exact = false;  // the row is copied: float backends give `expected` bit for bit
};

const std::vector<EncodingLine>& EncodingLines();
const std::vector<TableUse>& TableUses();
std::string UseName(TableUse use);
TableCase MakeTableCase(const EncodingLine& encoding, TableUse use);

void AddCodedEdges(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_CODED_CASES_H_
