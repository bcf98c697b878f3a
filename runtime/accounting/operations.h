// Counts of arithmetic operations. docs/ACCOUNTING.md defines an operation.
#ifndef KINGLET_RUNTIME_ACCOUNTING_OPERATIONS_H_
#define KINGLET_RUNTIME_ACCOUNTING_OPERATIONS_H_

#include <cstdint>

namespace kinglet {

// A count as a term of a tally.
inline double Real(uint64_t count) { return static_cast<double>(count); }

// The operations of one token or one query, or a mean over many.
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

// --- the operations of common parts

// Others that round a float to a code: two comparisons of the clamp, a division, a rounding.
inline constexpr double kRoundToCode = 4;
// Multiplications that convert an integer sum to a float: the two scales, then the sum
// (docs/NUMERICS.md, rule 3).
inline constexpr double kRescale = 2;

// `outputs` sums of `inputs` products each.
inline OperationTally DotProducts(double inputs, double outputs) {
  return {inputs * outputs, (inputs - 1) * outputs, 0};
}

// exp(x - max) of n floats and their sum: n - 1 comparisons for the maximum, n differences, n
// exponentials, n - 1 sums.
inline OperationTally Exponentials(double n) { return {0, 2 * n - 1, 2 * n - 1}; }

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_OPERATIONS_H_
