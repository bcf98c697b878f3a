#include "tools/batch_scorer.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace kinglet {
namespace {

constexpr size_t kLeastShared = 8;       // tokens
constexpr uint64_t kTrialTokens = 4096;  // for each way; streams are not divided
constexpr uint64_t kTrialInterval = 128 * kTrialTokens;

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

Status BatchScorer::RunAlone(std::span<const SentenceStream> streams,
                             std::span<const size_t> chosen, const SentenceScorer::Sink& sink,
                             const SentenceScorer::Name& name) {
  while (!chosen.empty()) {
    if (trial_ == kWays && tokens_since_trial_ >= kTrialInterval) trial_ = kInTurn;
    const bool tries = trial_ != kWays;
    const bool lanes_won = seconds_of_token_[kLanes] < seconds_of_token_[kInTurn];
    const Way way = tries ? trial_ : lanes_won ? kLanes : kInTurn;
    const uint64_t most = tries ? kTrialTokens : kTrialInterval;
    const size_t least = way == kLanes ? 4 * size_t{scorer_.lanes()} : 0;  // streams
    size_t count = 0;
    uint64_t tokens = 0;
    while (count < chosen.size() && (tokens < most || count < least)) {
      tokens += streams[chosen[count++]].tokens.size();
    }
    const auto began = std::chrono::steady_clock::now();
    const std::span<const size_t> part = chosen.first(count);
    KINGLET_RETURN_IF_ERROR(way == kLanes ? scorer_.RunInLanes(streams, part, sink, name)
                                          : scorer_.RunInTurn(streams, part, sink, name));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    chosen = chosen.subspan(count);
    tokens_since_trial_ += tokens;
    if (!tries || tokens == 0) continue;
    seconds_of_token_[way] = took.count() / static_cast<double>(tokens);
    trial_ = way == kInTurn ? kLanes : kWays;
    tokens_since_trial_ = 0;
  }
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
  return scorer_.RunAsTree(streams, shared, sink, name);
}

}  // namespace kinglet
