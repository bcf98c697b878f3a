// The methods of the papers' tables, each as what `kinglet convert` is told: the rows of
// docs/TECHNIQUES.md.
#ifndef KINGLET_BENCH_TECHNIQUE_ROWS_H_
#define KINGLET_BENCH_TECHNIQUE_ROWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "converters/convert.h"

namespace kinglet {

// Perplexities compare within a base only.
enum class TechniqueBase : uint8_t {
  kDemo,     // examples/wikitext2, 33,278 words, changed after training
  kFull,     // `full` of examples/torch/train_all.sh, 1,137 words, changed after training
  kTrained,  // models of the same script, trained with the technique; compared with `full`
};

// Which tables a method is about.
enum class TechniqueTables : uint8_t { kInput, kOutput, kBoth };

struct TechniqueRow {
  std::string_view method;
  TechniqueBase base;
  TechniqueTables tables;
  std::string_view checkpoint;  // a name of train_all.sh; of the demo model, empty
  std::string_view recipe;      // in examples/recipes; empty: none
  // Of the whole network; 0: none. Bits need a calibration text, which is the demo model's.
  int bits = 0;
  double prune = 0;
};

// By base; the first row of a base is what the others are compared with, but those of kTrained are
// compared with the first of kFull.
std::span<const TechniqueRow> TechniqueRows();

// `examples`: the folder of that name; `models`: the one that train_all.sh filled.
ConvertOptions OptionsOf(const TechniqueRow& row, const std::string& examples,
                         const std::string& models, const std::string& output);

// The conversion as it would be typed: "convert dpq-sx.pt --recipe input-9-bit.json".
std::string CommandOf(const TechniqueRow& row);

}  // namespace kinglet

#endif  // KINGLET_BENCH_TECHNIQUE_ROWS_H_
