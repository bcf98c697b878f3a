// A number of arithmetic operations. docs/ACCOUNTING.md says what counts as one.
#ifndef KINGLET_RUNTIME_OPERATIONS_H_
#define KINGLET_RUNTIME_OPERATIONS_H_

namespace kinglet {

// Of one token or one query, or a mean over many.
struct OperationTally {
  double multiplications = 0;
  double additions = 0;  // and subtractions
  double others = 0;     // divisions, roots, exponentials, logarithms, comparisons, roundings

  double Total() const { return multiplications + additions + others; }
  OperationTally& operator+=(const OperationTally& more) {
    multiplications += more.multiplications;
    additions += more.additions;
    others += more.others;
    return *this;
  }
  OperationTally operator*(double factor) const {
    return {multiplications * factor, additions * factor, others * factor};
  }
  OperationTally operator/(double divisor) const {
    return {multiplications / divisor, additions / divisor, others / divisor};
  }
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_OPERATIONS_H_
