// Facts about a model for `kinglet inspect`: shapes, encodings and bytes of its tensors.
#ifndef KINGLET_TOOLS_MODEL_FACTS_H_
#define KINGLET_TOOLS_MODEL_FACTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/model_file.h"

namespace kinglet {

// One tensor and the bytes of its parts, from the file's ledger.
struct TensorFacts {
  std::string name;
  Shape shape;
  std::string encoding;  // "f32", "packed9/row+mask", "packed9/divisor"
  uint64_t entries = 0;
  uint64_t stored = 0;  // entries that the mask keeps
  bool derived = false;
  uint64_t values = 0, codes = 0, mask = 0, scales = 0;

  uint64_t Bytes() const { return values + codes + mask + scales; }
};

struct ModelFacts {
  std::vector<TensorFacts> tensors;
  uint64_t parameters = 0;  // entries of all tensors that are not derived
  uint64_t stored = 0;      // parameters that the masks keep
  std::vector<std::pair<std::string, uint64_t>>
      bytes_by_part;  // ledger parts in use, in ledger order
};
ModelFacts DescribeModel(const ModelFile& file);

// The encoding for scripts: "packed9/row+mask".
std::string EncodingName(const TensorView& tensor);
// The encoding for people: "9-bit, a scale per row, pruned 36.1 %".
std::string EncodingText(const TensorView& tensor);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_MODEL_FACTS_H_
