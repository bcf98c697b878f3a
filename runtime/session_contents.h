// What a session consists of, for the files of runtime/session.h.
#ifndef KINGLET_RUNTIME_SESSION_CONTENTS_H_
#define KINGLET_RUNTIME_SESSION_CONTENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/work_memory.h"
#include "runtime/execute.h"
#include "runtime/queries/distribution.h"
#include "runtime/queries/query_frames.h"
#include "runtime/session.h"
#include "runtime/stream.h"
#include "runtime/text_block.h"

namespace kinglet {

struct Session::Lane {
  Stream stream;
  std::variant<Distribution<float>, Distribution<double>> distribution;

  // Another token is the stream's last one.
  void Invalidate() {
    const auto invalidate = [](auto& queries) {
      queries.Invalidate();
      queries.ResetWork();
    };
    std::visit(invalidate, distribution);
  }
};

// How many source tokens a session's encoder steps run on at once.
size_t SourceTokensTogether(const Model& model);

// How a session of a given number of lanes uses the host's memory (session_memory.cc).
struct Session::MemoryPlan {
  Stream::Queries queries;
  QueryFrames::States states;
  uint64_t places;  // of QueryFrames; 0: each lane answers queries in its own memory
  uint64_t each;    // bytes of every lane
  uint64_t shared;  // bytes of all lanes together

  static MemoryPlan Of(const Model& model, uint64_t lanes);
};

struct Session::Contents {
  using QueryMemories = std::variant<QueryMemory<float>, QueryMemory<double>>;
  explicit Contents(QueryMemories memories) : query_memory(std::move(memories)) {}

  // KINGLET_INVALID_ARGUMENT if there is no such lane.
  Result<Lane*> FindLane(uint32_t lane);
  // KINGLET_INVALID_ARGUMENT unless each lane exists and occurs once.
  Status CheckLanes(std::span<const uint32_t> numbers);
  template <class Run>
  Status Step(std::span<const uint32_t> numbers, std::span<const uint32_t> ids, const Run& run);
  // As Session::StepToken refuses.
  Status CheckStep(uint32_t id, const Lane& lane, uint32_t number) const;
  // Makes room for tokens that go together, unless there is none within the model's limit.
  // Throws std::bad_alloc.
  void MakeTextBlock();
  // Runs the encoder on the source of the lane's stream.
  Status RunEncoder(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                    Lane& lane);

  // --- masked models (session_reading.cc)

  // The lane, if it has a text with a token at the position, and the model is a masked one.
  Result<Lane*> FindToken(uint64_t position, uint32_t lane);
  // Runs steps about the token at the position and copies the buffer's numbers to `out`.
  Status Read(NodeRange first, NodeRange second, BufferId buffer, uint64_t position,
              std::span<double> out, Lane& lane);

  // --- queries (session_queries.cc)

  // As CheckLanes, and KINGLET_NO_TOKEN_YET.
  Status CheckQueriedLanes(std::span<const uint32_t> numbers);
  template <class Query>
  Status Ask(std::span<const uint32_t> numbers, const Query& query);
  template <class Answer, class Query>
  Status AskEach(std::span<const uint32_t> numbers, std::span<Answer> out, const Query& query);
  template <class DeviceCall>
  Result<std::vector<DeviceAnswer>> AskDevice(std::span<const uint32_t> numbers,
                                              Computing computing, const DeviceCall& call);
  template <class T>
  Status FindPlace(Distribution<T>& distribution, StreamFrame& frame);

  std::shared_ptr<const Model> model;
  MemoryClaim memory;
  Execution execution;
  std::optional<WorkMemory> work_memory;  // none where no kernel needs any
  // Memory for source tokens, one after the other; null without an encoder or on a device.
  AlignedMemory source_scratch;
  QueryMemories query_memory;
  std::vector<Lane> lanes;
  // Where queries are answered, if not in each lane's own memory: of a model on a device, or with
  // many lanes.
  std::optional<QueryFrames> query_frames;
  // Of StepMany, from its first call on; null where tokens go one by one.
  std::unique_ptr<TextBlock> text_block;
  bool empty_cache_is_normalised = false;
  std::vector<StreamFrame> frames;  // that a step runs on; reserved for all lanes
  std::vector<uint8_t> is_named;    // by lane: scratch of CheckLanes, all 0 between calls
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_CONTENTS_H_
