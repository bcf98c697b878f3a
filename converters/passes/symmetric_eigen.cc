#include "converters/passes/symmetric_eigen.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/portable_functions.h"

namespace kinglet {
namespace {

// 8 partial sums, which GCC vectorises.
double DotOf(const double* a, const double* b, size_t size) {
  constexpr size_t kDotChains = 8;
  std::array<double, kDotChains> sums = {};
  size_t i = 0;
  for (; i + kDotChains <= size; i += kDotChains) {
    for (size_t chain = 0; chain < kDotChains; ++chain) sums[chain] += a[i + chain] * b[i + chain];
  }
  double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

void AddScaled(double factor, const double* from, double* to, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] += factor * from[i];
}

// A symmetric tridiagonal matrix with diagonal d and off-diagonal e: e[i] is at [i, i + 1]; the
// last e is 0.
struct Tridiagonal {
  std::vector<double> d, e;  // [size]
};

// matrix = Q * tridiagonal * Q^T. Q is the product of reflections H_k = I - scales[k] v_k v_k^T,
// whose v_k replaces row k of the matrix right of the diagonal.
Tridiagonal Reduce(std::vector<double>& matrix, size_t size, std::vector<double>& scales) {
  Tridiagonal reduced = {std::vector<double>(size), std::vector<double>(size)};
  scales.assign(size, 0.0);
  std::vector<double> w(size);
  for (size_t k = 0; k + 1 < size; ++k) {
    double* v = matrix.data() + k * size;  // entries k + 1 .. size - 1 count
    const size_t first = k + 1, length = size - first;
    reduced.e[k] = v[first];
    const double below = DotOf(v + first + 1, v + first + 1, length - 1);
    if (below == 0) continue;  // tridiagonal here already
    const double norm = std::sqrt(v[first] * v[first] + below);
    reduced.e[k] = v[first] > 0 ? -norm : norm;
    v[first] -= reduced.e[k];
    const double scale = 2 / (v[first] * v[first] + below);
    scales[k] = scale;

    // w = scale * A v, A being the rest of the matrix, of which the upper triangle is kept.
    std::fill(w.begin(), w.end(), 0.0);
    for (size_t i = first; i < size; ++i) {
      const double* row = matrix.data() + i * size;
      w[i] += row[i] * v[i] + DotOf(row + i + 1, v + i + 1, size - i - 1);
      AddScaled(v[i], row + i + 1, w.data() + i + 1, size - i - 1);
    }
    for (size_t i = first; i < size; ++i) w[i] *= scale;
    // H A H = A - v w^T - w v^T, once w has lost its part along v.
    const double along = scale / 2 * DotOf(w.data() + first, v + first, length);
    AddScaled(-along, v + first, w.data() + first, length);
    for (size_t i = first; i < size; ++i) {
      double* row = matrix.data() + i * size;
      for (size_t j = i; j < size; ++j) row[j] -= v[i] * w[j] + w[i] * v[j];
    }
  }
  for (size_t k = 0; k < size; ++k) reduced.d[k] = matrix[k * size + k];
  return reduced;
}

// Q^T, the product of all reflections from the last to the first.
std::vector<double> ProductOf(const std::vector<double>& reflections,
                              const std::vector<double>& scales, size_t size) {
  std::vector<double> product(size * size);
  for (size_t i = 0; i < size; ++i) product[i * size + i] = 1;
  for (size_t k = size; k-- > 0;) {
    if (scales[k] == 0) continue;
    const size_t first = k + 1, length = size - first;
    const double* v = reflections.data() + k * size + first;
    for (size_t i = first; i < size; ++i) {
      double* row = product.data() + i * size + first;
      AddScaled(-scales[k] * DotOf(row, v, length), v, row, length);
    }
  }
  return product;
}

// Rotates rows i and i + 1.
void Rotate(double cosine, double sine, size_t i, size_t size, std::vector<double>& rows) {
  double* a = rows.data() + i * size;
  double* b = a + size;
  for (size_t k = 0; k < size; ++k) {
    const double old = a[k];
    a[k] = cosine * old - sine * b[k];
    b[k] = sine * old + cosine * b[k];
  }
}

// One implicit QL iteration on the submatrix first .. last, whose e are not 0: a shift near the
// eigenvalue at `first`, and a chain of rotations from the submatrix's end to its start. `rows` get
// the same rotations.
void Step(size_t first, size_t last, size_t size, Tridiagonal& t, std::vector<double>& rows) {
  const double half = (t.d[first + 1] - t.d[first]) / (2 * t.e[first]);
  const double shift_to = half + std::copysign(portable::Hypot(half, 1.0), half);
  double bulge = t.d[last] - t.d[first] + t.e[first] / shift_to;
  double sine = 1, cosine = 1, moved = 0;
  for (size_t i = last; i-- > first;) {
    const double f = sine * t.e[i], b = cosine * t.e[i];
    const double norm = portable::Hypot(f, bulge);
    t.e[i + 1] = norm;
    if (norm == 0) {  // the submatrix splits here
      t.d[i + 1] -= moved;
      t.e[last] = 0;
      return;
    }
    sine = f / norm;
    cosine = bulge / norm;
    const double rest = t.d[i + 1] - moved;
    const double turn = (t.d[i] - rest) * sine + 2 * cosine * b;
    moved = sine * turn;
    t.d[i + 1] = rest + moved;
    bulge = cosine * turn - b;
    Rotate(cosine, sine, i, size, rows);
  }
  t.d[first] -= moved;
  t.e[first] = bulge;
  t.e[last] = 0;
}

// Makes e zero, so that d are the eigenvalues. Returns false if the iterations do not converge.
bool Diagonalise(size_t size, Tridiagonal& t, std::vector<double>& rows) {
  constexpr int kMostSteps = 60;  // two or so are usual
  const auto couples = [&t](size_t i) {
    const double diagonal = std::fabs(t.d[i]) + std::fabs(t.d[i + 1]);
    return !(std::fabs(t.e[i]) <= std::numeric_limits<double>::epsilon() * diagonal);
  };
  for (size_t first = 0; first < size; ++first) {
    for (int steps = 0;; ++steps) {
      size_t last = first;
      while (last + 1 < size && couples(last)) ++last;
      if (last == first) break;
      if (steps == kMostSteps) return false;
      Step(first, last, size, t, rows);
    }
  }
  return true;
}

}  // namespace

Result<SymmetricEigen> DecomposeSymmetric(std::vector<double> matrix, size_t size) {
  std::vector<double> scales;
  Tridiagonal reduced = Reduce(matrix, size, scales);
  std::vector<double> rows = ProductOf(matrix, scales, size);
  if (!Diagonalise(size, reduced, rows)) {
    return Status(KINGLET_INTERNAL, "eigenvalues: the iterations did not converge");
  }
  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return reduced.d[a] > reduced.d[b]; });
  SymmetricEigen found;
  matrix.clear();
  for (const size_t i : order) {
    found.values.push_back(reduced.d[i]);
    const auto row = rows.begin() + static_cast<ptrdiff_t>(i * size);
    matrix.insert(matrix.end(), row, row + static_cast<ptrdiff_t>(size));
  }
  found.vectors = std::move(matrix);
  return found;
}

}  // namespace kinglet
