// A session of many lanes compared with sessions of one lane on another backend: the same best
// words and states, to the last bit.
#ifndef KINGLET_TESTS_SUPPORT_LANE_CHECK_H_
#define KINGLET_TESTS_SUPPORT_LANE_CHECK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "kinglet/status.h"
#include "runtime/model.h"

namespace kinglet {

struct LaneCheck {
  uint32_t lanes = 1;
  uint32_t tokens = 4;   // steps of each lane, which has its own random text
  uint32_t sampled = 8;  // lanes that are compared: the first, the last, others at random
  uint32_t words = 10;   // best words that are asked for, of all lanes at once, after each token
};

// "" or the first difference. `found` and `expected` are the same model on two backends. Errors:
// those of sessions.
Result<std::string> CompareLanes(const std::shared_ptr<const Model>& found,
                                 const std::shared_ptr<const Model>& expected,
                                 const LaneCheck& check);

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_LANE_CHECK_H_
