// What a query did: reported with its answer, counted by runtime/meter.
#ifndef KINGLET_RUNTIME_QUERIES_QUERY_WORK_H_
#define KINGLET_RUNTIME_QUERIES_QUERY_WORK_H_

#include "runtime/accounting/operations.h"
#include "runtime/queries/cluster_set.h"

namespace kinglet {

// Only what no earlier query about the same token had already computed.
struct QueryWork {
  ClusterSet clusters;        // their logits and normalisers
  bool cache = false;         // the neural cache's weights
  OperationTally arithmetic;  // the distribution's own, on top of those steps of the plan
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_QUERIES_QUERY_WORK_H_
