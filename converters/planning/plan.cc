#include "converters/planning/plan.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "converters/planning/cheapest.h"
#include "converters/planning/group_losses.h"
#include "converters/planning/loss_curve.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

constexpr double kSparsityGrid = 0.05;
constexpr double kNoWeight = 1e-12;
// Masks and codebooks that the reference file lacks take bytes in the planned file's header.
constexpr double kHeaderMargin = 1024;

Status RefusePlan(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "plan", where, expected, found);
}

double TotalOf(const CompressionPlan& plan, double GroupPlan::*part) {
  double sum = 0;
  for (const GroupPlan& group : plan.groups) sum += group.*part;
  return sum;
}

// The forms that a group can take. If the record has no bits, the first form is the unchanged one.
// `rest_bits`: of codebooks, if the plan quantises.
std::vector<GroupPlan> FormsOf(const GroupLosses& losses, std::optional<int> rest_bits) {
  std::vector<GroupPlan> forms;
  const auto add_pruned = [&](std::optional<int> bits) {
    if (!losses.has_sparsities()) return;
    const double last = losses.sparsities().last();
    for (int i = 1; i * kSparsityGrid <= last + 1e-9; ++i) {
      const double sparsity = std::round(i * kSparsityGrid * 100) / 100;
      if (sparsity <= losses.ZerosAt(bits)) continue;
      forms.push_back(
          {sparsity, bits, {}, losses.LossOf(sparsity, bits), losses.BytesOf(sparsity, bits)});
    }
  };
  if (losses.bits().empty()) {
    forms.push_back({{}, {}, {}, 0, losses.BytesOf({}, {})});
    add_pruned({});
  }
  for (const int bits : losses.bits()) {
    forms.push_back({{}, bits, {}, losses.LossOf({}, bits), losses.BytesOf({}, bits)});
    add_pruned(bits);
  }
  for (const MeasuredChange& change : losses.codes()) {
    forms.push_back({{},
                     {},
                     std::get<CodesChange>(change.change),
                     losses.LossOfCodes(change),
                     losses.BytesOfCodes(change, rest_bits)});
  }
  for (const MeasuredChange& change : losses.ranks()) {
    const auto add = [&](std::optional<int> bits) {
      forms.push_back({{},
                       bits,
                       {},
                       losses.LossOfRank(change, bits),
                       losses.BytesOfRank(change, bits),
                       std::get<RankChange>(change.change).rank});
    };
    if (losses.bits().empty()) add({});
    for (const int bits : losses.bits()) add(bits);
  }
  return forms;
}

std::vector<GroupLosses> LossesOf(const SensitivityRecord& record) {
  std::vector<GroupLosses> losses;
  for (size_t group = 0; group < record.groups.size(); ++group) losses.emplace_back(record, group);
  return losses;
}

bool HasBits(const SensitivityRecord& record) {
  return std::any_of(record.changes.begin(), record.changes.end(), [](const MeasuredChange& made) {
    return std::holds_alternative<BitsChange>(made.change);
  });
}

bool IsUnused(const SensitivityRecord& record, size_t group) {
  bool changed = false;
  for (const MeasuredChange& change : record.changes) {
    if (change.group != group || change.found.relative_error == 0) continue;
    if (change.found.nll != record.nll || change.found.standard_error != 0) return false;
    changed = true;
  }
  return changed;
}

int BitsOf(const MeasuredChange& change) {
  const auto* bits = std::get_if<BitsChange>(&change.change);
  return bits == nullptr ? 0 : bits->bits;
}

// Of each unused group, only the change to the most bits.
SensitivityRecord WithoutUnused(SensitivityRecord record) {
  for (const size_t group : UnusedGroups(record)) {
    int most = 1;  // no change has so few bits
    for (const MeasuredChange& change : record.changes) {
      if (change.group == group) most = std::max(most, BitsOf(change));
    }
    std::erase_if(record.changes, [&](const MeasuredChange& change) {
      return change.group == group && BitsOf(change) != most;
    });
  }
  return record;
}

class Planner {
 public:
  explicit Planner(const SensitivityRecord& record)
      : record_(record), losses_(LossesOf(record)), quantised_(HasBits(record)) {
    const std::optional<int> rest = quantised_ ? std::optional(record.rest_bits) : std::nullopt;
    for (const GroupLosses& losses : losses_) forms_.push_back(FormsOf(losses, rest));
  }

  Result<CompressionPlan> operator()(const SparsityTarget& target) const {
    KINGLET_ASSIGN_OR_RETURN(const auto curves, Curves());
    const auto found = FindThreshold(curves, Weights(), target.fraction);
    if (!found) {
      return RefusePlan("sparsity",
                        "at most " + NumberText(MostSparse(curves)) + ", the sparsest measured",
                        NumberText(target.fraction));
    }
    return PrunedAt(*found);
  }

  Result<CompressionPlan> operator()(const SizeTarget& target) const {
    const double budget = static_cast<double>(target.bytes) - OtherBytes(quantised_);
    return Chosen(&GroupPlan::loss, &GroupPlan::bytes, budget, [&](double least) {
      return RefusePlan("size",
                        "at least " + NumberText(std::ceil(least + OtherBytes(quantised_))) +
                            " bytes with the changes measured",
                        std::to_string(target.bytes));
    });
  }

  Result<CompressionPlan> operator()(const PerplexityTarget& target) const {
    const double fixed = quantised_ ? record_.rest_nll - record_.nll : 0;
    const double budget = portable::Log1p(target.more / portable::Exp(record_.nll)) - fixed;
    return Chosen(&GroupPlan::bytes, &GroupPlan::loss, budget, [&](double least) {
      const double lost = portable::Exp(record_.nll) * portable::Expm1(least + fixed);
      return RefusePlan("ppl", "at least +" + NumberText(lost) + " with the changes measured",
                        "+" + NumberText(target.more));
    });
  }

  Result<CompressionPlan> operator()(const OperationsTarget& target) const {
    return target.executed ? ByExecuted(target) : ByMicronet(target);
  }

 private:
  Result<std::vector<LossCurve>> Curves() const {
    std::vector<LossCurve> curves;
    bool any = false;
    for (const GroupLosses& losses : losses_) {
      any = any || losses.has_sparsities();
      curves.push_back(losses.sparsities());
    }
    if (any) return curves;
    return RefusePlan("changes", "sparsities measured (--sparsities)", "none");
  }
  // Entries; for a group without sparsities, such as a bias, too small to matter.
  std::vector<double> Weights() const {
    std::vector<double> weights;
    for (size_t i = 0; i < losses_.size(); ++i) {
      weights.push_back(losses_[i].has_sparsities() ? static_cast<double>(record_.groups[i].entries)
                                                    : kNoWeight);
    }
    return weights;
  }
  double MostSparse(const std::vector<LossCurve>& curves) const {
    double zeros = 0, entries = 0;
    const std::vector<double> weights = Weights();
    for (size_t i = 0; i < curves.size(); ++i) {
      zeros += weights[i] * curves[i].last();
      entries += weights[i];
    }
    return zeros / entries;
  }

  // The file's bytes but the groups'; `quantised`: at rest_bits, as in a plan of bits.
  double OtherBytes(bool quantised) const {
    if (quantised) return static_cast<double>(record_.rest_bytes) + kHeaderMargin;
    double bytes = static_cast<double>(record_.bytes) + kHeaderMargin;
    for (const MeasuredGroup& group : record_.groups) bytes -= static_cast<double>(group.bytes);
    return bytes;
  }

  // Floats, pruned by the paper's rule.
  CompressionPlan PrunedAt(const Threshold& threshold) const {
    CompressionPlan plan;
    for (size_t i = 0; i < losses_.size(); ++i) {
      GroupPlan group;
      if (threshold.at[i] > losses_[i].ZerosAt({})) group.sparsity = threshold.at[i];
      group.loss = losses_[i].sparsities().LossAt(threshold.at[i]);
      group.bytes = losses_[i].BytesOf(group.sparsity, {});
      plan.groups.push_back(group);
    }
    plan.threshold = threshold.loss;
    Finish(false, plan);
    return plan;
  }

  void Finish(bool quantised, CompressionPlan& plan) const {
    plan.nll = (quantised ? record_.rest_nll : record_.nll) + TotalOf(plan, &GroupPlan::loss);
    plan.bytes = OtherBytes(quantised) + TotalOf(plan, &GroupPlan::bytes);
    double zeros = 0, entries = 0;
    for (size_t i = 0; i < plan.groups.size(); ++i) {
      const auto count = static_cast<double>(record_.groups[i].entries);
      const GroupPlan& group = plan.groups[i];
      entries += count;
      if (!group.codes) {
        zeros += count * std::max(group.sparsity.value_or(0), losses_[i].ZerosAt(group.bits));
      }
    }
    plan.sparsity = zeros / entries;
  }

  // The forms of least `wanted` whose sum of `limited` is at most `budget`.
  template <class Refuse>
  Result<CompressionPlan> Chosen(double GroupPlan::*wanted, double GroupPlan::*limited,
                                 double budget, const Refuse& refuse) const {
    std::vector<std::vector<Form>> forms;
    double least_cost = 0;
    for (const std::vector<GroupPlan>& of_group : forms_) {
      forms.emplace_back();
      double cheapest = INFINITY;
      for (const GroupPlan& form : of_group) {
        forms.back().push_back({form.*wanted, form.*limited});
        cheapest = std::min(cheapest, form.*limited);
      }
      least_cost += cheapest;
    }
    const auto chosen = CheapestForms(forms, budget);
    if (!chosen) return refuse(least_cost);
    CompressionPlan plan;
    for (size_t i = 0; i < chosen->size(); ++i) plan.groups.push_back(forms_[i][(*chosen)[i]]);
    Finish(quantised_, plan);
    return plan;
  }

  // Under the executed rules neither zeros nor fewer bits save operations; codes do.
  Result<CompressionPlan> ByExecuted(const OperationsTarget& target) const {
    if (!record_.operations.executed) {
      return RefusePlan("operations", "a model that the executed rules count", "another");
    }
    std::vector<std::vector<GroupPlan>> plans;
    std::vector<std::vector<Form>> forms;
    double least_cost = *record_.operations.executed;
    for (size_t i = 0; i < losses_.size(); ++i) {
      plans.push_back({{{}, {}, {}, 0, losses_[i].BytesOf({}, {})}});
      forms.push_back({{0, 0}});
      double cheapest = 0;
      for (const MeasuredChange& change : losses_[i].codes()) {
        if (!change.found.operations.executed) continue;
        const double cost = *change.found.operations.executed - *record_.operations.executed;
        plans.back().push_back({{},
                                {},
                                std::get<CodesChange>(change.change),
                                losses_[i].LossOfCodes(change),
                                static_cast<double>(change.found.bytes)});
        forms.back().push_back({plans.back().back().loss, cost});
        cheapest = std::min(cheapest, cost);
      }
      least_cost += cheapest;
    }
    const auto chosen = CheapestForms(forms, target.operations - *record_.operations.executed);
    if (!chosen) {
      return RefusePlan("operations",
                        "at least " + NumberText(least_cost) +
                            ": under the executed rules only codes change the count, not "
                            "sparsities or bits",
                        NumberText(target.operations));
    }
    CompressionPlan plan;
    double operations = *record_.operations.executed;
    for (size_t i = 0; i < chosen->size(); ++i) {
      plan.groups.push_back(plans[i][(*chosen)[i]]);
      operations += forms[i][(*chosen)[i]].cost;
    }
    Finish(false, plan);
    plan.operations = operations;
    return plan;
  }

  // The operations that the sparsities save, from the measured ones: the count is linear in the
  // non-zero entries.
  double MicronetAt(const Threshold& threshold) const {
    double operations = *record_.operations.micronet;
    for (size_t i = 0; i < losses_.size(); ++i) {
      operations += losses_[i].micronet_slope() * (threshold.at[i] - losses_[i].ZerosAt({}));
    }
    return operations;
  }

  Result<CompressionPlan> ByMicronet(const OperationsTarget& target) const {
    if (!record_.operations.micronet) {
      return RefusePlan("operations", "a model that the rules of micronet-2019 count", "another");
    }
    KINGLET_ASSIGN_OR_RETURN(const auto curves, Curves());
    // The fraction of zeros replaces the operations in the bisection.
    std::vector<double> weights;
    double first = 0, weight = 0;
    for (const GroupLosses& losses : losses_) {
      weights.push_back(std::max(kNoWeight, -losses.micronet_slope()));
      first += weights.back() * losses.ZerosAt({});
      weight += weights.back();
    }
    const double saved = *record_.operations.micronet - target.operations;
    const auto found = FindThreshold(curves, weights, (first + saved) / weight);
    if (!found) {
      Threshold all;
      for (const LossCurve& curve : curves) all.at.push_back(curve.last());
      return RefusePlan(
          "operations",
          "at least " + NumberText(std::ceil(MicronetAt(all))) + " with the sparsities measured",
          NumberText(target.operations));
    }
    CompressionPlan plan = PrunedAt(*found);
    plan.operations = MicronetAt(*found);
    return plan;
  }

  const SensitivityRecord& record_;
  std::vector<GroupLosses> losses_;
  bool quantised_;
  std::vector<std::vector<GroupPlan>> forms_;
};

}  // namespace

std::vector<size_t> UnusedGroups(const SensitivityRecord& record) {
  std::vector<size_t> unused;
  for (size_t group = 0; group < record.groups.size(); ++group) {
    if (IsUnused(record, group)) unused.push_back(group);
  }
  return unused;
}

Result<CompressionPlan> MakePlan(const SensitivityRecord& record, const PlanTarget& target) {
  if (record.groups.empty() || record.changes.empty()) {
    return RefusePlan("sensitivity file", "changes that were measured", "none");
  }
  const SensitivityRecord used = WithoutUnused(record);
  return std::visit(Planner(used), target);
}

}  // namespace kinglet
