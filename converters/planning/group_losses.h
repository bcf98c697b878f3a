// What the changes of one tensor or group cost: losses estimated from what was measured, and bytes.
#ifndef KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_
#define KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converters/planning/loss_curve.h"
#include "converters/planning/plan.h"

namespace kinglet {

// A loss that was measured, the standard error of that, and the squared error of the weights.
struct NoisyLoss {
  double loss = 0, standard_error = 0, squared_error = 0;
};
// Better estimates of the losses of one tensor under changes of one kind. The loss grows about as
// the squared error, with a factor that all points together give (weighted least squares through
// 0); each estimate is the mean of its measurement and of that, weighted by how sure they are: what
// the factor gives is taken to be wrong by half of it or, if that is more, of what was measured.
std::vector<double> SteadiedLosses(const std::vector<NoisyLoss>& points);

// What a change is taken to cost in a model that has others too. Losses add up while they are
// small; one that changes its tensor much costs more beside others than alone.
double LossAmongOthers(double alone, double squared_error);

class GroupLosses {
 public:
  // REQUIRES: the record outlives this.
  GroupLosses(const SensitivityRecord& record, size_t group);

  const std::string& name() const { return group_->name; }
  bool has_sparsities() const { return sparsities_.points().size() > 1; }
  const LossCurve& sparsities() const { return sparsities_; }  // alone
  const std::vector<int>& bits() const { return bits_; }       // ascending
  const std::vector<MeasuredChange>& codes() const { return codes_; }
  // The share of zeros when quantised to so many bits; none: as floats.
  double ZerosAt(std::optional<int> bits) const;
  // Among others, also of codes.
  double LossOf(std::optional<double> sparsity, std::optional<int> bits) const;
  double LossOfCodes(const MeasuredChange& change) const;
  // Bytes in the file: all entries, or a mask and those that are not zero; and the scales.
  double BytesOf(std::optional<double> sparsity, std::optional<int> bits) const;
  // Operations by micronet-2019 for each share of the entries that becomes zero; below 0.
  double micronet_slope() const { return micronet_slope_; }

 private:
  struct AtBits {
    double loss = 0, zeros = 0, scale_bytes = 0;
  };

  const MeasuredGroup* group_;
  double baseline_;
  double zeros_;
  LossCurve sparsities_, among_others_;
  std::map<int, AtBits> at_bits_;
  std::vector<int> bits_;
  std::vector<MeasuredChange> codes_;
  double micronet_slope_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_
