// The models whose states the target `state` reads.
#ifndef KINGLET_TESTS_FUZZ_STATE_MODELS_H_
#define KINGLET_TESTS_FUZZ_STATE_MODELS_H_

#include <cstdint>
#include <memory>

#include "runtime/model.h"

namespace kinglet::fuzz {

inline constexpr uint8_t kStateModels = 7;

// Made once. Models repeat: `choice` modulo kStateModels.
const std::shared_ptr<const Model>& StateModel(uint8_t choice);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_STATE_MODELS_H_
