// Chooses how much each tensor of a model is pruned, quantised or coded, from the losses that a
// sensitivity run measured (converters/planning/sensitivity.h), for one target.
//
// Losses of several changes are taken to add up. The loss of a change is estimated from its
// measurement and from the other changes of its kind, whose losses grow as the squared error of the
// weights: a small difference of two losses is mostly noise, whose size is measured too. A tensor
// that is pruned and quantised loses what its bits cost and what pruning costs beyond the zeros
// that quantisation to few bits makes anyway.
#ifndef KINGLET_CONVERTERS_PLANNING_PLAN_H_
#define KINGLET_CONVERTERS_PLANNING_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "converters/planning/sensitivity.h"
#include "converters/planning/tensor_change.h"
#include "kinglet/status.h"

namespace kinglet {

// A tensor of a sensitivity run, or several tensors that a pattern names.
struct MeasuredGroup {
  std::string name;
  std::vector<std::string> tensors;
  uint64_t entries = 0, nonzeros = 0, bytes = 0;
};
struct MeasuredChange {
  size_t group = 0;
  TensorChange change;
  Measurement found;
};
struct SensitivityRecord {
  double nll = 0;  // of the unchanged model
  OperationCounts operations;
  uint64_t bytes = 0;  // of the unchanged model's file
  // A file of the same model with all weights quantised to rest_bits and, where the run was given a
  // text to calibrate with, quantised activations: its bytes but the groups', and its loss.
  int rest_bits = 9;
  uint64_t rest_bytes = 0;
  double rest_nll = 0;
  std::vector<std::string> rest;  // tensors outside the groups that are quantised to rest_bits
  std::vector<MeasuredGroup> groups;
  std::vector<MeasuredChange> changes;
};

struct SparsityTarget {
  double fraction = 0;  // of the groups' entries
};
struct SizeTarget {
  uint64_t bytes = 0;  // of the file
};
struct OperationsTarget {
  double operations = 0;  // a token
  bool executed = false;  // else micronet-2019, at 32 bits
};
struct PerplexityTarget {
  double more = 0;  // than the unchanged model's
};
using PlanTarget = std::variant<SparsityTarget, SizeTarget, OperationsTarget, PerplexityTarget>;

struct GroupPlan {
  std::optional<double> sparsity;
  std::optional<int> bits;
  std::optional<CodesChange> codes;
  double loss = 0;  // predicted
  double bytes = 0;
  std::optional<uint64_t> rank = {};  // with bits, if the plan quantises: of both factors
};
struct CompressionPlan {
  std::vector<GroupPlan> groups;  // of the record
  double nll = 0;                 // predicted
  double bytes = 0;               // predicted, of the file
  double sparsity = 0;            // of the groups' entries
  std::optional<double> operations, threshold;
};
// The groups whose changes left the loss as it was, such as a bin of the embedding with no word of
// the text: what they cost was not measured.
std::vector<size_t> UnusedGroups(const SensitivityRecord& record);

// An unused group stays unchanged, or takes the most bits that were measured.
//
// Errors: KINGLET_INVALID_ARGUMENT for a target that no plan reaches, naming the nearest target
// that a plan reaches, and for a record without the changes that the target needs.
Result<CompressionPlan> MakePlan(const SensitivityRecord& record, const PlanTarget& target);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_PLAN_H_
