// The rules by which MicroNet's entry to the 2019 MicroNet challenge was counted: those of
// micronet_evaluate.ipynb in mit-han-lab/neurips-micronet (commit a85bd0e), omissions included.
// A pure function from a plan, the non-zero entries of its tensors and the frequencies of its bins;
// docs/ACCOUNTING.md has every rule beside what really runs.
#ifndef KINGLET_RUNTIME_MICRONET_H_
#define KINGLET_RUNTIME_MICRONET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/meter.h"

namespace kinglet {

// Sizes are in 32-bit words.
struct MicronetStorage {
  uint64_t nonzero = 0;     // parameters that are not zero
  uint64_t total = 0;       // parameters
  double size = 0;          // of the non-zero parameters
  double mask = 0;          // one bit for each parameter
  double quantisation = 0;  // of the activation quantisers
  double codes = 0;         // of coded tables; hashed ones have none
  double TotalSize() const { return size + mask + quantisation + codes; }
};

struct MicronetCount {
  int bits = 32;  // of parameters and of the operands of multiplications
  MicronetStorage storage;
  std::vector<Component> components;  // plan order
  OperationTally operations;          // their sum
  double WeightedMultiplications() const;
  double TotalOperations() const;  // multiplications weighted
  double Score() const;
};

// Whether the rules ask how often the words of each bin occur: there are several, and one has a
// projection or adds up sub-vectors.
bool NeedsBinCounts(const Plan& plan);

// `nonzeros` belongs to plan.weights; `bin_counts` may be empty unless NeedsBinCounts. Refuses
// counts that do not match the bins, and tensors of different bits, for which there is no rule.
Result<MicronetCount> CountMicronet2019(const Plan& plan, std::span<const uint64_t> nonzeros,
                                        std::span<const uint64_t> bin_counts);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_MICRONET_H_
