#include "tools/batch_scorer.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace kinglet {
namespace {

constexpr size_t kLeastShared = 8;  // tokens
// Both ways are tried once in so many batches.
constexpr uint64_t kTrialInterval = 32;

size_t SharedTokens(const SentenceStream& a, const SentenceStream& b) {
  const auto at = std::mismatch(a.tokens.begin(), a.tokens.end(), b.tokens.begin(), b.tokens.end());
  return static_cast<size_t>(at.first - a.tokens.begin());
}

}  // namespace

std::vector<size_t> BatchScorer::WithSharedBeginnings(std::span<const SentenceStream> streams) {
  std::vector<size_t> order(streams.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return streams[a].tokens < streams[b].tokens; });
  std::vector<size_t> shared;
  size_t before = 0;  // tokens that a stream shares with the one before
  for (size_t i = 0; i < order.size(); ++i) {
    const size_t after =
        i + 1 == order.size() ? 0 : SharedTokens(streams[order[i]], streams[order[i + 1]]);
    if (std::max(before, after) >= kLeastShared) shared.push_back(order[i]);
    before = after;
  }
  return shared;
}

BatchScorer::Way BatchScorer::NextWay() const {
  const uint64_t since_trial = batches_ % kTrialInterval;
  if (since_trial < kWays) return static_cast<Way>(since_trial);
  return seconds_of_token_[kLanes] < seconds_of_token_[kInTurn] ? kLanes : kInTurn;
}

Status BatchScorer::RunAlone(std::span<const SentenceStream> streams,
                             std::span<const size_t> chosen, const SentenceScorer::Sink& sink,
                             const SentenceScorer::Name& name) {
  size_t taken = 0;
  uint64_t tokens = 0;
  const auto next = [&](SentenceStream& stream) {
    if (taken == chosen.size()) return false;
    stream = streams[chosen[taken++]];
    tokens += stream.tokens.size();
    return true;
  };
  const auto use = [&](uint64_t index, std::span<const ScoredToken> scored) {
    return sink(chosen[index], scored);
  };
  const auto name_of = [&](uint64_t index, size_t at) { return name(chosen[index], at); };
  const Way way = NextWay();
  const auto began = std::chrono::steady_clock::now();
  KINGLET_RETURN_IF_ERROR(way == kLanes ? scorer_.Run(next, use, name_of)
                                        : scorer_.RunInTurn(next, use, name_of));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (tokens == 0) return {};
  seconds_of_token_[way] = took.count() / static_cast<double>(tokens);
  ++batches_;
  return {};
}

Status BatchScorer::Run(std::span<const SentenceStream> streams, const SentenceScorer::Sink& sink,
                        const SentenceScorer::Name& name) {
  const std::vector<size_t> shared = WithSharedBeginnings(streams);
  std::vector<bool> in_tree(streams.size());
  for (const size_t i : shared) in_tree[i] = true;
  std::vector<size_t> alone;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (!in_tree[i]) alone.push_back(i);
  }
  KINGLET_RETURN_IF_ERROR(RunAlone(streams, alone, sink, name));
  if (shared.empty()) return {};
  return scorer_.RunTree(streams, shared, sink, name);
}

}  // namespace kinglet
