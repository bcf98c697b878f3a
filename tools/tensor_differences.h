// The differences between the tensors of two model files.
#ifndef KINGLET_TOOLS_TENSOR_DIFFERENCES_H_
#define KINGLET_TOOLS_TENSOR_DIFFERENCES_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "tools/model_facts.h"

namespace kinglet {

// A tensor by its name, in the first file, the second, or both.
struct TensorDifference {
  std::string name;
  std::optional<size_t> first, second;  // indices into ModelFacts::tensors
  // |second - first| / |first| of the values (Frobenius norms), infinite if only the first is all
  // zero. nullopt unless both files have the tensor, in one shape, and neither codes it.
  std::optional<double> relative_error;
  // Whether values and encoding are equal. For coded tables: codes and scheme.
  bool same = false;
};

// The first file's tensors in its order, then those that only the second has. REQUIRES: the files'
// bytes are in memory.
std::vector<TensorDifference> CompareTensors(const ModelFile& first, const ModelFile& second);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TENSOR_DIFFERENCES_H_
