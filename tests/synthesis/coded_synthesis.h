// Recurrent language models with random weights and coded tables, in the shapes that the papers on
// DPQ (Chen, Li & Sun 2020) and Slim Embedding (Li et al. 2018) publish.
#ifndef KINGLET_TESTS_SYNTHESIS_CODED_SYNTHESIS_H_
#define KINGLET_TESTS_SYNTHESIS_CODED_SYNTHESIS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/writer.h"
#include "kinglet/status.h"

namespace kinglet {

// Rows of `positions` sub-vectors, one after the other.
struct CodedTableSpec {
  uint32_t positions = 1;
  std::vector<uint32_t> pools;  // one for all positions, or one for each of them
};

struct CodedSynthesisSpec {
  std::string name;  // goes into the file's provenance
  uint32_t vocabulary_size = 0;
  uint32_t width = 0;  // of the embedding
  CodedTableSpec input;
  std::vector<uint32_t> units = {1};     // of the LSTM layers
  std::optional<CodedTableSpec> output;  // absent: a dense table
  bool output_bias = false;
  int bits = 0;  // 0 means float32; otherwise matrices and codebooks have one scale each
  uint64_t seed = 1;
};

// The model without its values: shapes, encodings and coding schemes. Counting needs no more,
// so a model may be larger than memory. Errors: KINGLET_INVALID_ARGUMENT, naming the value
// out of range.
Result<ModelDraft> OutlineCoded(const CodedSynthesisSpec& spec);

// Makes a model with the same values on every machine, all of them nonzero; mappings are Slim
// Embedding's (converters/passes/slim_mapping.h). A tensor's values depend on the seed, its name
// and its shape only. The model has ids only, no vocabulary. Errors: as OutlineCoded, and more than
// 2^30 entries.
Result<ModelDraft> SynthesiseCoded(const CodedSynthesisSpec& spec);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SYNTHESIS_CODED_SYNTHESIS_H_
