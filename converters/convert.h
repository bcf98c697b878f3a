// Checkpoint -> model file: the life of a checkpoint, top to bottom.
//   open (never executes anything) -> family maps names to blocks -> passes that need all tensors
//   -> tensors are read, pruned, quantised, packed and freed one by one -> written beside the
//   output's place -> calibrated: the file runs on a text and is written again with what that gave
//   -> reopened with the runtime's own reader -> golden values replayed with ref64 -> put in place.
// Nothing is left at the output path unless every step succeeded. Memory holds at most 1.2 times
// the largest tensor, as float32, and the output; more only for recipes' passes, which need all
// tensors, for tables that are made of several tensors, for checkpoints of integers (half a
// tensor), to replay golden values, and to calibrate, which holds the output as the runtime lays it
// out and one stream's memory.
#ifndef KINGLET_CONVERTERS_CONVERT_H_
#define KINGLET_CONVERTERS_CONVERT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct ConvertOptions {
  std::string
      checkpoint;  // file, or folder with models/model-<step>.pth (the largest step is used)
  std::string output;
  std::string family;      // empty: recognised
  std::string config;      // empty: config.yaml beside the checkpoint, or one folder up
  std::string vocabulary;  // empty: the model has ids only
  std::optional<int> bits;
  std::string calibration_text;  // what Calibrate reads; needs bits
  // JSON (docs/RECIPES.md): in place of a family, or after it. Empty: the recipe that lies beside
  // the checkpoint (converters/recipe/recipe_file.h), unless a family is given.
  std::string recipe;
  // The embedding's DeFINE unit stays in the model, which caches so many rows a stream; none: as
  // the recipe says, or else the unit becomes its table.
  std::optional<uint32_t> define_cache_rows;
  // In place of the checkpoint's number of earlier tokens that a token sees, for the families that
  // can have another.
  std::optional<uint32_t> memory_length;
  std::optional<double> prune;  // fraction of zeros wanted in each prunable tensor, [0, 1)
  std::optional<uint32_t> cache_capacity;  // 0 removes the cache
  std::optional<double> cache_theta, cache_lambda;
  std::string golden;  // position<TAB>id<TAB>..<TAB>value; of pairs sentence<TAB> before it
  std::string
      ids;  // token ids the golden values belong to, or pairs (converters/texts/pair_file.h)
  double tolerance = 1e-4;
  // Told now and then how far a pass that takes long has come: "pass 2, embedding.table: pool 3 of
  // 8, ...". May be empty.
  std::function<void(const std::string& text)> progress;
};

// What was done, for the user to read.
struct ConvertSummary {
  std::string family;
  uint64_t tensors = 0;
  uint64_t parameters = 0;  // entries of all tensors but derived ones
  uint64_t nonzero_parameters = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t file_bytes = 0;
  std::vector<std::pair<std::string, uint64_t>>
      bytes_by_part;  // ledger parts in order; sums to file_bytes
  std::vector<std::string>
      notes;  // "embed.layers.0.weight differs from loss.layers.0.weight; the latter is used"
  std::optional<uint64_t> golden_positions;  // replayed
  double golden_largest_difference = 0;
  std::string digest;
};

// Errors: KINGLET_INVALID_ARGUMENT for options that cannot be meant; KINGLET_INVALID_CHECKPOINT,
// KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_UNSUPPORTED, KINGLET_OUT_OF_MEMORY;
// KINGLET_MISMATCH where the model does not give the golden values.
Result<ConvertSummary> Convert(const ConvertOptions& options);

// The summary as lines of text.
std::string SummaryText(const ConvertSummary& summary);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CONVERT_H_
