// The members of a session, for the files that implement runtime/session.h.
#ifndef KINGLET_RUNTIME_SESSION_CONTENTS_H_
#define KINGLET_RUNTIME_SESSION_CONTENTS_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "format/message_text.h"
#include "kernels/work_memory.h"
#include "kinglet/status.h"
#include "runtime/execute.h"
#include "runtime/queries/distribution.h"
#include "runtime/queries/query_frames.h"
#include "runtime/session.h"
#include "runtime/stream.h"
#include "runtime/text_block.h"

// The refusals that the files of a session share.
namespace kinglet::session {

inline Status Invalid(const std::string& where, const std::string& expected,
                      const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "session", where, expected, found);
}

inline Status CheckId(uint32_t id, uint32_t size) {
  if (id < size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "session", "token id",
                         "a number below " + std::to_string(size), std::to_string(id));
}

inline Status CheckSize(const char* what, size_t found, size_t expected) {
  if (found == expected) return Status();
  return Invalid(what, std::to_string(expected) + " elements", std::to_string(found));
}

inline Status CheckTemperature(double temperature) {
  if (temperature >= 0 && !std::isinf(temperature)) return Status();
  return Invalid("temperature", "a finite number of at least 0", NumberText(temperature));
}

inline Status CheckShare(double top_p) {
  if (top_p > 0 && top_p <= 1) return Status();
  return Invalid("top-p", "a share above 0, at most 1", NumberText(top_p));
}

inline Status NoTokenYet() {
  return Status::Refusal(KINGLET_NO_TOKEN_YET, "session", "query", "at least one token before it",
                         "none");
}

inline Status NoPart(const char* expected) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "session", "model", expected, "one without");
}

inline Status OutOfMemory() { return Status(KINGLET_OUT_OF_MEMORY, "session: out of memory"); }

}  // namespace kinglet::session

namespace kinglet {

// What every step and query of many lanes touches is small and lies together. The results of
// queries are elsewhere, and only brought up to date where they are read.
struct Session::Lane {
  uint64_t version = 0;  // of the stream; see Session::version
  uint64_t version_of_results = 0;
  // What a device computed for its last answer, if it has not been counted in the results' work.
  struct Answered {
    bool is_new = false;
    uint32_t looked_into = 0;
    uint64_t clusters = 0;
  };
  Answered answered = {};
  EitherReal<Distribution>* results;  // Contents::results
  Stream stream;

  // Versions that no stream has had: this one, and those that follow, `count` in all.
  static uint64_t NewVersions(uint64_t count) {
    static std::atomic<uint64_t> versions = 0;
    return versions.fetch_add(count, std::memory_order_relaxed) + 1;
  }
  // Call after each change of the stream.
  void Change(uint64_t new_version) {
    version = new_version;
    answered.is_new = false;
  }
  void Change() { Change(NewVersions(1)); }
  // Forgets the results of queries, although the stream has not changed.
  void ForgetResults() { version_of_results = UINT64_MAX; }
  // The results of queries about the stream as it is.
  EitherReal<Distribution>& Results() {
    const auto update = [this](auto& distribution) {
      if (version_of_results != version) {
        distribution.Invalidate();
        distribution.ResetWork();
      }
      if (answered.is_new) {
        distribution.ResetWork();
        distribution.CountAnswer(answered.clusters, answered.looked_into);
      }
    };
    if (version_of_results != version || answered.is_new) std::visit(update, *results);
    version_of_results = version;
    answered.is_new = false;
    return *results;
  }
};

// Given tokens of one stream.
struct GivenText {
  std::span<const uint32_t> ids;
  size_t silent = 0;               // the first ids, after which nothing is asked
  std::span<const uint32_t> next;  // token asked for after ids[silent + i]
  std::span<double> out;           // its log-probability

  // At most `count` ids from `begin` on.
  GivenText Part(size_t begin, uint64_t count) const;
};

struct Session::Contents {
  using QueryMemories = EitherReal<QueryMemory>;
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
  // Processes the texts, in text blocks where they fit, on a device several texts in one. With
  // `begin` each text is a new stream; one text alone may continue the lane's. After an error
  // `done` is done.
  Status StepTexts(Session& session, std::span<const GivenText> texts, bool begin,
                   TextProgress& done, uint32_t lane, Computing computing);
  // Likewise one text that continues the stream. After an error its first `processed` tokens are
  // done.
  Status StepText(Session& session, const GivenText& text, uint64_t& processed, uint32_t lane,
                  Computing computing);
  // Processes a text, or a part of one, token by token, and adds to done.tokens.
  Status StepOneByOne(Session& session, const GivenText& text, TextProgress& done, uint32_t lane,
                      Computing computing);
  // Processes the next tokens together: as many as the device takes, those of later texts too.
  // REQUIRES: the next text has a token. After an error nothing is done.
  Status StepOnDevice(std::span<const GivenText> texts, TextProgress& done, Computing computing,
                      Stream& stream);
  // The tokens that a model predicts for these ids. Valid until the next call.
  std::span<const uint32_t> TokensOf(std::span<const uint32_t> ids);
  // Runs the encoder on the source of the lane's stream.
  Status RunEncoder(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                    Lane& lane);

  // --- masked models

  // The lane, if the model is a masked one and the lane's text has a token at the position.
  Result<Lane*> FindToken(uint64_t position, uint32_t lane);
  // Runs two ranges of nodes on the token at the position and copies the buffer's values to `out`.
  Status Read(NodeRange first, NodeRange second, BufferId buffer, uint64_t position,
              std::span<double> out, Lane& lane);

  // --- queries

  // The errors of CheckLanes, and KINGLET_NO_TOKEN_YET.
  Status CheckQueriedLanes(std::span<const uint32_t> numbers);
  template <class Query>
  Status Ask(std::span<const uint32_t> numbers, const Query& query);
  template <class Answer, class Query>
  Status AskEach(std::span<const uint32_t> numbers, std::span<Answer> out, const Query& query);
  template <class DeviceCall>
  Result<DeviceAnswers> AskDevice(std::span<const uint32_t> numbers, Computing computing,
                                  const DeviceCall& call);
  Result<DeviceAnswers> RankOnDevice(std::span<const uint32_t> numbers, uint32_t k,
                                     Computing computing);
  template <class T>
  Status FindPlace(Distribution<T>& distribution, StreamFrame& frame);

  std::shared_ptr<const Model> model;
  MemoryClaim memory;
  Execution execution;
  std::optional<WorkMemory> work_memory;  // nullopt if no kernel needs work memory
  // Scratch of source tokens, one after the other; null without an encoder or on a device.
  AlignedMemory source_scratch;
  QueryMemories query_memory;
  std::vector<EitherReal<Distribution>> results;  // of the lanes
  std::vector<Lane> lanes;
  // The memory in which queries are answered, for a device or many lanes; nullopt if queries are
  // answered in each lane's own memory.
  std::optional<QueryFrames> query_frames;
  // The memory of StepMany, from its first call on; null if tokens go one by one.
  std::unique_ptr<TextBlock> text_block;
  std::vector<uint32_t> predicted;  // of TokensOf
  bool empty_cache_is_normalised = false;
  std::vector<StreamFrame> frames;  // of a step, or of a device's query; reserved for all lanes
  std::vector<uint32_t> named_by;   // by lane: the last call of CheckLanes that named it
  uint32_t checks = 0;              // calls of CheckLanes
};

// How a session runs a query.

// Gives the frame of a stream that is about to be queried the memory in which queries are answered.
// If other lanes have used that memory since, the stream's results are invalidated, or, on a
// device, fetched again.
template <class T>
Status Session::Contents::FindPlace(Distribution<T>& distribution, StreamFrame& frame) {
  if (!query_frames) return Status();
  const bool had = query_frames->Take(frame);
  if (execution.device) return had ? Status() : distribution.FetchOpened(frame);
  if (!had) distribution.Invalidate();
  return Status();
}

// Calls query(streams, index of the first of them in `numbers`) for at most kLanesTogether lanes at
// a time.
template <class Query>
Status Session::Contents::Ask(std::span<const uint32_t> numbers, const Query& query) {
  KINGLET_RETURN_IF_ERROR(CheckQueriedLanes(numbers));
  const ComputingCall call(execution);
  const auto ask = [&]<class T>(const QueryMemory<T>&) -> Status {
    const auto distribution = [&](size_t i) {
      return &std::get<Distribution<T>>(lanes[numbers[i]].Results());
    };
    for (size_t i = 0; i < numbers.size(); ++i) distribution(i)->ResetWork();
    for (size_t first = 0; first < numbers.size(); first += kLanesTogether) {
      const size_t count = std::min(kLanesTogether, numbers.size() - first);
      std::array<QueriedStream<T>, kLanesTogether> streams;
      for (size_t i = 0; i < count; ++i) {
        streams[i] = {distribution(first + i), lanes[numbers[first + i]].stream.LastFrame()};
        KINGLET_RETURN_IF_ERROR(FindPlace(*streams[i].distribution, streams[i].frame));
      }
      KINGLET_RETURN_IF_ERROR(query(std::span(streams).first(count), first));
    }
    return Status();
  };
  try {
    return std::visit(ask, query_memory);
  } catch (const std::bad_alloc&) {
    return session::OutOfMemory();
  }
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_CONTENTS_H_
