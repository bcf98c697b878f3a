#include "converters/passes/define/define_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "converters/checkpoints/entries.h"
#include "converters/passes/define/define_layer.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

Status CheckMap(const DefineMap& map, uint64_t map_width) {
  uint64_t words = 0;
  for (size_t index = 0; index < map.size(); ++index) {
    const DefineBand& band = map[index];
    const std::string place = "band " + std::to_string(index) + ", ";
    const auto refuse = [&place](const char* field, const std::string& expected,
                                 const std::string& found) {
      return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "define map", place + field, expected,
                             found);
    };
    if (band.width == 0 || band.width > kLargestDefineWidth) {
      return refuse("width", "1 to " + std::to_string(kLargestDefineWidth),
                    std::to_string(band.width));
    }
    if (band.projection.empty() && band.width != map_width) {
      return refuse("width", std::to_string(map_width) + ", as there is no projection",
                    std::to_string(band.width));
    }
    if (!std::isfinite(band.scale)) return refuse("scale", "a finite number", "another");
    KINGLET_RETURN_IF_ERROR(
        CheckArray("define map", place + "table", {band.words, band.width}, band.table));
    if (!band.projection.empty()) {
      KINGLET_RETURN_IF_ERROR(
          CheckArray("define map", place + "projection", {map_width, band.width}, band.projection));
    }
    words += band.words;  // no overflow: the tables are in memory
  }
  if (words == 0) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "define map", "words", "at least 1", "0");
  }
  return {};
}

uint64_t Widest(const DefineMap& map) {
  uint64_t widest = 0;
  for (const DefineBand& band : map) widest = std::max(widest, band.width);
  return widest;
}

// Computes the vectors of one batch of words by Map and the unit.
class WordBatch {
 public:
  WordBatch(const DefineMap& map, const DefineUnit& unit, std::span<const DefineWeights> weights)
      : unit_(unit),
        weights_(weights),
        looked_up_(Widest(map)),
        e_(WidestOf(unit).products),
        joined_(WidestOf(unit).in),
        unshuffled_(WidestOf(unit).products),
        previous_(WidestOf(unit).products),
        output_(WidestOf(unit).products) {}

  // Writes the table's rows of `count` words of `band`, from its word `first`, to `rows`. Returns
  // false if a row is not finite. REQUIRES: count <= kBatchWords.
  bool Compute(const DefineBand& band, uint64_t first, uint64_t count, float* rows) {
    LookUp(band, first, count);
    uint64_t e_width = unit_.map_width, width = unit_.map_width;
    for (size_t index = 0; index < unit_.layers.size(); ++index) {
      if (index == unit_.entry_layers) {
        std::copy_n(previous_.Feature(0), width * kBatchWords, e_.Feature(0));
        e_width = width;
      }
      ApplyLayer(unit_.layers[index], weights_[index], e_, e_width, previous_, width, joined_,
                 unshuffled_, output_);
      std::swap(previous_, output_);
      width = unit_.layers[index].out;
    }
    bool finite = true;
    for (uint64_t word = 0; word < count; ++word) {
      for (uint64_t feature = 0; feature < width; ++feature) {
        rows[word * width + feature] = static_cast<float>(previous_.Feature(feature)[word]);
        finite = finite && std::isfinite(rows[word * width + feature]);
      }
    }
    return finite;
  }

 private:
  void LookUp(const DefineBand& band, uint64_t first, uint64_t count) {
    FeatureBatch& vectors = band.projection.empty() ? previous_ : looked_up_;
    for (uint64_t feature = 0; feature < band.width; ++feature) {
      double* words = vectors.Feature(feature);
      for (uint64_t word = 0; word < count; ++word) {
        words[word] = band.table[(first + word) * band.width + feature] * band.scale;
      }
      std::fill(words + count, words + kBatchWords, 0.0);
    }
    if (!band.projection.empty()) {
      MultiplyBatch(band.projection.data(), unit_.map_width, band.width, looked_up_.Feature(0),
                    previous_.Feature(0));
    }
  }

  const DefineUnit& unit_;
  std::span<const DefineWeights> weights_;
  FeatureBatch looked_up_, e_, joined_, unshuffled_, previous_, output_;
};

}  // namespace

uint64_t Words(const DefineMap& map) {
  uint64_t words = 0;
  for (const DefineBand& band : map) words += band.words;
  return words;
}

Result<std::vector<float>> DefineTable(const DefineMap& map, const DefineUnit& unit,
                                       std::span<const DefineWeights> weights, size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckUnit(unit));
  KINGLET_RETURN_IF_ERROR(CheckWeights(unit, weights));
  KINGLET_RETURN_IF_ERROR(CheckMap(map, unit.map_width));
  const uint64_t words = Words(map), width = OutputWidth(unit);
  if (words > kLargestDefineTable / width) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "define table", "size",
                           "at most 2^32 entries", ShapeText({words, width}));
  }

  std::vector<float> table(words * width);
  // Memory for threads is allocated before they start, because threads must not throw.
  threads = std::min<size_t>(threads, words / kBatchWords + 1);
  std::vector<WordBatch> batches;
  batches.reserve(threads);
  for (size_t share = 0; share < threads; ++share) batches.emplace_back(map, unit, weights);
  std::vector<uint64_t> bad(threads, UINT64_MAX);  // the first word of a batch that is not finite
  RunShares(threads, [&](size_t share) {
    uint64_t turn = 0, band_first = 0;
    for (const DefineBand& band : map) {
      for (uint64_t first = 0; first < band.words; first += kBatchWords, ++turn) {
        if (turn % threads != share) continue;
        const uint64_t count = std::min<uint64_t>(kBatchWords, band.words - first);
        const uint64_t row = band_first + first;
        if (!batches[share].Compute(band, first, count, table.data() + row * width)) {
          bad[share] = std::min(bad[share], row);
        }
      }
      band_first += band.words;
    }
  });

  const uint64_t from = *std::min_element(bad.begin(), bad.end());
  if (from == UINT64_MAX) return table;
  const auto entry = std::find_if_not(table.begin() + static_cast<std::ptrdiff_t>(from * width),
                                      table.end(), [](float x) { return std::isfinite(x); });
  const auto at = static_cast<uint64_t>(entry - table.begin());
  return Status::Refusal(
      KINGLET_NOT_FINITE, "define table",
      "word " + std::to_string(at / width) + ", feature " + std::to_string(at % width),
      "a finite float32", std::isnan(*entry) ? "NaN" : "infinity");
}

}  // namespace kinglet
