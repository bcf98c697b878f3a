// Known answers: log-probabilities that the original training code gave, replayed on a converted
// model in double precision.
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

namespace kinglet {

// After ids[0 .. position - 1], and before them the model's start token where it has one, log p(id)
// is log_probability; id == ids[position].
struct GoldenValue {
  uint64_t position = 0;
  uint32_t id = 0;
  double log_probability = 0;
};

struct GoldenFile {
  std::vector<uint32_t> ids;
  std::vector<GoldenValue> values;        // positions grow; at least one
  std::vector<uint32_t> source_ids = {};  // of a model with an encoder: encoded first
};

// `golden` has lines "position<TAB>id<TAB>..<TAB>value"; fields between the id and the value are
// passed over. `ids` as ReadIds reads it. Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR,
// KINGLET_INVALID_ARGUMENT naming the line.
Result<GoldenFile> ReadGolden(const std::string& golden, const std::string& ids);

// Of a model with an encoder: a file of answers for each pair of `pairs`
// (converters/texts/pair_file.h) that has any. `golden` has lines
// "sentence<TAB>position<TAB>id<TAB>..<TAB>value", where the sentence is a line of `pairs`, from 0,
// and position 0 follows the start token. Errors: as ReadGolden's and ReadPairs'.
Result<std::vector<GoldenFile>> ReadGoldenPairs(const std::string& golden, const std::string& pairs,
                                                uint32_t start_token);

struct GoldenReplay {
  uint64_t positions = 0;
  double largest_difference = 0;
};

// Runs the model on ref64. Errors: KINGLET_MISMATCH naming the first position beyond the
// tolerance; KINGLET_INVALID_ARGUMENT for a value of position 0 where the model has no start token;
// errors of running the model.
Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file, const GoldenFile& golden,
                                  double tolerance);
// The same of several streams, one after the other.
Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file,
                                  std::span<const GoldenFile> streams, double tolerance);

// The vector a model carries, in the form of a file of known answers.
GoldenFile AsGoldenFile(const GoldenVector& vector);

// The same ids and tolerance with the answers that `file` gives on ref64, for a model that was
// changed on purpose. Errors: those of running the model; KINGLET_NOT_FINITE for an id that is
// impossible.
Result<GoldenVector> RecomputeGolden(std::shared_ptr<const ModelFile> file,
                                     const GoldenVector& golden);

// The first known answers, to be carried in the model file: up to 64 ids, as far as the values go
// from position `first` on without a gap, FirstPredicted of the model (runtime/scored_stream.h).
// None if that position has no value.
std::optional<GoldenVector> LeadingGolden(const GoldenFile& golden, uint64_t first,
                                          double tolerance);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_GOLDEN_H_
