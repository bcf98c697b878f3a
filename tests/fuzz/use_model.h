// The calls that a program may make with a model that was accepted.
#ifndef KINGLET_TESTS_FUZZ_USE_MODEL_H_
#define KINGLET_TESTS_FUZZ_USE_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/model.h"
#include "runtime/session.h"

namespace kinglet::fuzz {

// Opens the file's model with small limits of memory.
Result<std::shared_ptr<const Model>> OpenLimited(const std::shared_ptr<const ModelFile>& file,
                                                 const char* backend);
// Steps and asks; every answer is a number or KINGLET_NOT_FINITE.
void UseSession(Session& session);
// Uses the model through an embedder, or through a session if the model predicts words.
void UseModel(const std::shared_ptr<const Model>& model);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_USE_MODEL_H_
