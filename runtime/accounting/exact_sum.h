// Sums of many doubles that are good to the last digit shown.
#ifndef KINGLET_RUNTIME_ACCOUNTING_EXACT_SUM_H_
#define KINGLET_RUNTIME_ACCOUNTING_EXACT_SUM_H_

#include <cmath>

namespace kinglet {

// A sum whose rounding errors are carried along (Neumaier 1974), so that the mean of any number of
// tokens is good to the last digit shown.
class ExactSum {
 public:
  void Add(double value) {
    const double sum = sum_ + value;
    if (std::isfinite(sum)) {
      correction_ +=
          std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    }
    sum_ = sum;
  }
  double Value() const { return sum_ + correction_; }

 private:
  double sum_ = 0, correction_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_EXACT_SUM_H_
