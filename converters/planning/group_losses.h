// The cost of the changes of one tensor or group: losses, estimated from measurements, and bytes.
#ifndef KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_
#define KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "converters/planning/loss_curve.h"
#include "converters/planning/plan.h"

namespace kinglet {

// A measured loss, its standard error, and the squared error of the weights.
struct NoisyLoss {
  double loss = 0, standard_error = 0, squared_error = 0;
};
// Better estimates of the losses of one tensor under changes of one kind. The loss grows about as
// the squared error, with a factor fitted to all points (weighted least squares through 0). Each
// estimate is the mean of the measured loss and of the loss that the factor predicts, weighted by
// their errors. The error of the prediction is taken to be half of the larger of the two losses.
std::vector<double> SteadiedLosses(const std::vector<NoisyLoss>& points);

// The estimated loss of a change in a model that has other changes too. Losses add up while they
// are small; a change of large squared error costs more together with others than alone.
double LossAmongOthers(double alone, double squared_error);

class GroupLosses {
 public:
  // REQUIRES: the record outlives the object.
  GroupLosses(const SensitivityRecord& record, size_t group);

  const std::string& name() const { return group_->name; }
  bool has_sparsities() const { return sparsities_.points().size() > 1; }
  const LossCurve& sparsities() const { return sparsities_; }  // alone
  const std::vector<int>& bits() const { return bits_; }       // ascending
  const std::vector<MeasuredChange>& codes() const { return codes_; }
  // The fraction of zeros when quantised to `bits`; nullopt: as floats.
  double ZerosAt(std::optional<int> bits) const;
  // The loss among other changes; LossOfCodes likewise.
  double LossOf(std::optional<double> sparsity, std::optional<int> bits) const;
  double LossOfCodes(const MeasuredChange& change) const;
  const std::vector<MeasuredChange>& ranks() const { return ranks_; }
  // Of both factors, which are quantised together.
  double LossOfRank(const MeasuredChange& change, std::optional<int> bits) const;
  double BytesOfRank(const MeasuredChange& change, std::optional<int> bits) const;
  // Bytes of codes whose codebook is quantised to `bits`, if given.
  double BytesOfCodes(const MeasuredChange& change, std::optional<int> bits) const;
  // Bytes in the file: all entries, or a mask and the non-zero entries; and the scales.
  double BytesOf(std::optional<double> sparsity, std::optional<int> bits) const;
  // The change of operations by micronet-2019 if all entries became zero; below 0. Proportional to
  // the fraction of entries that become zero.
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
  std::vector<MeasuredChange> codes_, ranks_;
  double micronet_slope_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_GROUP_LOSSES_H_
