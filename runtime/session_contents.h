// The members of a session, for the files that implement runtime/session.h.
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

  // Forgets the results of queries. Call after each step of the stream.
  void Invalidate() {
    const auto invalidate = [](auto& queries) {
      queries.Invalidate();
      queries.ResetWork();
    };
    std::visit(invalidate, distribution);
  }
};

// The number of source tokens on which the encoder's nodes run at once; 0 if they run on one token
// at a time.
size_t SourceTokensTogether(const Model& model);

// How a session of a given number of lanes uses the host's memory (session_memory.cc).
struct Session::MemoryPlan {
  Stream::Queries queries;
  QueryFrames::States states;
  uint64_t places;  // of QueryFrames; 0 if each lane answers queries in its own memory
  uint64_t each;    // bytes of each lane
  uint64_t shared;  // bytes of the memory that all lanes share

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
  // The errors of Session::StepToken, except KINGLET_CANCELLED.
  Status CheckStep(uint32_t id, const Lane& lane, uint32_t number) const;
  // Makes text_block, unless the model's limit leaves too little memory for one. Throws
  // std::bad_alloc.
  void MakeTextBlock();
  // Runs the encoder on the source of the lane's stream.
  Status RunEncoder(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                    Lane& lane);

  // --- masked models (session_reading.cc)

  // The lane, if the model is a masked one and the lane's text has a token at the position.
  Result<Lane*> FindToken(uint64_t position, uint32_t lane);
  // Runs two ranges of nodes on the token at the position and copies the buffer's values to `out`.
  Status Read(NodeRange first, NodeRange second, BufferId buffer, uint64_t position,
              std::span<double> out, Lane& lane);

  // --- queries (session_queries.cc)

  // The errors of CheckLanes, and KINGLET_NO_TOKEN_YET.
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
  std::optional<WorkMemory> work_memory;  // nullopt if no kernel needs work memory
  // Scratch of source tokens, one after the other; null without an encoder or on a device.
  AlignedMemory source_scratch;
  QueryMemories query_memory;
  std::vector<Lane> lanes;
  // The memory in which queries are answered, for a device or many lanes; nullopt if queries are
  // answered in each lane's own memory.
  std::optional<QueryFrames> query_frames;
  // The memory of StepMany, from its first call on; null if tokens go one by one.
  std::unique_ptr<TextBlock> text_block;
  bool empty_cache_is_normalised = false;
  std::vector<StreamFrame> frames;  // the frames of a step; reserved for all lanes
  std::vector<uint8_t> is_named;    // by lane: scratch of CheckLanes, all 0 between calls
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_CONTENTS_H_
