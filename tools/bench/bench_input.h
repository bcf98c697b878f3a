// What a measurement runs over: which tokens are fed, which of them are timed.
#ifndef KINGLET_TOOLS_BENCH_BENCH_INPUT_H_
#define KINGLET_TOOLS_BENCH_BENCH_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// Tokens before timing starts: as many as the neural cache holds and the context sees, so that both
// are full.
uint64_t WarmUpTokens(const Plan& plan);

// A stream is warmed up, then goes through rounds; in a round a few tokens are fed that are not
// timed, because something else has run meanwhile, and then a block that is.
struct BenchSchedule {
  uint64_t warm_up = 0;
  uint64_t rounds = 1;
  uint64_t settle = 0;  // of a round: not timed
  uint64_t block = 0;   // of a round: timed
  uint64_t Timed() const { return rounds * block; }
  // Ids that it takes: the last one is asked for, not fed.
  uint64_t Ids() const { return warm_up + rounds * (settle + block) + 1; }
};
// A round saves and restores all streams, which of thousands takes longer than their tokens.
inline constexpr uint64_t kUsualRounds = 20;
// At most `tokens` >= 1 timed tokens in at most `rounds` >= 1, and no more than `ids` allow.
// KINGLET_INVALID_ARGUMENT naming `source` if not one can be timed.
Result<BenchSchedule> MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t ids,
                                   const std::string& source, uint64_t rounds = kUsualRounds);
// The same for as many ids as it takes.
BenchSchedule MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t rounds = kUsualRounds);
// Of translations: each round is a target of `length` >= 1 tokens from its first one on, as many
// rounds as make `tokens` of them. What a round feeds before it is a part of the same target.
BenchSchedule MakeTranslationSchedule(uint64_t length, uint64_t tokens);

// `count` ids in the proportions of an embedding: a bin as often as the file says; within a bin,
// and throughout where the file says nothing, the word of rank r (its id + 1) with probability
// proportional to 1 / r (Zipf 1949). The same for the same embedding.
std::vector<uint32_t> SampleIds(const EmbedRow& embedding, uint64_t count);

// One text for many lanes: each starts elsewhere and goes round.
class LaneIds {
 public:
  // REQUIRES: ids is not empty, lanes >= 1.
  LaneIds(std::vector<uint32_t> ids, size_t lanes) : ids_(std::move(ids)), lanes_(lanes) {}
  uint32_t At(size_t lane, uint64_t position) const {
    return ids_[(lane * ids_.size() / lanes_ + position) % ids_.size()];
  }

 private:
  std::vector<uint32_t> ids_;
  size_t lanes_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_INPUT_H_
