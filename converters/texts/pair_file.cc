#include "converters/texts/pair_file.h"

#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "converters/checkpoints/quoted.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "format/input_file.h"
#include "runtime/session.h"

namespace kinglet {
namespace {

constexpr std::string_view kSeparator = "|||";

Result<SentencePair> ParsePair(std::string_view line, const std::string& where,
                               uint32_t start_token) {
  const auto refuse = [&](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "pairs", where, expected, found);
  };
  const size_t at = line.find(kSeparator);
  if (at == line.npos) return refuse("source ids ||| target ids", QuotedName(line));
  SentencePair pair;
  KINGLET_ASSIGN_OR_RETURN(pair.source, ParseIds(line.substr(0, at), where + ", source"));
  KINGLET_ASSIGN_OR_RETURN(pair.target,
                           ParseIds(line.substr(at + kSeparator.size()), where + ", target"));
  if (pair.source.empty()) return refuse("at least one source id", "none");
  const std::string start = std::to_string(start_token);
  if (pair.target.empty() || pair.target[0] != start_token) {
    return refuse("a target that begins with the start token " + start,
                  pair.target.empty() ? "none" : std::to_string(pair.target[0]));
  }
  if (pair.target.size() == 1) {
    return refuse("at least one target id after the start token " + start, "none");
  }
  pair.target.erase(pair.target.begin());
  return pair;
}

}  // namespace

Result<std::vector<SentencePair>> ReadPairs(const std::string& path, uint32_t start_token) try {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  std::vector<SentencePair> pairs;
  for (const std::string_view line : LinesOf(text)) {
    const std::string where = InputName(path) + ", line " + std::to_string(pairs.size() + 1);
    KINGLET_ASSIGN_OR_RETURN(SentencePair pair, ParsePair(line, where, start_token));
    pairs.push_back(std::move(pair));
  }
  if (!pairs.empty()) return pairs;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "pairs", InputName(path), "at least one line",
                         "an empty file");
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "pairs", "memory for the pairs", "none left");
}

Status CheckPair(const SentencePair& pair, const Model& model) {
  const EncoderPlan& encoder = *model.plan().encoder;
  const auto refuse = [](const char* side, uint64_t positions, const char* whose, size_t found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "pairs", side,
                           "at most the " + (whose + std::to_string(positions)) + " positions",
                           std::to_string(found));
  };
  const auto positions = PositionsOf(model.file().description());
  if (positions && pair.target.size() > *positions) {
    return refuse("target", *positions, "decoder's ", pair.target.size());
  }
  if (pair.source.size() > encoder.window) {
    return refuse("source", encoder.window, "encoder's ", pair.source.size());
  }
  const auto check = [](const char* side, std::span<const uint32_t> ids, uint32_t size) -> Status {
    for (const uint32_t id : ids) {
      if (id < size) continue;
      return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "pairs", side,
                             "ids below " + std::to_string(size), std::to_string(id));
    }
    return {};
  };
  KINGLET_RETURN_IF_ERROR(check("source", pair.source, encoder.vocabulary_size));
  return check("target", pair.target, model.vocabulary_size());
}

Status FeedPair(const SentencePair& pair, Session& session,
                const std::function<Status(uint32_t id)>& expected) {
  KINGLET_RETURN_IF_ERROR(CheckPair(pair, session.model()));
  KINGLET_RETURN_IF_ERROR(session.Encode(pair.source));
  uint32_t fed = *session.model().file().description().start_token;
  for (const uint32_t id : pair.target) {
    KINGLET_RETURN_IF_ERROR(session.StepToken(fed));
    KINGLET_RETURN_IF_ERROR(expected(id));
    fed = id;
  }
  return {};
}

Status InSentence(size_t index, const Status& status) {
  return Status(status.code(), "sentence " + std::to_string(index) + ": " + status.message());
}

}  // namespace kinglet
