// A model ready to run: a verified file, lowered to a plan and bound to one backend's kernels.
// Immutable; shared by any number of sessions in any number of threads.
#ifndef KINGLET_RUNTIME_MODEL_H_
#define KINGLET_RUNTIME_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "kernels/backend.h"
#include "kernels/plan.h"
#include "kinglet/status.h"

namespace kinglet {

struct ModelOptions {
  std::string backend = "cpu";  // a name of Backends()
  // A session whose lanes would allocate more than this is refused (KINGLET_OUT_OF_MEMORY).
  uint64_t session_memory_limit = uint64_t{4} << 30;
};

class Model {
 public:
  // Opening verifies the whole file. Errors: as ModelFile::Open, and KINGLET_UNSUPPORTED for a
  // backend that does not exist or cannot run a block.
  static Result<std::shared_ptr<const Model>> Open(const std::string& path,
                                                   const ModelOptions& options);
  static Result<std::shared_ptr<const Model>> FromBytes(std::span<const std::byte> bytes,
                                                        const ModelOptions& options);
  static Result<std::shared_ptr<const Model>> FromFile(std::shared_ptr<const ModelFile> file,
                                                       const ModelOptions& options);

  const ModelFile& file() const { return *file_; }
  const Vocabulary* vocabulary() const { return file_->vocabulary(); }
  uint32_t vocabulary_size() const { return plan_.vocabulary_size; }
  const Backend& backend() const { return *backend_; }
  const Plan& plan() const { return plan_; }
  const BufferLayout& layout() const { return layout_; }
  uint64_t session_memory_limit() const { return session_memory_limit_; }
  std::span<const Kernel> kernels() const { return kernels_; }  // parallel to plan().steps

 private:
  Model() = default;
  std::shared_ptr<const ModelFile> file_;
  Plan plan_;
  const Backend* backend_ = nullptr;
  BufferLayout layout_;
  uint64_t session_memory_limit_ = 0;
  std::vector<Kernel> kernels_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_MODEL_H_
