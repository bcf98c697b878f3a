#include "converters/passes/dpq.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "converters/sources/entries.h"
#include "converters/thread_shares.h"

namespace kinglet {
namespace {

constexpr char kDpq[] = "dpq";
constexpr double kNearTie = 1e-6;

std::span<const float> ValuesOf(const DpqTraining& training) {
  return training.values.empty() ? training.keys : training.values;
}

Status CheckDpqTraining(const DpqTraining& training) {
  KINGLET_RETURN_IF_ERROR(CheckCount(kDpq, "words", training.words));
  KINGLET_RETURN_IF_ERROR(CheckCount(kDpq, "positions", training.positions));
  KINGLET_RETURN_IF_ERROR(CheckCount(kDpq, "choices", training.choices));
  KINGLET_RETURN_IF_ERROR(CheckCount(kDpq, "key length", training.key_length));
  KINGLET_RETURN_IF_ERROR(CheckCount(kDpq, "value length", training.value_length));
  if (training.values.empty() && training.value_length != training.key_length) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, kDpq, "value length",
                           std::to_string(training.key_length) + ", as values are the keys",
                           std::to_string(training.value_length));
  }
  const uint64_t subspaces = training.shared ? 1 : training.positions;
  KINGLET_RETURN_IF_ERROR(CheckArray(
      kDpq, "query", {training.words, training.positions, training.key_length}, training.query));
  KINGLET_RETURN_IF_ERROR(
      CheckArray(kDpq, "keys", {subspaces, training.choices, training.key_length}, training.keys));
  KINGLET_RETURN_IF_ERROR(CheckArray(
      kDpq, "values", {subspaces, training.choices, training.value_length}, ValuesOf(training)));

  Shape statistics;
  if (training.batch_norm == DpqTraining::BatchNorm::kPerChoice) statistics = {training.choices};
  if (training.batch_norm == DpqTraining::BatchNorm::kPerResponse) {
    statistics = {training.positions, training.choices};
  }
  KINGLET_RETURN_IF_ERROR(CheckArray(kDpq, "batch norm mean", statistics, training.mean));
  KINGLET_RETURN_IF_ERROR(CheckArray(kDpq, "batch norm variance", statistics, training.variance));
  if (statistics.empty()) return {};
  return CheckVariances(kDpq, training.variance, training.epsilon);
}

// What all responses need beside the query, computed once.
struct Prepared {
  std::vector<double> key_squares;      // [subspaces * choices]
  std::vector<double> mean, deviation;  // [1 or positions, choices]; empty: no batch norm
};

Prepared Prepare(const DpqTraining& training) {
  Prepared prepared;
  for (size_t first = 0; first < training.keys.size(); first += training.key_length) {
    double square = 0;
    for (const float entry : training.keys.subspan(first, training.key_length)) {
      square += static_cast<double>(entry) * entry;
    }
    prepared.key_squares.push_back(square);
  }
  prepared.mean.assign(training.mean.begin(), training.mean.end());
  for (const float variance : training.variance) {
    prepared.deviation.push_back(std::sqrt(variance + training.epsilon));
  }
  return prepared;
}

// Computes the codes of one word. True if two responses nearly tie at one of its positions.
bool AssignWord(const DpqTraining& training, const Prepared& prepared, const float* query,
                uint32_t* codes) {
  const bool euclidean = training.response == DpqTraining::Response::kEuclidean;
  const bool per_response = training.batch_norm == DpqTraining::BatchNorm::kPerResponse;
  const uint64_t length = training.key_length;
  bool near_tie = false;
  for (uint64_t position = 0; position < training.positions; ++position) {
    const float* q = query + position * length;
    double square = 0;
    for (uint64_t i = 0; i < length; ++i) square += static_cast<double>(q[i]) * q[i];
    const uint64_t subspace = training.shared ? 0 : position;
    double best = -INFINITY, second = -INFINITY;
    for (uint64_t choice = 0; choice < training.choices; ++choice) {
      const uint64_t row = subspace * training.choices + choice;
      const float* key = training.keys.data() + row * length;
      double response = 0;
      for (uint64_t i = 0; i < length; ++i) response += static_cast<double>(q[i]) * key[i];
      if (euclidean) response = 2 * response - square - prepared.key_squares[row];
      if (!prepared.mean.empty()) {
        const uint64_t at = (per_response ? position * training.choices : 0) + choice;
        response = (response - prepared.mean[at]) / prepared.deviation[at];
      }
      if (response > best) {
        second = best;
        best = response;
        codes[position] = static_cast<uint32_t>(choice);
      } else {
        second = std::max(second, response);
      }
    }
    const double larger = std::max(std::fabs(best), std::fabs(second));
    near_tie = near_tie || (training.choices > 1 && best - second <= kNearTie * larger);
  }
  return near_tie;
}

}  // namespace

Result<DpqCodes> AssignDpqCodes(const DpqTraining& training, size_t threads) {
  KINGLET_RETURN_IF_ERROR(CheckDpqTraining(training));
  const Prepared prepared = Prepare(training);
  const std::span<const float> values = ValuesOf(training);
  DpqCodes result;
  CodedTable& table = result.table;
  table.combine = training.additive ? Combine::kMean : Combine::kConcatenate;
  table.rows = training.words;
  table.positions = training.positions;
  table.length = training.value_length;
  table.pools.assign(training.shared ? 1 : training.positions,
                     static_cast<uint32_t>(training.choices));
  table.codebook.assign(values.begin(), values.end());
  table.codes.resize(training.words * training.positions);

  std::atomic<uint64_t> near_ties = 0;
  RunRanges(training.words, threads, [&](uint64_t first, uint64_t end) {
    uint64_t count = 0;
    for (uint64_t word = first; word < end; ++word) {
      const uint64_t at = word * training.positions;
      const float* query = training.query.data() + at * training.key_length;
      if (AssignWord(training, prepared, query, table.codes.data() + at)) ++count;
    }
    near_ties += count;
  });
  result.near_ties = near_ties;
  return result;
}

}  // namespace kinglet
