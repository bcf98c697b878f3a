// Scores a batch of streams in the quickest of three ways, which give the same values: in lanes,
// one after the other with each one's tokens together, or as a tree of the beginnings that several
// streams share.
#ifndef KINGLET_TOOLS_BATCH_SCORER_H_
#define KINGLET_TOOLS_BATCH_SCORER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "runtime/sentence_scorer.h"

namespace kinglet {

class BatchScorer {
 public:
  explicit BatchScorer(SentenceScorer scorer) : scorer_(std::move(scorer)) {}

  // Calls sink for each stream once, in any order. Errors: those of SentenceScorer::Run.
  // REQUIRES: no stream has a source.
  Status Run(std::span<const SentenceStream> streams, const SentenceScorer::Sink& sink,
             const SentenceScorer::Name& name);

  // The streams that begin with as many tokens as another one as make a tree worthwhile, in an
  // order that puts equal beginnings next to each other.
  static std::vector<size_t> WithSharedBeginnings(std::span<const SentenceStream> streams);

 private:
  enum Way : uint8_t { kInTurn, kLanes, kWays };
  // Scores streams[i] for the chosen i in one of the first two ways, after a trial of both.
  Status RunAlone(std::span<const SentenceStream> streams, std::span<const size_t> chosen,
                  const SentenceScorer::Sink& sink, const SentenceScorer::Name& name);

  SentenceScorer scorer_;
  Way trial_ = kInTurn;  // the way to try next, or kWays
  uint64_t tokens_since_trial_ = 0;
  std::array<double, kWays> seconds_of_token_ = {};  // in the last trial
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BATCH_SCORER_H_
