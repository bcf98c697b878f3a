// Counts the operations that a plan runs for a token, component by component, from the plan's own
// nodes and the paths of tokens through the plan, so that no second description of the model can
// disagree. docs/ACCOUNTING.md defines an operation. Published rules of counting are functions of
// their own (runtime/accounting/micronet.h).
#ifndef KINGLET_RUNTIME_ACCOUNTING_METER_H_
#define KINGLET_RUNTIME_ACCOUNTING_METER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "runtime/accounting/operations.h"
#include "runtime/accounting/query_work.h"
#include "runtime/accounting/trace.h"

namespace kinglet {

// The operations of one node of the plan, or of a named part of one ("layers.0.attention.values").
struct Component {
  std::string name;
  OperationTally operations;
  // The multiplications by weights that are not zero; all multiplications in a component without
  // weights.
  double useful_multiplications = 0;
  // The fraction of the component's weights that are not zero; 1 in a component without weights.
  double density = 1;
  int bits = 32;  // of the wider operand of its multiplications; 32 for rules that ignore widths
};

// The number of non-zero entries of each tensor; 0 for a coded table, whose entries are those of
// its codebook. A quantised entry is zero if its code is zero.
std::vector<uint64_t> CountNonzeros(std::span<const TensorView> tensors);

// The differences between backends in what they compute for the same plan.
struct BackendTraits {
  bool real64 = false;               // tails use the projected hidden state without rounding it
  bool decodes_in_products = false;  // every product of floats converts integer weights to floats
  bool decodes_rows = false;         // looking up a row of a table converts its integers to floats
  bool scores_masked_slots = false;  // window slots without a token are scored and then masked
};
BackendTraits TraitsOf(const Backend& backend);

struct ExecutedCount {
  // In the plan's order, then the queries' own arithmetic ("distribution"); for an encoder's trace
  // only the encoder's nodes.
  std::vector<Component> components;
  OperationTally operations;  // the sum of all components
  double useful_multiplications = 0;
};

// The operations of a token, as the mean over the trace's tokens. `nonzeros` is
// CountNonzeros(plan.weights).
ExecutedCount CountExecuted(const Plan& plan, std::span<const uint64_t> nonzeros,
                            const BackendTraits& traits, const Trace& trace);

// The operations of a token for each node of the plan, as the mean over the trace's tokens.
std::vector<OperationTally> CountNodes(const Plan& plan, const BackendTraits& traits,
                                       const Trace& trace);

// The operations of a query about the token after `position`, whose work Session::last_work
// reports. Products with weights that are zero count too.
OperationTally QueryOperations(const Plan& plan, const BackendTraits& traits, uint64_t position,
                               const QueryWork& work);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_METER_H_
