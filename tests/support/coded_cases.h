// Every way a table is stored against everything a model does with a table, and the coded tables'
// share of the edge cases (tests/support/op_cases.h).
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
  bool one_pool = true;  // else a pool for each position, of different sizes
  bool hashed = false;
};

// One encoding. Of a coded table the storage is the codebook's.
struct EncodingLine {
  std::string name;
  Storage storage;
  int bits = 0;
  bool pruned = false;
  std::optional<CodingLine> coding = std::nullopt;
};

// What is done with the table.
enum class TableUse {
  kEmbeddingRow,
  kProjectedRow,         // a real projection
  kProjectedByIntegers,  // a 9-bit one
  kProductWithReals,
  kProductWithCodes,
  kProductWithFixedPoint,
};

// A plan of one or two steps, and the answer by a textbook formula over the expanded table, in
// double.
struct TableCase {
  OpCase op_case;
  BufferId out;
  std::vector<double> expected;
  // By element: the sum of the magnitudes of what is added up, which rounding errors are relative
  // to.
  std::vector<double> magnitude;
  bool exact = false;  // a copied row: float backends give `expected` bit for bit
};

const std::vector<EncodingLine>& EncodingLines();
const std::vector<TableUse>& TableUses();
std::string UseName(TableUse use);
TableCase MakeTableCase(const EncodingLine& encoding, TableUse use);

void AddCodedEdges(std::vector<OpCase>& cases);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_CODED_CASES_H_
