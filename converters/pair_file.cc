#include "converters/pair_file.h"

#include <new>
#include <string_view>
#include <utility>

#include "converters/input_file.h"
#include "converters/quoted.h"
#include "converters/token_file.h"

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
    return refuse("at least one target id behind the start token " + start, "none");
  }
  pair.target.erase(pair.target.begin());
  return pair;
}

}  // namespace

Result<std::vector<SentencePair>> ReadPairs(const std::string& path, uint32_t start_token) try {
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(path));
  std::vector<SentencePair> pairs;
  for (const std::string_view line : LinesOf(text)) {
    const std::string where = path + ", line " + std::to_string(pairs.size() + 1);
    KINGLET_ASSIGN_OR_RETURN(SentencePair pair, ParsePair(line, where, start_token));
    pairs.push_back(std::move(pair));
  }
  if (!pairs.empty()) return pairs;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "pairs", path, "at least one line",
                         "an empty file");
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, path, "pairs", "memory for them", "none left");
}

}  // namespace kinglet
