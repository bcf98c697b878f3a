// The queries of runtime/session.h that look for words: nucleus, rank, sets, prefixes, intervals.
#include <string>
#include <utility>

#include "runtime/queries/cache_contribution_query.h"
#include "runtime/queries/intervals.h"
#include "runtime/queries/rank.h"
#include "runtime/queries/set_queries.h"
#include "runtime/queries/top_p.h"
#include "runtime/session_ask.h"

namespace kinglet {

using session::CheckId;

// Calls query(stream), which returns a Result, for one lane.
template <class Answer, class Query>
Result<Answer> Session::AskLane(uint32_t lane, const Query& query) {
  Answer answer{};
  KINGLET_RETURN_IF_ERROR(contents_->Ask({&lane, 1}, [&](auto streams, size_t) -> Status {
    KINGLET_ASSIGN_OR_RETURN(answer, query(streams.front()));
    return Status();
  }));
  return answer;
}

namespace {

Status CheckSet(const WordSet& set, const Model& model) {
  if (set.vocabulary_size() == model.vocabulary_size()) return Status();
  return session::Invalid("set of words",
                          "a set of " + std::to_string(model.vocabulary_size()) + " words",
                          std::to_string(set.vocabulary_size()));
}

Status CheckHasTexts(const Model& model) {
  if (model.vocabulary() != nullptr) return Status();
  return Status::Refusal(KINGLET_UNSUPPORTED, "session", "prefix",
                         "a model file with the texts of words", "ids only");
}

}  // namespace

Result<std::vector<Candidate>> Session::TopP(double share, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(session::CheckShare(share));
  return AskLane<std::vector<Candidate>>(lane,
                                         [share](auto& stream) { return FindTopP(stream, share); });
}

Result<uint32_t> Session::Rank(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<uint32_t>(lane, [id](auto& stream) { return RankOfWord(stream, id); });
}

Result<CacheContribution> Session::CacheContributionOf(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<CacheContribution>(
      lane, [id](auto& stream) { return CacheContributionOfWord(stream, id); });
}

Result<WordSet> Session::WithPrefix(std::string_view prefix) const {
  KINGLET_RETURN_IF_ERROR(CheckHasTexts(model()));
  try {
    return WordSet(model().vocabulary_size(), model().vocabulary()->WithPrefix(prefix));
  } catch (const std::bad_alloc&) {
    return session::OutOfMemory();
  }
}

Result<std::vector<Candidate>> Session::TopKOf(const WordSet& set, uint32_t k, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return AskLane<std::vector<Candidate>>(
      lane, [&set, k](auto& stream) { return FindTopKOf(stream, set, k); });
}

Result<double> Session::ProbabilityOf(const WordSet& set, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return AskLane<double>(lane, [&set](auto& stream) { return ProbabilityOfSet(stream, set); });
}

Status Session::AddProbabilities(const WordSet& set, std::span<const uint32_t> part_of,
                                 std::span<double> sums, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckSet(set, model()));
  return contents_->Ask({&lane, 1}, [&](auto streams, size_t) -> Status {
    return kinglet::AddProbabilities(streams.front(), set, part_of, sums);
  });
}

Result<std::vector<NextCharacter>> Session::NextCharacters(std::string_view prefix, uint32_t lane) {
  KINGLET_ASSIGN_OR_RETURN(const WordSet set, WithPrefix(prefix));
  using Answer = std::vector<NextCharacter>;
  return AskLane<Answer>(lane, [&](auto& stream) -> Result<Answer> {
    PrefixParts parts = SplitByNextCharacter(*model().vocabulary(), prefix);
    std::vector<double> sums(parts.characters.size());
    KINGLET_RETURN_IF_ERROR(
        kinglet::AddProbabilities(stream, set, parts.part_of, std::span<double>(sums)));
    for (size_t i = 0; i < sums.size(); ++i) parts.characters[i].probability = sums[i];
    return std::move(parts.characters);
  });
}

Result<Interval> Session::IntervalOf(uint32_t id, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(CheckId(id, model().vocabulary_size()));
  return AskLane<Interval>(lane, [id](auto& stream) { return IntervalOfWord(stream, id); });
}

Result<uint32_t> Session::WordAt(uint32_t point, uint32_t lane) {
  return AskLane<uint32_t>(lane, [point](auto& stream) { return WordOfPoint(stream, point); });
}

}  // namespace kinglet
