#include "converters/golden.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/input_file.h"
#include "converters/quoted.h"
#include "converters/token_file.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// The whole of `text` as a number.
template <class Number>
bool Parse(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

// 17 significant digits: a double as it is.
std::string Exact(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

// One line's value; its position is at least `least`.
Result<GoldenValue> ParseLine(std::string_view line, const std::string& where,
                              std::span<const uint32_t> ids, uint64_t least) {
  const auto refuse = [&](const std::string& expected, std::string_view found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", where, expected,
                           QuotedName(found));
  };
  const size_t first = line.find('\t');
  const size_t second = first == line.npos ? first : line.find('\t', first + 1);
  if (second == line.npos) return refuse("position, id and value with tabs between them", line);
  GoldenValue value;
  const std::string_view position = line.substr(0, first);
  if (!Parse(position, value.position) || value.position < least || value.position >= ids.size()) {
    return refuse("a position from " + std::to_string(least) + " and below the " +
                      std::to_string(ids.size()) + " ids",
                  position);
  }
  const std::string_view id = line.substr(first + 1, second - first - 1);
  if (!Parse(id, value.id) || value.id != ids[value.position]) {
    return refuse("id " + std::to_string(ids[value.position]) + " as in the ids", id);
  }
  const std::string_view number = line.substr(line.rfind('\t') + 1);
  if (!Parse(number, value.log_probability) || !std::isfinite(value.log_probability)) {
    return refuse("a finite log-probability in the last field", number);
  }
  return value;
}

// A stream in double precision.
Result<std::unique_ptr<Session>> StartSharp(std::shared_ptr<const ModelFile> file) {
  ModelOptions options;
  options.backend = "ref64";
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model,
                           Model::FromFile(std::move(file), options));
  return Session::Create(std::move(model));
}

}  // namespace

Result<GoldenFile> ReadGolden(const std::string& golden, const std::string& ids) {
  GoldenFile file;
  KINGLET_ASSIGN_OR_RETURN(file.ids, ReadIds(ids));
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(golden));
  std::string_view rest = text;
  uint64_t least = 0;
  for (uint64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string where = golden + ", line " + std::to_string(number);
    KINGLET_ASSIGN_OR_RETURN(const GoldenValue value, ParseLine(line, where, file.ids, least));
    least = value.position + 1;
    file.values.push_back(value);
  }
  if (!file.values.empty()) return file;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", golden, "at least one line",
                         "an empty file");
}

Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file, const GoldenFile& golden,
                                  double tolerance) {
  const uint64_t first = FirstPredicted(file->description());
  if (!golden.values.empty() && golden.values.front().position < first) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", "position 0",
                           "none, as the model has no start token", "one");
  }
  const std::vector<uint32_t> stream = ScoredStream(file->description(), golden.ids);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, StartSharp(std::move(file)));
  GoldenReplay replay;
  for (const GoldenValue& value : golden.values) {
    while (session->position() < value.position + 1 - first) {
      KINGLET_RETURN_IF_ERROR(session->StepToken(stream[session->position()]));
    }
    KINGLET_ASSIGN_OR_RETURN(const double found, session->LogProbability(value.id));
    const double difference = std::fabs(found - value.log_probability);
    // Written so that NaN fails.
    if (!(difference <= tolerance)) {
      return Status::Refusal(
          KINGLET_MISMATCH, "golden values",
          "position " + std::to_string(value.position) + ", id " + std::to_string(value.id),
          Exact(value.log_probability) + " within " + Exact(tolerance), Exact(found));
    }
    replay.largest_difference = std::max(replay.largest_difference, difference);
    ++replay.positions;
  }
  return replay;
}

GoldenFile AsGoldenFile(const GoldenVector& vector) {
  GoldenFile golden;
  golden.ids = vector.ids;
  const size_t first = vector.ids.size() - vector.log_probabilities.size();
  for (size_t i = 0; i < vector.log_probabilities.size(); ++i) {
    golden.values.push_back({first + i, vector.ids[first + i], vector.log_probabilities[i]});
  }
  return golden;
}

Result<GoldenVector> RecomputeGolden(std::shared_ptr<const ModelFile> file,
                                     const GoldenVector& golden) {
  const uint64_t first = FirstPredicted(file->description());
  const std::vector<uint32_t> stream = ScoredStream(file->description(), golden.ids);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, StartSharp(std::move(file)));
  GoldenVector recomputed = golden;
  for (size_t i = 0; i < recomputed.log_probabilities.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(stream[i]));
    KINGLET_ASSIGN_OR_RETURN(const double found, session->LogProbability(stream[i + 1]));
    if (!std::isfinite(found)) {
      return Status::Refusal(
          KINGLET_NOT_FINITE, "golden values",
          "position " + std::to_string(first + i) + ", id " + std::to_string(stream[i + 1]),
          "a finite log-probability", Exact(found));
    }
    // The logarithm of a certainty may round to just above 0.
    recomputed.log_probabilities[i] = std::min(found, 0.0);
  }
  return recomputed;
}

std::optional<GoldenVector> LeadingGolden(const GoldenFile& golden, uint64_t first,
                                          double tolerance) {
  constexpr size_t kIds = 64;
  GoldenVector vector;
  vector.tolerance = tolerance;
  for (const GoldenValue& value : golden.values) {
    if (value.position != first + vector.log_probabilities.size() || value.position >= kIds) break;
    // A float32 run may round a certainty to just above 0.
    vector.log_probabilities.push_back(std::min(value.log_probability, 0.0));
  }
  if (vector.log_probabilities.empty()) return std::nullopt;
  vector.ids.assign(
      golden.ids.begin(),
      golden.ids.begin() + static_cast<ptrdiff_t>(first + vector.log_probabilities.size()));
  return vector;
}

}  // namespace kinglet
