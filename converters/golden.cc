#include "converters/golden.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/pair_file.h"
#include "converters/texts/token_file.h"
#include "format/input_file.h"
#include "runtime/model.h"
#include "runtime/scored_stream.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

// Parses all of `text` as a number. Returns whether it is one.
template <class Number>
bool ReadNumber(std::string_view text, Number& number) {
  const std::optional<Number> parsed = ParseNumber<Number>(text);
  if (parsed) number = *parsed;
  return parsed.has_value();
}

// 17 significant digits, which identify a double.
std::string Exact(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", number);
  return text;
}

// Parses one line. Refuses positions below `first_position`.
Result<GoldenValue> ParseLine(std::string_view line, const std::string& where,
                              std::span<const uint32_t> ids, uint64_t first_position) {
  const auto refuse = [&](const std::string& expected, std::string_view found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", where, expected,
                           QuotedName(found));
  };
  const size_t first = line.find('\t');
  const size_t second = first == line.npos ? first : line.find('\t', first + 1);
  if (second == line.npos) return refuse("position, id and value with tabs between them", line);
  GoldenValue value;
  const std::string_view position = line.substr(0, first);
  if (!ReadNumber(position, value.position) || value.position < first_position ||
      value.position >= ids.size()) {
    return refuse("a position from " + std::to_string(first_position) + " and below the " +
                      std::to_string(ids.size()) + " ids",
                  position);
  }
  const std::string_view id = line.substr(first + 1, second - first - 1);
  if (!ReadNumber(id, value.id) || value.id != ids[value.position]) {
    return refuse("id " + std::to_string(ids[value.position]) + " as in the ids", id);
  }
  const std::string_view number = line.substr(line.rfind('\t') + 1);
  if (!ReadNumber(number, value.log_probability) || !std::isfinite(value.log_probability)) {
    return refuse("a finite log-probability in the last field", number);
  }
  return value;
}

// Calls Status parse(line, where) for each line of a file.
template <class Parse>
Status ForEachLine(const std::string& path, const Parse& parse) {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  uint64_t number = 0;
  for (const std::string_view line : LinesOf(text)) {
    KINGLET_RETURN_IF_ERROR(parse(line, path + ", line " + std::to_string(++number)));
  }
  if (!text.empty()) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", path, "at least one line",
                         "an empty file");
}

// A session that computes in double precision.
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
  KINGLET_RETURN_IF_ERROR(
      ForEachLine(golden, [&](std::string_view line, const std::string& where) -> Status {
        const uint64_t first_position = file.values.empty() ? 0 : file.values.back().position + 1;
        KINGLET_ASSIGN_OR_RETURN(const GoldenValue value,
                                 ParseLine(line, where, file.ids, first_position));
        file.values.push_back(value);
        return {};
      }));
  return file;
}

namespace {

// Reads lines "stream<TAB>position<TAB>id<TAB>..<TAB>value" about `streams`, in order. `one` and
// `all` name a stream and the streams in messages. Returns the streams with values.
Result<std::vector<GoldenFile>> ReadGoldenOfStreams(const std::string& golden,
                                                    std::vector<GoldenFile> streams,
                                                    const std::string& one,
                                                    const std::string& all) {
  uint64_t stream = 0;
  KINGLET_RETURN_IF_ERROR(
      ForEachLine(golden, [&](std::string_view line, const std::string& where) -> Status {
        const size_t tab = std::min(line.find('\t'), line.size());
        uint64_t index = 0;
        if (!ReadNumber(line.substr(0, tab), index) || index < stream || index >= streams.size()) {
          return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", where,
                                 one + " from " + std::to_string(stream) + " and below the " +
                                     std::to_string(streams.size()) + " " + all,
                                 QuotedName(line.substr(0, tab)));
        }
        stream = index;
        GoldenFile& file = streams[index];
        const uint64_t first_position = file.values.empty() ? 0 : file.values.back().position + 1;
        KINGLET_ASSIGN_OR_RETURN(const GoldenValue value,
                                 ParseLine(line.substr(std::min(tab + 1, line.size())), where,
                                           file.ids, first_position));
        file.values.push_back(value);
        return {};
      }));
  std::erase_if(streams, [](const GoldenFile& file) { return file.values.empty(); });
  return streams;
}

}  // namespace

Result<std::vector<GoldenFile>> ReadGoldenPairs(const std::string& golden, const std::string& pairs,
                                                uint32_t start_token) {
  KINGLET_ASSIGN_OR_RETURN(std::vector<SentencePair> sentences, ReadPairs(pairs, start_token));
  std::vector<GoldenFile> streams;
  for (SentencePair& pair : sentences) {
    streams.push_back({std::move(pair.target), {}, std::move(pair.source)});
  }
  return ReadGoldenOfStreams(golden, std::move(streams), "a sentence", "pairs");
}

Result<std::vector<GoldenFile>> ReadGoldenTexts(const std::string& golden,
                                                std::span<const MaskedText> texts, uint32_t mask) {
  std::vector<GoldenFile> streams;
  for (const MaskedText& text : texts) streams.push_back({text.ids, {}, {}, text.segments, mask});
  return ReadGoldenOfStreams(golden, std::move(streams), "a line", "texts");
}

namespace {

// Adds one value to `replay`; refuses a difference beyond the tolerance.
Status Compare(const GoldenValue& value, double found, double tolerance, GoldenReplay& replay) {
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
  return {};
}

// A masked model reads the text again for each value.
Status ReplayText(const GoldenFile& golden, double tolerance, Session& session,
                  GoldenReplay& replay) {
  const MaskedText text = {golden.ids, golden.segments};
  for (const GoldenValue& value : golden.values) {
    KINGLET_ASSIGN_OR_RETURN(const double found,
                             MaskedLogProbability(text, value.position, *golden.mask, session));
    KINGLET_RETURN_IF_ERROR(Compare(value, found, tolerance, replay));
  }
  return {};
}

// Compares the values of one stream. REQUIRES: the session is at a stream's start.
Status ReplayStream(const GoldenFile& golden, double tolerance, Session& session,
                    GoldenReplay& replay) {
  const ModelDescription& description = session.model().file().description();
  const uint64_t first = FirstPredicted(description);
  if (!golden.values.empty() && golden.values.front().position < first) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "golden values", "position 0",
                           "none, as the model has no start token", "one");
  }
  const std::vector<uint32_t> stream = ScoredStream(description, golden.ids);
  for (const GoldenValue& value : golden.values) {
    while (session.position() < value.position + 1 - first) {
      KINGLET_RETURN_IF_ERROR(session.StepToken(stream[session.position()]));
    }
    KINGLET_ASSIGN_OR_RETURN(const double found, session.LogProbability(value.id));
    KINGLET_RETURN_IF_ERROR(Compare(value, found, tolerance, replay));
  }
  return {};
}

// Starts a stream. Encodes the source, if there is one.
Status Begin(std::span<const uint32_t> source, Session& session) {
  return source.empty() ? session.Reset() : session.Encode(source);
}

}  // namespace

Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file, const GoldenFile& golden,
                                  double tolerance) {
  return ReplayGolden(std::move(file), {&golden, 1}, tolerance);
}

Result<GoldenReplay> ReplayGolden(std::shared_ptr<const ModelFile> file,
                                  std::span<const GoldenFile> streams, double tolerance) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, StartSharp(std::move(file)));
  GoldenReplay replay;
  for (const GoldenFile& golden : streams) {
    if (!golden.mask) KINGLET_RETURN_IF_ERROR(Begin(golden.source_ids, *session));
    const Status status = golden.mask ? ReplayText(golden, tolerance, *session, replay)
                                      : ReplayStream(golden, tolerance, *session, replay);
    if (status.ok()) continue;
    if (streams.size() == 1) return status;
    return Status(status.code(),
                  "stream " + std::to_string(&golden - streams.data()) + ": " + status.message());
  }
  return replay;
}

GoldenFile AsGoldenFile(const GoldenVector& vector) {
  GoldenFile golden;
  golden.ids = vector.ids;
  golden.source_ids = vector.source_ids;
  golden.segments = vector.segments;
  golden.mask = vector.mask;
  if (vector.mask) {
    for (size_t i = 0; i < vector.positions.size(); ++i) {
      const uint32_t position = vector.positions[i];
      golden.values.push_back({position, vector.ids[position], vector.log_probabilities[i]});
    }
    return golden;
  }
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
  KINGLET_RETURN_IF_ERROR(Begin(golden.source_ids, *session));
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
  constexpr size_t kIds = 64, kMasked = 16;
  GoldenVector vector;
  vector.tolerance = tolerance;
  vector.source_ids = golden.source_ids;
  if (golden.mask) {
    vector.ids = golden.ids;
    vector.segments = golden.segments;
    vector.mask = golden.mask;
    for (const GoldenValue& value : golden.values) {
      if (vector.positions.size() == kMasked) break;
      vector.positions.push_back(static_cast<uint32_t>(value.position));
      vector.log_probabilities.push_back(std::min(value.log_probability, 0.0));
    }
    return vector;
  }
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
