// What a plan really runs, counted: operations per token, component by component, from the plan's
// own steps and the paths that tokens took through them. There is no second description of the
// model. docs/ACCOUNTING.md says what counts as an operation; published rules of counting are
// functions of their own beside this one (runtime/accounting/micronet.h).
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
#include "runtime/accounting/trace.h"
#include "runtime/queries/query_work.h"

namespace kinglet {

// A step of the plan, or a named part of one: "layers.0.attention.values".
struct Component {
  std::string name;
  OperationTally operations;
  // Of the multiplications, those whose weight is not zero; all of them where there is no weight.
  double useful_multiplications = 0;
  // Share of the component's weights that are not zero; 1 where there is no weight.
  double density = 1;
};

// The non-zero entries of each tensor, in the order of the directory. An integer is zero when its
// code is.
std::vector<uint64_t> CountNonzeros(std::span<const TensorView> tensors);

// What backends do differently on the same plan.
struct BackendTraits {
  bool real64 = false;               // tails take the projected hidden state as it is
  bool decodes_in_products = false;  // integer weights become reals in every real product
  bool decodes_rows = false;         // and rows of tables when they are looked up
  bool scores_masked_slots = false;  // window slots before the stream are scored, then masked
};
BackendTraits TraitsOf(const Backend& backend);

struct ExecutedCount {
  // Plan order, then the distribution's own arithmetic; of an encoder's trace its passes alone.
  std::vector<Component> components;
  OperationTally operations;  // their sum
  double useful_multiplications = 0;
};

// The mean over the trace's tokens. `nonzeros` belongs to plan.weights.
ExecutedCount CountExecuted(const Plan& plan, std::span<const uint64_t> nonzeros,
                            const BackendTraits& traits, const Trace& trace);

// The same operations by step of the plan.
std::vector<OperationTally> CountSteps(const Plan& plan, const BackendTraits& traits,
                                       const Trace& trace);

// What a query about the token after `position` did (Session::last_work), as if no weight were
// zero.
OperationTally QueryOperations(const Plan& plan, const BackendTraits& traits, uint64_t position,
                               const QueryWork& work);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_METER_H_
