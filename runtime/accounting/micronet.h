// The rules by which MicroNet's entry to the 2019 MicroNet challenge was counted: those of
// micronet_evaluate.ipynb in mit-han-lab/neurips-micronet (commit a85bd0e), omissions included.
// A pure function from a plan, the non-zero entries of its tensors and the frequencies of its bins;
// docs/ACCOUNTING.md has every rule beside what really runs.
#ifndef KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_
#define KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/accounting/meter.h"

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
  std::vector<Component> components;  // plan order, without an encoder's
  OperationTally operations;          // their sum
  std::vector<Component> encoder;     // of a source token, where there is an encoder
  OperationTally encoder_operations;  // their sum
  // With multiplications weighted by the bits.
  double Weighted(double multiplications) const;
  double Total(const OperationTally& tally) const;
  double WeightedMultiplications() const { return Weighted(operations.multiplications); }
  double TotalOperations() const { return Total(operations); }
  // Of a language model: size and operations beside the challenge's baseline.
  double Score() const;
};

// What the tokens of translations see, on average; a language model's window counts as full.
struct TranslationMeans {
  double targets_seen = 0;       // target tokens, by a target token, itself included
  double sources_seen = 0;       // source tokens, by a target token
  double sources_of_source = 0;  // and by a source token
  std::vector<uint64_t> source_bin_counts;
};
// REQUIRES: traces of a plan with an encoder, neither empty.
TranslationMeans MeansOf(const Plan& plan, const Trace& encoder, const Trace& decoder);

// Whether the rules ask how often the words of each bin occur: there are several, and one has a
// projection or adds up sub-vectors.
bool NeedsBinCounts(const Plan& plan);

// `nonzeros` belongs to plan.weights; `bin_counts` may be empty unless NeedsBinCounts. Refuses
// counts that do not match the bins, and tensors of different bits, for which there is no rule.
// REQUIRES: means iff the plan has an encoder.
Result<MicronetCount> CountMicronet2019(const Plan& plan, std::span<const uint64_t> nonzeros,
                                        std::span<const uint64_t> bin_counts,
                                        const TranslationMeans* means = nullptr);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_
