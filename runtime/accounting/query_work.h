// The work of a query, which is reported with its answer. runtime/accounting/meter.h converts it to
// operations.
#ifndef KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_
#define KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_

#include "runtime/accounting/cluster_set.h"
#include "runtime/accounting/operations.h"

namespace kinglet {

// What a query computed, without what an earlier query about the same token had already computed.
struct QueryWork {
  ClusterSet clusters;        // the clusters whose logits and normalisers were computed
  bool cache = false;         // whether the neural cache's weights were computed
  OperationTally arithmetic;  // the query's own, in addition to the plan's nodes
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_QUERY_WORK_H_
