#include "converters/passes/dpq.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "converters/checkpoints/entries.h"
#include "converters/checkpoints/quoted.h"
#include "converters/thread_shares.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

constexpr char kDpq[] = "dpq";
constexpr double kUnitRoundoff = 0x1p-24;  // of float32

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

// Values that all responses need in addition to the query, computed once.
struct Prepared {
  std::vector<double> key_squares;      // [subspaces * choices]
  std::vector<double> key_norms;        // their roots
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
    prepared.key_norms.push_back(std::sqrt(square));
  }
  prepared.mean.assign(training.mean.begin(), training.mean.end());
  for (const float variance : training.variance) {
    prepared.deviation.push_back(std::sqrt(variance + training.epsilon));
  }
  return prepared;
}

// The most by which float32 arithmetic may miss a response before the batch norm: a dot product of
// n terms misses at most n unit roundoffs of the factors' magnitudes, of which the product of their
// norms, `query` and `key`, is a bound; the few operations after it miss one each.
double ErrorBound(const DpqTraining& training, double query, double key) {
  const bool euclidean = training.response == DpqTraining::Response::kEuclidean;
  const double magnitude = euclidean ? (query + key) * (query + key) : query * key;
  return (static_cast<double>(training.key_length) + 2) * kUnitRoundoff * magnitude;
}

// How near to each other the choices of some words were.
struct Nearness {
  uint64_t codes = 0, words = 0;
  double smallest_gap = INFINITY;
};

// Computes the codes of one word.
void AssignWord(const DpqTraining& training, const Prepared& prepared, const float* query,
                uint32_t* codes, Nearness& nearness) {
  constexpr double kNormOperations = 4;  // subtract, divide, the deviation's root and its sum
  const bool euclidean = training.response == DpqTraining::Response::kEuclidean;
  const bool per_response = training.batch_norm == DpqTraining::BatchNorm::kPerResponse;
  const uint64_t length = training.key_length;
  uint64_t near_codes = 0;
  for (uint64_t position = 0; position < training.positions; ++position) {
    const float* q = query + position * length;
    double square = 0;
    for (uint64_t i = 0; i < length; ++i) square += static_cast<double>(q[i]) * q[i];
    const double norm = std::sqrt(square);
    const uint64_t subspace = training.shared ? 0 : position;
    // The largest response, how far float32 may be from it, and the largest value that float32 may
    // have for another response.
    double best = -INFINITY, best_error = 0, second = -INFINITY, rival = -INFINITY;
    for (uint64_t choice = 0; choice < training.choices; ++choice) {
      const uint64_t row = subspace * training.choices + choice;
      const float* key = training.keys.data() + row * length;
      double response = 0;
      for (uint64_t i = 0; i < length; ++i) response += static_cast<double>(q[i]) * key[i];
      if (euclidean) response = 2 * response - square - prepared.key_squares[row];
      double error = ErrorBound(training, norm, prepared.key_norms[row]);
      if (!prepared.mean.empty()) {
        const uint64_t at = (per_response ? position * training.choices : 0) + choice;
        const double mean = prepared.mean[at], deviation = prepared.deviation[at];
        const double magnitude = std::fabs(response) + std::fabs(mean);
        error = (error + kNormOperations * kUnitRoundoff * magnitude) / deviation;
        response = (response - mean) / deviation;
      }
      if (response > best) {
        second = best;
        rival = std::max(rival, best + best_error);
        best = response;
        best_error = error;
        codes[position] = static_cast<uint32_t>(choice);
      } else {
        second = std::max(second, response);
        rival = std::max(rival, response + error);
      }
    }
    if (rival >= best - best_error) ++near_codes;
    nearness.smallest_gap = std::min(nearness.smallest_gap, best - second);
  }
  nearness.codes += near_codes;
  if (near_codes > 0) ++nearness.words;
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

  std::mutex mutex;
  RunRanges(training.words, threads, [&](uint64_t first, uint64_t end) {
    Nearness nearness;
    for (uint64_t word = first; word < end; ++word) {
      const uint64_t at = word * training.positions;
      const float* query = training.query.data() + at * training.key_length;
      AssignWord(training, prepared, query, table.codes.data() + at, nearness);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    result.near_codes += nearness.codes;
    result.near_words += nearness.words;
    result.smallest_gap = std::min(result.smallest_gap, nearness.smallest_gap);
  });
  return result;
}

std::string NearCodesNote(const DpqCodes& codes, const std::string& query) {
  if (codes.near_codes == 0) return "";
  return QuotedName(query) + ": " + std::to_string(codes.near_codes) + " of " +
         std::to_string(codes.table.codes.size()) + " codes, of " +
         std::to_string(codes.near_words) +
         " words, are so near another choice that float32 arithmetic might have decided otherwise; "
         "the smallest gap is " +
         NumberText(codes.smallest_gap);
}

}  // namespace kinglet
