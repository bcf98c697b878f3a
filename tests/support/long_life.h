// A session that lives long: tokens through several lanes, with resets, forks, saved and restored
// states and cancelled calls at random.
#ifndef KINGLET_TESTS_SUPPORT_LONG_LIFE_H_
#define KINGLET_TESTS_SUPPORT_LONG_LIFE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

struct LongLife {
  uint64_t tokens = 1000;
  uint64_t checkpoints = 10;  // lanes compared with fresh sessions, evenly over the tokens
  uint64_t seed = 1;
};

struct LongLifeReport {
  uint64_t tokens = 0, resets = 0, forks = 0, saves = 0, restores = 0, cancelled = 0, compared = 0;
  uint64_t longest = 0;  // the position of the lane that was never reset
  // Resident memory, bytes: after a tenth of the tokens, and the most at a later checkpoint.
  uint64_t resident_early = 0, resident_most = 0;
  std::string difference;  // the first difference, or ""
};

// `progress` is called at every checkpoint. Errors: those of sessions.
Result<LongLifeReport> LiveLong(const std::shared_ptr<const Model>& model, const LongLife& life,
                                const std::function<void(const LongLifeReport&)>& progress = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_LONG_LIFE_H_
