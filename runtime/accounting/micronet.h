// The rules by which MicroNet's entry to the 2019 MicroNet challenge was counted: those of
// micronet_evaluate.ipynb in mit-han-lab/neurips-micronet (commit a85bd0e; "the notebook" below),
// with everything that it omits. Where the widths of values differ, as they never do in the
// notebook, the challenge's own rules decide: a parameter counts with its bits, a multiplication
// with those of its wider operand. The count is a pure function of a plan, the non-zero entries of
// its tensors and the frequencies of its bins. docs/ACCOUNTING.md compares every rule with what
// really runs.
#ifndef KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_
#define KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/accounting/meter.h"

namespace kinglet {

// Sizes are in 32-bit values.
struct MicronetStorage {
  uint64_t nonzero = 0;     // number of parameters that are not zero
  uint64_t total = 0;       // number of parameters
  double size = 0;          // size of the non-zero parameters
  double mask = 0;          // size of one bit for each parameter
  double quantisation = 0;  // size of the activation quantisers
  double codes = 0;         // size of the codes of coded tables; hashed codes take nothing
  double TotalSize() const { return size + mask + quantisation + codes; }
};

struct MicronetOperations : OperationTally {
  double weighted_multiplications = 0;  // each counts bits / 32
  // Additions and others count 1 each.
  double WeightedTotal() const { return weighted_multiplications + additions + others; }
};

struct MicronetCount {
  std::vector<int> bits;  // the widths of parameters, each once, ascending
  MicronetStorage storage;
  std::vector<Component> components;      // in the plan's order, without the encoder's
  MicronetOperations operations;          // the sum of `components`
  std::vector<Component> encoder;         // for a source token; empty without an encoder
  MicronetOperations encoder_operations;  // the sum of `encoder`
  // The challenge's score of a language model: size and operations relative to its baseline.
  double Score() const;
};

// The average number of tokens that a token of a translation sees. (A language model's window
// counts as full.)
struct TranslationMeans {
  double targets_seen = 0;       // target tokens that a target token sees, itself included
  double sources_seen = 0;       // source tokens that a target token sees
  double sources_of_source = 0;  // source tokens that a source token sees
  std::vector<uint64_t> source_bin_counts;
};
// The means over the tokens of two traces, which are not empty. REQUIRES: the plan has an encoder.
TranslationMeans MeansOf(const Plan& plan, const Trace& encoder, const Trace& decoder);

// Whether the count depends on how often the words of each bin of the embedding occur: if the
// embedding has several bins, and one of them a projection or sums of sub-vectors.
bool NeedsBinCounts(const Plan& plan);

// `nonzeros` is CountNonzeros(plan.weights). `bin_counts` is the number of tokens in each bin, and
// may be empty unless NeedsBinCounts. Errors: KINGLET_INVALID_ARGUMENT for counts that do not match
// the bins. REQUIRES: `means` is null iff the plan has no encoder.
Result<MicronetCount> CountMicronet2019(const Plan& plan, std::span<const uint64_t> nonzeros,
                                        std::span<const uint64_t> bin_counts,
                                        const TranslationMeans* means = nullptr);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_MICRONET_H_
