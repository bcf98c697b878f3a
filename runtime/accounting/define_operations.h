// The operations of one layer of a DeFINE unit (a GLT, group linear transformation) for one word,
// as kernels/ref/define.h computes it. Source: Mehta et al. 2020, "DeFINE: Deep Factorized Input
// Token Embeddings".
#ifndef KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
#define KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_

#include <cstdint>

#include "format/blocks.h"
#include "format/define_unit.h"
#include "kernels/plan.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

struct DefineOperations {
  OperationTally products;  // with the matrices of the groups, and the sums with the bias
  OperationTally norm;
  OperationTally activation;
  OperationTally residual;
};

DefineOperations OperationsOf(const DefineLayer& layer);

// A filter of a character CNN for one word of `letters` bytes, as kernels/ref/spelling.h computes
// it. `weight`: the shape of its matrix.
OperationTally FilterOperations(const ByteFilter& filter, const Shape& weight, uint32_t letters,
                                uint32_t longest);
// The bytes of a word that the model spells; 0 for another.
uint32_t LettersOf(const Plan& plan, uint32_t id);
// The mean of a bin's words, rounded. REQUIRES: the bin has a spelling.
uint32_t MeanLetters(const Plan& plan, const EmbeddingBin& bin);

// An activation function of n elements.
OperationTally ActivationOperations(Activation activation, double n);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
