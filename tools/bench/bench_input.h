// The input of a measurement: which tokens are fed, and which of them are timed.
#ifndef KINGLET_TOOLS_BENCH_BENCH_INPUT_H_
#define KINGLET_TOOLS_BENCH_BENCH_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

// Tokens fed before timing starts: enough to fill the neural cache and the context.
uint64_t WarmUpTokens(const Plan& plan);

// A stream is warmed up and then runs rounds. Each round first feeds a few tokens that are not
// timed, because other modes have used the processor's caches meanwhile, and then a timed run of
// tokens.
struct BenchSchedule {
  uint64_t warm_up = 0;
  uint64_t rounds = 1;
  uint64_t settle = 0;  // tokens per round that are not timed
  uint64_t timed = 0;   // tokens per round that are timed
  uint64_t Timed() const { return rounds * timed; }
  // Number of ids needed. The last one is only the target of a query and is not fed.
  uint64_t Ids() const { return warm_up + rounds * (settle + timed) + 1; }
};
// Each round saves and restores all streams; with thousands of streams that takes longer than their
// tokens.
inline constexpr uint64_t kUsualRounds = 20;
// Timed steps of each mode, if the command line does not say.
inline constexpr uint64_t kUsualTimed = 1000;
// The most that the page and the table take.
inline constexpr uint64_t kMostTimed = uint64_t{1} << 20;
// At most `tokens` >= 1 timed tokens in at most `rounds` >= 1 rounds, limited by the number of ids.
// KINGLET_INVALID_ARGUMENT naming `input_name` if there are too few ids to time one token.
Result<BenchSchedule> MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t ids,
                                   const std::string& input_name, uint64_t rounds = kUsualRounds);
// Like MakeSchedule above, without a limit on the number of ids.
BenchSchedule MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t rounds = kUsualRounds);
// For translations: each round times a complete target of `length` >= 1 tokens; there are enough
// rounds for `tokens` timed tokens. The untimed tokens of a round are taken from the same target.
BenchSchedule MakeTranslationSchedule(uint64_t length, uint64_t tokens);

// `count` random ids. Bins are as frequent as the file records. Within a bin, or overall if the
// file has no frequencies, the word of rank r (its id + 1) has a probability proportional to 1 / r
// (Zipf 1949). Deterministic for a given embedding.
std::vector<uint32_t> SampleIds(const EmbedRow& embedding, uint64_t count);

// One text for many lanes: each lane starts at a different position and wraps around at the end.
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
