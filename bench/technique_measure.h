// Measures a compression technique in process: converts a model and reports its sizes and
// perplexity.
#ifndef KINGLET_BENCH_TECHNIQUE_MEASURE_H_
#define KINGLET_BENCH_TECHNIQUE_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "converters/convert.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "tools/coded_tables.h"

namespace kinglet {

// Bytes in the file of tables, projections, codes and codebooks, with scales and masks, without
// biases.
struct TableBytes {
  uint64_t input = 0, output = 0;
  uint64_t both = 0;  // input and output; a shared table counts once
};
TableBytes TableBytesOf(const Model& model);

struct TechniqueMeasurement {
  TableBytes tables;
  std::vector<CodedTableFacts> coded;
  uint64_t file_bytes = 0;
  // On `cpu`; the first word of the text is scored only after a start token.
  double perplexity = 0;
};

// A file of words, or of token ids (ReadIds).
struct TechniqueText {
  std::string path;
  bool ids = false;
};

// Converts the model and scores the text. The converted file stays at options.output. Errors: as
// Convert, Model::Open, ReadTextSequence and ReadIds; KINGLET_INVALID_ARGUMENT for a text of one
// word.
Result<TechniqueMeasurement> MeasureTechnique(const ConvertOptions& options,
                                              const TechniqueText& text);

}  // namespace kinglet

#endif  // KINGLET_BENCH_TECHNIQUE_MEASURE_H_
