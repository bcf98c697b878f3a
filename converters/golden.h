// Golden values: log-probabilities that the original framework computed, to be replayed on the
// converted model in double precision.
#ifndef KINGLET_CONVERTERS_GOLDEN_H_
#define KINGLET_CONVERTERS_GOLDEN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/blocks.h"
#include "format/model_file.h"
#include "kinglet/status.h"
#include "runtime/masked_text.h"

namespace kinglet {

// log p(id) after ids[0 .. position - 1], with the model's start token, if it has one, before them;
// id == ids[position].
struct GoldenValue {
  uint64_t position = 0;
  uint32_t id = 0;
  double log_probability = 0;
};

struct GoldenFile {
  std::vector<uint32_t> ids;
  std::vector<GoldenValue> values;        // at least one, in order of position
  std::vector<uint32_t> source_ids = {};  // what a model with an encoder encodes first
  // Only for a masked model: segment numbers of the ids (empty: all 0), and the id of [MASK].
  std::vector<uint32_t> segments = {};
  std::optional<uint32_t> mask = {};
};

// `golden` is a file of lines "position<TAB>id<TAB>..<TAB>value"; fields between id and value are
// ignored. `ids` is a file that ReadIds reads. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_INVALID_ARGUMENT naming the line.
Result<GoldenFile> ReadGolden(const std::string& golden, const std::string& ids);

// Like ReadGolden, for a model with an encoder: a GoldenFile for each pair of `pairs`
// (converters/texts/pair_file.h) that has golden values. Lines of `golden` are
// "sentence<TAB>position<TAB>id<TAB>..<TAB>value": the sentence is a line number of `pairs`, from
// 0, and position 0 follows the start token. Errors: those of ReadGolden and ReadPairs.
Result<std::vector<GoldenFile>> ReadGoldenPairs(const std::string& golden, const std::string& pairs,
                                                uint32_t start_token);

// Like ReadGolden, for a masked model: a GoldenFile for each of `texts` that has golden values.
// Lines of `golden` are "line<TAB>position<TAB>id<TAB>..<TAB>value". The line is the number of the
// text, from 0. The value is ln p of the token at that position when it is replaced by [MASK],
// whose id is `mask`.
Result<std::vector<GoldenFile>> ReadGoldenTexts(const std::string& golden,
                                                std::span<const MaskedText> texts, uint32_t mask);

struct GoldenReplay {
  uint64_t positions = 0;
  double largest_difference = 0;
};

// Runs the model on ref64. Errors: KINGLET_MISMATCH naming the first position beyond the
// tolerance; KINGLET_INVALID_ARGUMENT for a value of position 0 where the model has no start token;
// errors of running the model.
Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file, const GoldenFile& golden,
                                  double tolerance);
// Like ReplayGolden of one stream, for several streams, one after the other.
Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file,
                                  std::span<const GoldenFile> streams, double tolerance);

// The golden values that a model file contains, as a GoldenFile.
GoldenFile AsGoldenFile(const GoldenVector& vector);

// Golden values for a model that was changed on purpose: the ids and tolerance of `golden`, with
// the log-probabilities that `file` gives on ref64. REQUIRES: no masked model. Errors: those of
// running the model; KINGLET_NOT_FINITE for an id of probability 0.
Result<GoldenVector> RecomputeGolden(std::shared_ptr<const ModelFile> file,
                                     const GoldenVector& golden);

// The first golden values, to be stored in the model file: those at positions `first`, first + 1,
// ... without a gap, below position 64. `first` is FirstPredicted of the model
// (runtime/scored_stream.h). Returns nullopt if position `first` has no value. Of a masked model,
// which reads a complete text for each value, the first 16 of the first text.
std::optional<GoldenVector> LeadingGolden(const GoldenFile& golden, uint64_t first,
                                          double tolerance);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_GOLDEN_H_
