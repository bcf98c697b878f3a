// Records what the nodes below a change compute in the unchanged model, token by token, so that a
// run of a changed model need not compute them again (runtime/partial_context.h).
#ifndef KINGLET_CONVERTERS_PLANNING_RECORDED_CONTEXT_H_
#define KINGLET_CONVERTERS_PLANNING_RECORDED_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model.h"
#include "runtime/partial_context.h"
#include "runtime/session.h"

namespace kinglet {

// The record of one partial context.
class RecordedContext {
 public:
  explicit RecordedContext(PartialContext partial) : partial_(std::move(partial)) {}

  const PartialContext& partial() const { return partial_; }
  uint64_t bytes() const { return tiles_.size() * kTileBytes; }
  // Space for the record of the next token, to be filled in. Throws std::bad_alloc.
  std::byte* Add();
  // The record of a token that was added.
  std::span<const std::byte> At(uint64_t token) const;

 private:
  static constexpr uint64_t kTileBytes = uint64_t{1} << 20;
  uint64_t TokensPerTile() const { return std::max<uint64_t>(1, kTileBytes / TokenBytes()); }
  uint64_t TokenBytes() const { return std::max<uint64_t>(1, partial_.kept_bytes); }

  PartialContext partial_;
  uint64_t tokens_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> tiles_;  // of TokensPerTile tokens
};

// Records several partial contexts in one run of the unchanged model, as far as memory allows.
class ContextRecorder {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  // Records the partial context of each set of changed weights if it saves nodes. Equal partial
  // contexts are recorded once. Nothing is recorded for a model with an encoder.
  ContextRecorder(const Model& model, std::span<const std::vector<WeightId>> changed,
                  uint64_t most_bytes = kMostBytes);

  // Becomes the session's only observer; to be called before the session's first token. If memory
  // runs short, the record of most bytes is dropped.
  void Watch(Session& session);

  // The record for these weights, or nullptr if nothing was recorded for them. The record lives as
  // long as the recorder.
  const RecordedContext* Find(std::span<const WeightId> changed) const;

 private:
  void Before(const Node& node, const StreamFrame& frame);
  void After(const Node& node, const StreamFrame& frame);
  void KeepWithinMemory();

  const Plan* plan_;
  const BufferLayout* layout_;
  size_t real_bytes_;
  uint64_t most_bytes_;
  std::vector<RecordedContext> records_;
  std::vector<std::byte*>
      current_;  // for each record: the space of the token that is being computed
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_RECORDED_CONTEXT_H_
