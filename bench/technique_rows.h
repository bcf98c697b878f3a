// The rows of docs/TECHNIQUES.md: the compression methods of the papers' tables, each with its
// options of `kinglet convert`.
#ifndef KINGLET_BENCH_TECHNIQUE_ROWS_H_
#define KINGLET_BENCH_TECHNIQUE_ROWS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "converters/convert.h"

namespace kinglet {

// Rows are comparable only if they have the same base.
enum class TechniqueBase : uint8_t {
  kDemo,     // examples/wikitext2, 33,278 words, changed after training
  kFull,     // `full` of examples/torch/train_all.sh, 1,137 words, changed after training
  kTrained,  // models of the same script, trained with the technique; compared with `full`
  // Transformers that other people's frameworks wrote, each with its own text; compared with
  // the first row of the same checkpoint. A first row with a recipe has no reference:
  // its tables were trained as they are.
  kTransformer,
};

// The tables that a method compresses.
enum class TechniqueTables : uint8_t { kInput, kOutput, kBoth };

struct TechniqueRow {
  std::string_view method;
  TechniqueBase base;
  TechniqueTables tables;
  // A name of train_all.sh; for kTransformer a folder with tokens.txt. Empty means the demo model.
  std::string_view checkpoint;
  std::string_view recipe;  // in examples/recipes; empty means no recipe
  // For the whole network; 0 means float32. Only the demo model has a text to calibrate with.
  int bits = 0;
  double prune = 0;
  // Rounded by feedback, with scales of least squared error, ranges by percentile and activations
  // of 9 bits: what loses least with few bits (docs/QUANTISING.md).
  bool feedback = false;
};

// Sorted by base. The first row of a base is the reference for the others; the reference for
// kTrained is the first row of kFull, for kTransformer the first of a checkpoint.
std::span<const TechniqueRow> TechniqueRows();

struct TechniqueFolders {
  std::string examples;     // of the source tree
  std::string models;       // filled by train_all.sh
  std::string checkpoints;  // with the checkpoints of kTransformer
};
ConvertOptions OptionsOf(const TechniqueRow& row, const TechniqueFolders& folders,
                         const std::string& output);

// The conversion as a command line: "convert dpq-sx.pt --recipe input-9-bit.json".
std::string CommandOf(const TechniqueRow& row);

}  // namespace kinglet

#endif  // KINGLET_BENCH_TECHNIQUE_ROWS_H_
