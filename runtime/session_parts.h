// What the files of runtime/session.h share: a session's memory, and refusals.
#ifndef KINGLET_RUNTIME_SESSION_PARTS_H_
#define KINGLET_RUNTIME_SESSION_PARTS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/queries/query_frames.h"
#include "runtime/session.h"
#include "runtime/stream.h"

namespace kinglet {

struct Session::Lane {
  Stream stream;
  std::variant<Distribution<float>, Distribution<double>> distribution;

  // Another token is the last one.
  void Invalidate() {
    const auto invalidate = [](auto& queries) {
      queries.Invalidate();
      queries.ResetWork();
    };
    std::visit(invalidate, distribution);
  }
};

// How a session of some lanes uses the host's memory.
struct Session::MemoryPlan {
  Stream::Queries queries;
  QueryFrames::States states;
  uint64_t places;  // QueryFrames' for lanes that are asked; 0: they are asked where they are
  uint64_t each;    // bytes of every lane
  uint64_t shared;  // bytes of all together
};

struct Session::Contents {
  explicit Contents(std::variant<QueryMemory<float>, QueryMemory<double>> query_memory)
      : memory_of_queries(std::move(query_memory)) {}

  std::shared_ptr<const Model> model;
  MemoryClaim memory;
  Execution execution;
  std::variant<QueryMemory<float>, QueryMemory<double>> memory_of_queries;
  std::vector<Lane> lanes;
  // Where lanes are asked: of a model on a device, or where there are more than answer together;
  // otherwise each in its own memory.
  std::optional<QueryFrames> query_frames;
  bool empty_cache_is_normalised = false;
  std::vector<StreamFrame> frames;  // of the lanes that step; as many as there are lanes at most
  std::vector<uint8_t> is_named;    // by lane: named in the call so far
};

// Gives the frame of a stream that is about to be asked the memory in which it is, with what was
// computed about its last token; or, where other lanes have had that memory since, as if nothing
// had been.
template <class T>
Status Session::FindPlace(Distribution<T>& distribution, StreamFrame& frame) {
  if (!contents_->query_frames) return Status();
  const bool had = contents_->query_frames->Take(frame);
  if (contents_->execution.device) return had ? Status() : distribution.FetchOpened(frame);
  if (!had) distribution.Invalidate();
  return Status();
}

namespace session {

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

inline Status OutOfMemory() { return Status(KINGLET_OUT_OF_MEMORY, "session: out of memory"); }

inline Status NoTokenYet() {
  return Status::Refusal(KINGLET_NO_TOKEN_YET, "session", "query", "at least one token before it",
                         "none");
}

inline Status CheckTemperature(double temperature) {
  if (temperature >= 0 && !std::isinf(temperature)) return Status();
  return Invalid("temperature", "a finite number of at least 0", std::to_string(temperature));
}

}  // namespace session

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_PARTS_H_
