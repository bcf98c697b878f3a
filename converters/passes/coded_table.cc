#include "converters/passes/coded_table.h"

#include <utility>

namespace kinglet {

DraftTable ForDraft(CodedTable table, std::optional<uint64_t> seed) {
  DraftTable made;
  made.table.scheme.combine = table.combine;
  made.table.scheme.positions = static_cast<uint32_t>(table.positions);
  made.table.scheme.pools = std::move(table.pools);
  if (seed) {
    made.table.codes = HashSeed{*seed};
  } else {
    made.table.codes = std::move(table.codes);
  }
  made.codebook_shape = {table.codebook.size() / table.length, table.length};
  made.codebook = DenseF32{std::move(table.codebook)};
  return made;
}

}  // namespace kinglet
