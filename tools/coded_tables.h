// Facts about the coded tables of a model for `kinglet count`: bytes, and compression ratios as the
// papers count them. docs/ACCOUNTING.md has the formulas.
#ifndef KINGLET_TOOLS_CODED_TABLES_H_
#define KINGLET_TOOLS_CODED_TABLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "runtime/accounting/coded_ratio.h"
#include "tools/json_lines.h"

namespace kinglet {

struct CodedTableFacts {
  std::string name;
  std::string encoding;  // of the table: "coded25x3/concatenate"
  std::string codebook;  // of the codebook: "f32"
  uint64_t rows = 0, columns = 0;
  uint64_t positions = 0;                        // sub-vectors per row
  uint64_t choices = 0;                          // sub-vectors of the largest pool
  uint64_t sub_vectors = 0;                      // of all pools
  uint64_t codes_bytes = 0, codebook_bytes = 0;  // as the file stores them
  CodedRatios ratios;
  double slim_ratio = 0;
  // Bytes of the table as float32, divided by the bytes of its codes and codebook.
  double StoredRatio() const;
};

// In file order. A codebook that several tables share counts with each of them.
std::vector<CodedTableFacts> CodedTablesOf(const ModelFile& file);

// A table with a header and one line per coded table; empty if there are none.
std::string CodedTablesText(std::span<const CodedTableFacts> tables);
// "tables":[{"name":..,"encoding":..,..}]
void AppendCodedTables(std::span<const CodedTableFacts> tables, JsonLine& line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_CODED_TABLES_H_
