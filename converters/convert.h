// Checkpoint -> model file: the life of a checkpoint, top to bottom.
//   1. open the checkpoint (nothing in it is executed)
//   2. a family or recipe maps tensor names to blocks
//   3. recipe passes change the model; they need all tensors
//   4. loop over the tensors: read, prune, quantise, pack, free
//   5. write a temporary file in the output path's folder
//   6. if calibrated: run that file on a text, and write it again with the quantisers found
//   7. reopen it with the runtime's reader, and replay golden values on ref64
//   8. rename it to the output path
// The output path gets a file only if every stage succeeded. Peak memory is the output plus
// 1.2 times the largest tensor as float32. Peak memory is higher where recipe passes need all
// tensors, tables are made of several tensors, a checkpoint contains integers (half a tensor more),
// golden values are replayed, or the model is calibrated (the model as the runtime lays it out, and
// a stream's state).
#ifndef KINGLET_CONVERTERS_CONVERT_H_
#define KINGLET_CONVERTERS_CONVERT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/passes/magnitudes.h"
#include "converters/passes/quantise.h"
#include "kinglet/status.h"

namespace kinglet {

struct ConvertOptions {
  // A file, or a folder with one (FindCheckpoint, converters/checkpoints/checkpoint_path.h).
  std::string checkpoint;
  // More checkpoints of the same training: the values are the means of all (sources/average.h).
  std::vector<std::string> averaged;
  std::string output;
  std::string family;      // empty: recognised by the tensors' names
  std::string config;      // empty: the file that the family's framework writes, if there is one
  std::string vocabulary;  // empty: the file that the family's framework writes, or ids only
  // The texts whose words the framework numbered, in place of a vocabulary.
  std::vector<std::string> vocabulary_texts;
  // How the model tokenizes text: a file or a rule (converters/tokenizers/tokenizer_file.h). Empty:
  // at white space. Without `vocabulary` the words are a SentencePiece model's pieces.
  std::string tokenizer;
  // The vocabulary's word for unknown words (NameUnknownWord); empty: <unk> or one like it.
  std::string unknown_word;
  bool lower_case = false;  // before tokenization; needs `tokenizer`
  std::optional<int> bits;
  ScaleBy scale_by = ScaleBy::kLargest;  // kLeastSquares needs bits
  std::string calibration_text;          // for ReadCalibration; needs bits
  // How matrices are rounded. kFeedback needs a calibration text, and memory for all tensors twice.
  RoundBy round_by = RoundBy::kNearest;
  // How activations are quantised; each option needs a calibration text. activation_bits defaults
  // to `bits`, percentile to RangeRule's. percentile needs kPercentile.
  std::optional<int> activation_bits;
  RangeRule::By calibrate_by = RangeRule::By::kLargest;
  std::optional<double> percentile;
  // JSON (docs/RECIPES.md): in place of a family, or after it. Empty: the recipe in the folder of
  // the checkpoint (converters/recipe/recipe_file.h), unless a family is given.
  std::string recipe;
  // Whether file names in `recipe` may lead out of its folder and the checkpoint's. File names in a
  // recipe that was found never may.
  bool trust_recipe_paths = false;
  // Keeps the embedding's DeFINE unit in the model and caches this many of its rows per stream.
  // nullopt: as the recipe states; without a recipe the unit is replaced by the table that it
  // computes.
  std::optional<uint32_t> define_cache_rows;
  // Keeps a character CNN in the model, which then reads words that its vocabulary lacks, and
  // caches this many of its rows. nullopt: the CNN is replaced by the table that it computes.
  std::optional<uint32_t> character_cache_rows;
  // How many earlier tokens a token attends to (mem_len), in place of the checkpoint's value. Not
  // all families can change it.
  std::optional<uint32_t> memory_length;
  // Options of the checkpoint that are missing from the family's table of options, and that do not
  // change the network.
  std::vector<std::string> ignored_options;
  std::optional<double> prune;  // fraction of zeros wanted in each prunable tensor, [0, 1)
  std::optional<uint32_t> cache_capacity;  // 0 removes the cache
  std::optional<double> cache_theta, cache_lambda;
  std::string golden;  // file of golden values (converters/golden.h)
  // The texts of the golden values: a file of token ids, of pairs (converters/texts/pair_file.h),
  // or of a masked model's texts, which may have segment numbers (converters/texts/masked_file.h).
  std::string ids, segments;
  double tolerance = 1e-4;
  // Called for each tensor, before a run of the model, and now and then by slow passes:
  // "pass 2, embedding.table: pool 3 of 8, ...". May be empty.
  std::function<void(const std::string& text)> progress;
};

// The report of a conversion, for the user.
struct ConvertSummary {
  std::string family;
  uint64_t tensors = 0;
  uint64_t parameters = 0;  // entries of all tensors but derived ones
  uint64_t nonzero_parameters = 0;
  uint64_t checkpoint_bytes = 0;
  uint64_t file_bytes = 0;
  // The ledger's parts (format/ledger.h) in order; their sum is file_bytes.
  std::vector<std::pair<std::string, uint64_t>> bytes_by_part;
  // "embed.layers.0.weight differs from loss.layers.0.weight; the latter is used"
  std::vector<std::string> notes;
  std::optional<uint64_t> golden_positions;  // golden values that were replayed
  double golden_largest_difference = 0;
  std::string digest;
  // Names of the tensors that passes without patterns change, and that the file contains.
  std::vector<std::string> quantisable, prunable;
};

// Errors: KINGLET_INVALID_ARGUMENT for options out of range or that contradict each other;
// KINGLET_INVALID_CHECKPOINT, KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_UNSUPPORTED,
// KINGLET_OUT_OF_MEMORY; KINGLET_MISMATCH if the model does not give the golden values.
Result<ConvertSummary> Convert(const ConvertOptions& options);

// The summary as lines of text.
std::string SummaryText(const ConvertSummary& summary);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CONVERT_H_
