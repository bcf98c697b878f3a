// A model ready to run: a verified file, lowered to a plan and bound to one backend's kernels.
// Immutable; shared by any number of sessions in any number of threads.
#ifndef KINGLET_RUNTIME_MODEL_H_
#define KINGLET_RUNTIME_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "format/model_file.h"
#include "kernels/backend.h"
#include "kernels/device_program.h"
#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/memory_budget.h"

namespace kinglet {

enum class LogLevel : int32_t { kInfo = 1, kWarning = 2 };

// Takes one line about the model or a session of it, in the thread that calls the library. Must not
// call the library.
using LogFunction = std::function<void(LogLevel, const std::string& message)>;

struct ModelOptions {
  std::string backend = "cpu";  // a name of Backends() or DeviceBackends()
  // One that has no such name, instead; it outlives the model.
  const Backend* own_backend = nullptr;
  // What the file, the weights as the backend lays them out and all live sessions may hold together
  // (KINGLET_OUT_OF_MEMORY). Kept states (runtime/state.h) and the pages that
  // sessions share with them do not count.
  uint64_t memory_limit = MemoryBudget::kNoLimit;
  // A session whose lanes would allocate more than this is refused (KINGLET_OUT_OF_MEMORY).
  uint64_t session_memory_limit = uint64_t{4} << 30;
  LogFunction log = {};  // empty: nobody listens
};

class Model {
 public:
  // Opening verifies the whole file. Errors: as ModelFile::Open, and KINGLET_UNSUPPORTED for a
  // backend that does not exist or cannot run a block; KINGLET_OUT_OF_MEMORY. What the backend lays
  // out in memory of its own leaves the file's, so that memory holds it once; of a file that is
  // given, which others may read, all stays.
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
  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  void Log(LogLevel level, const std::string& message) const {
    if (log_) log_(level, message);
  }
  // REQUIRES: the backend's reals are float.
  const ClusterFunctions<float>& cluster_functions() const { return cluster_functions_; }
  std::span<const Kernel> kernels() const { return kernels_; }  // parallel to plan().steps
  // Of a backend that computes on a device, which has no kernels; null on the host.
  const DeviceProgram* device() const { return device_.get(); }

 private:
  Model() = default;
  static Result<std::shared_ptr<const Model>> Bind(std::shared_ptr<const ModelFile> file,
                                                   const ReleaseBytes& release,
                                                   const ModelOptions& options);
  Status BindToHost(const ReleaseBytes& release);
  Status BindToDevice(const ReleaseBytes& release);
  std::shared_ptr<const ModelFile> file_;
  Plan plan_;
  const Backend* backend_ = nullptr;
  BufferLayout layout_;
  uint64_t session_memory_limit_ = 0;
  std::shared_ptr<MemoryBudget> budget_;
  LogFunction log_;
  ClusterFunctions<float> cluster_functions_{};
  std::vector<Kernel> kernels_;
  std::shared_ptr<const DeviceProgram> device_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_MODEL_H_
