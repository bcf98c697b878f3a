// What the nodes below a change computed in the unchanged model, token by token, so that a run of a
// changed model need not compute it again (runtime/partial_context.h).
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

// Of one cut.
class RecordedContext {
 public:
  explicit RecordedContext(PartialContext cut) : cut_(std::move(cut)) {}

  const PartialContext& cut() const { return cut_; }
  uint64_t bytes() const { return blocks_.size() * kBlockBytes; }
  // What is kept of the next token, to be filled in. Throws std::bad_alloc.
  std::byte* Add();
  // Of a token that was added.
  std::span<const std::byte> At(uint64_t token) const;

 private:
  static constexpr uint64_t kBlockBytes = uint64_t{1} << 20;
  uint64_t EachBlock() const { return std::max<uint64_t>(1, kBlockBytes / Size()); }
  uint64_t Size() const { return std::max<uint64_t>(1, cut_.kept_bytes); }

  PartialContext cut_;
  uint64_t tokens_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // of EachBlock tokens
};

// Records several cuts in one run of the unchanged model, as far as memory allows.
class ContextRecorder {
 public:
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

  // Of each set of changed weights the cut, unless nothing would be saved; equal cuts once.
  // Nothing is recorded for a model with an encoder.
  ContextRecorder(const Model& model, std::span<const std::vector<WeightId>> changed,
                  uint64_t most_bytes = kMostBytes);

  // Observes the session, which must not be asked to observe anything else; call it before its
  // first token. If memory runs short, the cut of most bytes is dropped and counts no more.
  void Watch(Session& session);

  // The cut for these weights; null: none was recorded. It lives as long as this.
  const RecordedContext* Find(std::span<const WeightId> changed) const;

 private:
  void Before(const Node& node, const StreamFrame& frame);
  void After(const Node& node, const StreamFrame& frame);
  void KeepWithinMemory();

  const Plan* plan_;
  const BufferLayout* layout_;
  size_t real_bytes_;
  uint64_t most_bytes_;
  std::vector<RecordedContext> cuts_;
  std::vector<std::byte*> now_;  // by cut: of the token that is computed
};

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PLANNING_RECORDED_CONTEXT_H_
