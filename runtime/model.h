// A model ready to run: a verified file, lowered to a plan (runtime/lower) and bound to the kernels
// of one backend. Immutable: any number of sessions and threads may share one.
#ifndef KINGLET_RUNTIME_MODEL_H_
#define KINGLET_RUNTIME_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/model_file.h"
#include "format/small_build.h"
#include "kernels/backend.h"
#include "kernels/device_program.h"
#include "kernels/plan.h"
#include "kinglet/status.h"
#include "runtime/memory_budget.h"
#include "runtime/spelt_words.h"
#include "runtime/text/model_text.h"

namespace kinglet {

enum class LogLevel : int32_t { kInfo = 1, kWarning = 2 };

// Takes one line of text about the model or a session of it. Any thread that uses the library may
// call the function, several threads at once. The function must not call the library.
using LogFunction = std::function<void(LogLevel, const std::string& message)>;

// A DeFINE unit of the input, from the Map layer, which is layer 0, to one of its layers.
struct UnitPart {
  uint32_t unit = 0;
  uint32_t layer = 0;
};

struct ModelOptions {
  std::string backend = "cpu";  // the name of one of Backends() or DeviceBackends()
  // If not null, used instead of `backend`. REQUIRES: outlives the model.
  const Backend* own_backend = nullptr;
  // The most bytes that these may take together: the file, its tables of words and text, the
  // weights as the backend lays them out, all live sessions, texts while they are tokenized, and
  // the pages of states (runtime/state.h), each counted once however many states and lanes share
  // it. More is KINGLET_OUT_OF_MEMORY. Without a limit, opening takes at most kOpeningBytes and
  // kOpeningBytesPerByte for each byte of the file.
  uint64_t memory_limit = MemoryBudget::kNoLimit;
  // The most bytes that the lanes of one session may allocate; more is KINGLET_OUT_OF_MEMORY.
  uint64_t session_memory_limit = std::min(uint64_t{4} << 30, MemoryBudget::kNoLimit);
  LogFunction log = {};  // empty for no log
  // If set, the model is only this part of its input: an Embedder gives the layer's outputs,
  // without the embedding's scale, for the words of the unit's bins. REQUIRES: the part exists.
  std::optional<UnitPart> only = {};
};

// Far more than any real model takes: 32 bits for the bit that a pruned weight has in the file, and
// the codes of the reference backend next to them.
inline constexpr uint64_t kOpeningBytes = uint64_t{64} << 20, kOpeningBytesPerByte = 64;

class Model {
 public:
  // Opening verifies the complete file. Errors: those of ModelFile::Open; KINGLET_UNSUPPORTED for a
  // backend that does not exist or cannot run a block; KINGLET_OUT_OF_MEMORY. Weights that the
  // backend copies into a layout of its own are released from the file's memory, except with
  // FromFile, whose file others may read too.
  static Result<std::shared_ptr<const Model>> Open(const std::string& path,
                                                   const ModelOptions& options);
  static Result<std::shared_ptr<const Model>> FromBytes(std::span<const std::byte> bytes,
                                                        const ModelOptions& options);
  static Result<std::shared_ptr<const Model>> FromFile(std::shared_ptr<const ModelFile> file,
                                                       const ModelOptions& options);

  const ModelFile& file() const { return *file_; }
  const Vocabulary* vocabulary() const { return file_->vocabulary(); }
  // How the model tokenizes text; null as ModelText::Of documents.
  const ModelText* text() const { return text_.get(); }
  uint32_t vocabulary_size() const { return plan_.vocabulary_size; }

  // Whether the model reads words by their bytes, also words that its vocabulary lacks.
  bool spells() const { return !kSmallBuild && spelt_words_ != nullptr; }
  // The number by which a stream reads a word: its id or, in a model that spells, a number at or
  // above vocabulary_size() for a word that the vocabulary lacks. Any thread may call. Errors:
  // KINGLET_UNSUPPORTED for a model that does not spell; those of SpeltWords::Number.
  Result<uint32_t> Spell(std::string_view word) const;
  // Whether a stream reads the number: an id, or that of a word that was spelt.
  bool Reads(uint32_t number) const {
    return number < vocabulary_size() || (spells() && spelt_words_->Find(number));
  }
  // KINGLET_ID_OUT_OF_RANGE for a number that no stream reads.
  Status RefuseInput(uint32_t number, const std::string& asker,
                     const std::string& where = "token id") const;
  // The token of a number, which is what queries take: the unknown word's for a word that was
  // spelt, otherwise the number.
  uint32_t TokenOf(uint32_t number) const {
    if (number < vocabulary_size() || !spells()) return number;
    const std::optional<SpeltWords::Word> word = spelt_words_->Find(number);
    return word ? word->token : number;
  }
  // Adds what the nodes read of a spelt word to its token's frame. REQUIRES: Reads(number); the
  // frame is TokenOf(number)'s.
  void SetSpelling(uint32_t number, StreamFrame& frame) const;

  const Backend& backend() const { return *backend_; }
  const Plan& plan() const { return plan_; }
  const BufferLayout& layout() const { return layout_; }
  uint64_t session_memory_limit() const { return session_memory_limit_; }
  const std::shared_ptr<MemoryBudget>& budget() const { return budget_; }
  void Log(LogLevel level, const std::string& message) const {
    if (log_) log_(level, message);
  }
  // REQUIRES: the backend's floats are float.
  const ClusterFunctions<float>& cluster_functions() const { return cluster_functions_; }
  std::span<const Kernel> kernels() const { return kernels_; }  // parallel to plan().nodes
  // The program of a backend that computes on a device, which has no kernels; null on the host.
  const DeviceProgram* device() const { return device_.get(); }

 private:
  Model() = default;
  static Result<std::shared_ptr<const Model>> Bind(std::shared_ptr<const ModelFile> file,
                                                   const ReleaseBytes& release,
                                                   const ModelOptions& options);
  class Opening;
  Status AddSpeltWords(Opening& opening);
  Status BindToHost(const ReleaseBytes& release, Opening& opening);
  Status BindToDevice(const ReleaseBytes& release, Opening& opening);
  std::shared_ptr<const ModelFile> file_;
  std::shared_ptr<const ModelText> text_;
  std::unique_ptr<SpeltWords> spelt_words_;  // null unless the model spells
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
