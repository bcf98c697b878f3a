#include "tools/tensor_differences.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include "format/row_reader.h"

namespace kinglet {
namespace {

// Frobenius norms, row by row, so that memory holds two rows.
struct Distance {
  double original = 0, difference = 0;  // squared
  bool equal = true;                    // in every bit

  double Relative() const {
    if (difference == 0) return 0;
    return original == 0 ? HUGE_VAL : std::sqrt(difference / original);
  }
};

Distance Between(const TensorView& first, const TensorView& second) {
  const RowReader a(first), b(second);
  std::vector<float> left(a.cols()), right(b.cols());
  Distance found;
  for (uint64_t row = 0; row < a.rows(); ++row) {
    a.Floats(row, left.data());
    b.Floats(row, right.data());
    for (size_t i = 0; i < left.size(); ++i) {
      const double error = double{right[i]} - double{left[i]};
      found.original += double{left[i]} * double{left[i]};
      found.difference += error * error;
      found.equal = found.equal && left[i] == right[i];
    }
  }
  return found;
}

bool SameCodes(const CodedView& first, const CodedView& second) {
  return first.scheme.combine == second.scheme.combine &&
         first.scheme.positions == second.scheme.positions &&
         first.scheme.pools == second.scheme.pools && first.seed == second.seed &&
         std::equal(first.codes.begin(), first.codes.end(), second.codes.begin(),
                    second.codes.end());
}

void CompareValues(const TensorView& first, const TensorView& second, TensorDifference& change) {
  if (first.shape != second.shape) return;
  if (first.coded() != nullptr && second.coded() != nullptr) {
    change.same = SameCodes(*first.coded(), *second.coded());
  } else if (first.coded() == nullptr && second.coded() == nullptr) {
    const Distance distance = Between(first, second);
    change.relative_error = distance.Relative();
    change.same = distance.equal && EncodingName(first) == EncodingName(second);
  }
}

}  // namespace

std::vector<TensorDifference> CompareTensors(const ModelFile& first, const ModelFile& second) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < second.tensors().size(); ++i) places[second.tensors()[i].name] = i;
  std::vector<TensorDifference> changes;
  std::vector<bool> met(second.tensors().size());
  for (size_t i = 0; i < first.tensors().size(); ++i) {
    const TensorView& tensor = first.tensors()[i];
    TensorDifference change{tensor.name, i, std::nullopt, std::nullopt, false};
    if (const auto found = places.find(tensor.name); found != places.end()) {
      change.second = found->second;
      met[found->second] = true;
      CompareValues(tensor, second.tensors()[found->second], change);
    }
    changes.push_back(std::move(change));
  }
  for (size_t i = 0; i < met.size(); ++i) {
    if (met[i]) continue;
    changes.push_back({second.tensors()[i].name, std::nullopt, i, std::nullopt, false});
  }
  return changes;
}

}  // namespace kinglet
