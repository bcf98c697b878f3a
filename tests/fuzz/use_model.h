// What a program may do with a model that was accepted.
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
// The same through an embedder, or a session where the model predicts.
void UseModel(const std::shared_ptr<const Model>& model);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_USE_MODEL_H_
