// What `kinglet count` says of each coded table of a model: its bytes, and its compression ratio as
// the papers count it. docs/ACCOUNTING.md has the formulas.
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
  uint64_t positions = 0;    // sub-vectors a row
  uint64_t choices = 0;      // of one position: its pool's sub-vectors, the largest pool's
  uint64_t sub_vectors = 0;  // of all pools
  uint64_t codes_bytes = 0, codebook_bytes = 0;  // as the file stores them
  CodedRatios ratios;
  double slim_ratio = 0;
  // Bytes of the table as float32 over those of codes and codebook.
  double StoredRatio() const;
};

// In the order of the file. A codebook that tables share is counted with each.
std::vector<CodedTableFacts> CodedTablesOf(const ModelFile& file);

// A line for each table under a line of titles; nothing without tables.
std::string CodedTablesText(std::span<const CodedTableFacts> tables);
// "tables":[{"name":..,"encoding":..,..}]
void AppendCodedTables(std::span<const CodedTableFacts> tables, JsonLine& line);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_CODED_TABLES_H_
