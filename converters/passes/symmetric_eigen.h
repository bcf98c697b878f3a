// Eigenvalues and eigenvectors of a symmetric matrix: Householder reflections make it tridiagonal,
// implicit QL iterations with Wilkinson's shift make the tridiagonal matrix diagonal (Golub & Van
// Loan, "Matrix Computations", 8.3).
#ifndef KINGLET_CONVERTERS_PASSES_SYMMETRIC_EIGEN_H_
#define KINGLET_CONVERTERS_PASSES_SYMMETRIC_EIGEN_H_

#include <cstddef>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

struct SymmetricEigen {
  std::vector<double> values;   // [size], falling
  std::vector<double> vectors;  // [size, size]: row i is the unit eigenvector of values[i]
};

// Decomposes matrix [size, size], row-major, of which only the entries on and above the diagonal
// are read. Cost: about 6 size^3 multiply-adds, on one thread; memory: the matrix twice. Errors:
// KINGLET_INTERNAL if the iterations do not converge, as with entries that are not finite.
// REQUIRES: size >= 1.
Result<SymmetricEigen> DecomposeSymmetric(std::vector<double> matrix, size_t size);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_SYMMETRIC_EIGEN_H_
