// The operations of one layer of a DeFINE unit (a GLT, group linear transformation) for one word,
// as kernels/ref/define.h computes it. Source: Mehta et al. 2020, "DeFINE: Deep Factorized Input
// Token Embeddings".
#ifndef KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
#define KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_

#include "format/define_unit.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

struct DefineOperations {
  OperationTally products;  // with the matrices of the groups, and the sums with the bias
  OperationTally norm;
  OperationTally activation;
  OperationTally residual;
};

DefineOperations OperationsOf(const DefineLayer& layer);

// An activation function of n elements.
OperationTally ActivationOperations(Activation activation, double n);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
