#include "converters/passes/summed_codes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "converters/passes/nearest.h"
#include "converters/splitmix.h"
#include "converters/thread_shares.h"
#include "format/limits.h"

namespace kinglet {
namespace {

Status CheckSummed(std::span<const float> values, const Shape& shape,
                   const SumQuantisation& options) {
  const auto refuse = [](const char* where, const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "cannot quantise to sums", where, expected,
                           found);
  };
  if (shape.size() != 2 || Count(shape) == 0) {
    return refuse("shape", "a matrix that is not empty", ShapeText(shape));
  }
  if (values.size() != Count(shape)) {
    return refuse("values", ShapeText(shape) + " entries", std::to_string(values.size()));
  }
  if (options.positions == 0 || options.positions > kMaxPositions) {
    return refuse("positions", "1 to " + std::to_string(kMaxPositions),
                  std::to_string(options.positions));
  }
  const uint64_t max_choices = std::min<uint64_t>(Rows(shape), kMaxDimension / options.positions);
  if (options.choices == 0 || options.choices > max_choices) {
    return refuse("choices", "1 to " + std::to_string(max_choices),
                  std::to_string(options.choices));
  }
  return {};
}

// The rows minus the code vectors chosen so far, and the table of the code vectors.
class Residual {
 public:
  Residual(std::span<const float> values, const Shape& shape, const SumQuantisation& options)
      : options_(options),
        rows_(Rows(shape)),
        residuals_(values.begin(), values.end()),
        threads_(options.clustering.threads) {
    table_.combine = Combine::kSum;
    table_.rows = rows_;
    table_.positions = options.positions;
    table_.length = Cols(shape);
    table_.pools.assign(options.positions, static_cast<uint32_t>(options.choices));
    table_.codebook.resize(options.positions * options.choices * table_.length);
    table_.codes.resize(rows_ * options.positions);
  }

  Status FindFirstCodes() {
    SplitMix64 seeds(options_.clustering.seed);
    for (uint64_t position = 0; position < options_.positions; ++position) {
      KMeansOptions clustering = options_.clustering;
      clustering.seed = seeds.Next();
      clustering.progress = nullptr;
      if (options_.progress) {
        clustering.progress = [&](const KMeansProgress& step) {
          options_.progress(position, step);
        };
      }
      KINGLET_ASSIGN_OR_RETURN(const Clustering found,
                               KMeans(Vectors(), options_.choices, {}, clustering));
      std::copy(found.centroids.begin(), found.centroids.end(), Vector(position, 0));
      for (uint64_t row = 0; row < rows_; ++row) Code(row, position) = found.codes[row];
      AddCodeVectors(position, -1);
    }
    return {};
  }

  void Sweep() {
    double error = Error();
    for (uint64_t sweep = 0; sweep < options_.sweeps; ++sweep) {
      for (uint64_t position = 0; position < options_.positions; ++position) ChooseAgain(position);
      const double next = Error();
      if (error - next <= options_.clustering.tolerance * error) return;
      error = next;
    }
  }

  CodedTable TakeTable() { return std::move(table_); }

 private:
  VectorsView Vectors() const { return {residuals_.data(), rows_, table_.length, table_.length}; }
  float* Vector(uint64_t position, uint64_t choice) {
    return table_.codebook.data() + (position * options_.choices + choice) * table_.length;
  }
  uint32_t& Code(uint64_t row, uint64_t position) {
    return table_.codes[row * options_.positions + position];
  }

  void ChooseAgain(uint64_t position) {
    AddCodeVectors(position, 1);
    std::vector<uint32_t> codes(rows_);
    const std::span<const float> vectors(Vector(position, 0), options_.choices * table_.length);
    NearestCentroids(vectors, options_.choices, table_.length)
        .Find(residuals_.data(), codes, threads_);
    const std::vector<float> means =
        MeansOfClusters(Vectors(), codes, {}, options_.choices, threads_);
    std::copy(means.begin(), means.end(), Vector(position, 0));
    for (uint64_t row = 0; row < rows_; ++row) Code(row, position) = codes[row];
    AddCodeVectors(position, -1);
  }

  void AddCodeVectors(uint64_t position, float sign) {
    RunRanges(rows_, threads_, [&](uint64_t first, uint64_t end) {
      for (uint64_t row = first; row < end; ++row) {
        const float* vector = Vector(position, Code(row, position));
        float* residual = residuals_.data() + row * table_.length;
        for (uint64_t i = 0; i < table_.length; ++i) residual[i] += sign * vector[i];
      }
    });
  }

  double Error() const {
    double sum = 0;
    for (const float value : residuals_) sum += double{value} * double{value};
    return sum;
  }

  const SumQuantisation& options_;
  uint64_t rows_;
  std::vector<float> residuals_;  // [rows, length]
  size_t threads_;
  CodedTable table_;
};

}  // namespace

Result<CodedTable> QuantiseToSums(std::span<const float> values, const Shape& shape,
                                  const SumQuantisation& options) {
  KINGLET_RETURN_IF_ERROR(CheckSummed(values, shape, options));
  Residual residual(values, shape, options);
  KINGLET_RETURN_IF_ERROR(residual.FindFirstCodes());
  residual.Sweep();
  return residual.TakeTable();
}

}  // namespace kinglet
