// The model of the archives that the target "archive" reads, and archives of its text.
#ifndef KINGLET_TESTS_FUZZ_ARCHIVE_MODEL_H_
#define KINGLET_TESTS_FUZZ_ARCHIVE_MODEL_H_

#include <memory>
#include <span>

#include "runtime/model.h"

namespace kinglet::fuzz {

const std::shared_ptr<const Model>& ArchiveModel();

// The repair of the target.
void RepairArchive(std::span<std::byte> input);

}  // namespace kinglet::fuzz

#endif  // KINGLET_TESTS_FUZZ_ARCHIVE_MODEL_H_
