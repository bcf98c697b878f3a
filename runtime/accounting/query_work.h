// What a query computed: reported with its answer, turned into operations by
// runtime/accounting/meter.h.
#ifndef KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_
#define KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_

#include "runtime/accounting/cluster_set.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

// Without what an earlier query about the same token had already computed.
struct QueryWork {
  ClusterSet clusters;        // whose logits and normalisers were computed
  bool cache = false;         // whether the neural cache's weights were
  OperationTally arithmetic;  // the query's own, besides the plan's nodes for the above
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_
