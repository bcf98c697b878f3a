#include "converters/passes/summed_codes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "converters/entries.h"

namespace kinglet {
namespace {

constexpr char kWhat[] = "summed codes";

}  // namespace

Result<CodedTable> SummedCodes(std::vector<float> codebook, uint64_t width,
                               std::vector<uint32_t> codes, uint64_t positions) {
  const auto refuse = [](const std::string& where, const std::string& expected, uint64_t found) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kWhat, where, expected,
                           std::to_string(found));
  };
  if (width == 0) return refuse("width", "at least 1", width);
  if (positions == 0) return refuse("positions", "at least 1", positions);
  const uint64_t rows = codebook.size() / width;
  if (rows == 0 || codebook.size() % width != 0) {
    return refuse("codebook", "rows of " + std::to_string(width) + " entries", codebook.size());
  }
  if (rows % positions != 0 || rows / positions > UINT32_MAX) {
    return refuse("codebook",
                  "as many rows for each of " + std::to_string(positions) + " positions", rows);
  }
  if (codes.empty() || codes.size() % positions != 0) {
    return refuse("codes", "rows of " + std::to_string(positions) + " entries", codes.size());
  }
  KINGLET_RETURN_IF_ERROR(CheckFinite(kWhat, "codebook", codebook));
  const uint64_t choices = rows / positions;
  const auto wrong = std::find_if(codes.begin(), codes.end(),
                                  [choices](uint32_t code) { return code >= choices; });
  if (wrong != codes.end()) {
    const auto at = static_cast<uint64_t>(wrong - codes.begin());
    return refuse(
        "word " + std::to_string(at / positions) + ", position " + std::to_string(at % positions),
        "a code below " + std::to_string(choices), *wrong);
  }

  CodedTable table;
  table.combine = Combine::kSum;
  table.rows = codes.size() / positions;
  table.positions = positions;
  table.length = width;
  table.pools.assign(positions, static_cast<uint32_t>(choices));
  table.codebook = std::move(codebook);
  table.codes = std::move(codes);
  return table;
}

}  // namespace kinglet
