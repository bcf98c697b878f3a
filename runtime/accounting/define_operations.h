// What one layer of a DeFINE unit takes for one word, as the definition in kernels/ref/define.h
// computes it.
#ifndef KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
#define KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_

#include "format/define_unit.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

struct DefineOperations {
  OperationTally products;  // with the groups' matrices, and the bias
  OperationTally norm;
  OperationTally activation;
  OperationTally residual;
};

DefineOperations OperationsOf(const DefineLayer& layer);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_DEFINE_OPERATIONS_H_
