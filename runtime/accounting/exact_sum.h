// Sums of many doubles without visible rounding errors.
#ifndef KINGLET_RUNTIME_ACCOUNTING_EXACT_SUM_H_
#define KINGLET_RUNTIME_ACCOUNTING_EXACT_SUM_H_

#include <cmath>

namespace kinglet {

// A sum that carries its rounding error along (Neumaier 1974), so that the mean over any number of
// tokens is right to the last digit that is printed.
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
