// What `kinglet inspect` says of a model, as values.
#ifndef KINGLET_TOOLS_MODEL_FACTS_H_
#define KINGLET_TOOLS_MODEL_FACTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/model_file.h"

namespace kinglet {

// One tensor and the bytes of its parts, as the file's ledger has them.
struct TensorFacts {
  std::string name;
  Shape shape;
  std::string encoding;  // "f32", "packed9/row+mask", "packed9/divisor"
  uint64_t entries = 0;
  uint64_t stored = 0;  // entries that are not masked away
  uint64_t values = 0, codes = 0, mask = 0, scales = 0;

  uint64_t Bytes() const { return values + codes + mask + scales; }
};

struct ModelFacts {
  std::vector<TensorFacts> tensors;
  uint64_t parameters = 0;  // entries of all tensors but buffers
  uint64_t stored = 0;      // of them not masked away
  std::vector<std::pair<std::string, uint64_t>> bytes_by_part;  // ledger parts that occur, in order
};
ModelFacts DescribeModel(const ModelFile& file);

// "packed9/row+mask": how scripts name an encoding.
std::string EncodingName(const TensorView& tensor);
// "9-bit per row, pruned 36.1 %": how people do.
std::string EncodingText(const TensorView& tensor);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_MODEL_FACTS_H_
