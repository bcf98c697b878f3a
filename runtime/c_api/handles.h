// The types of the C interface's handles, and functions on them that several files use.
#ifndef KINGLET_RUNTIME_C_API_HANDLES_H_
#define KINGLET_RUNTIME_C_API_HANDLES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "format/small_build.h"
#include "kinglet/kinglet.h"
#include "runtime/beam.h"
#include "runtime/c_api/guard.h"
#include "runtime/compress/archive_reader.h"
#include "runtime/compress/archive_writer.h"
#include "runtime/embedder.h"
#include "runtime/generator.h"
#include "runtime/model.h"
#include "runtime/ngrams/ngram_model.h"
#include "runtime/session.h"
#include "runtime/state.h"
#include "runtime/text_prefix.h"
#include "runtime/token_scorer.h"
#include "runtime/typing/decoder.h"
#include "runtime/typing/session_predictor.h"

struct kinglet_model {
  std::shared_ptr<const kinglet::Model> model;
};

struct kinglet_session {
  std::unique_ptr<kinglet::Session> session;
  std::optional<kinglet::TextPrefix> text_prefix = std::nullopt;  // made by the first query of text
};

struct kinglet_beam {
  kinglet_beam(std::unique_ptr<kinglet::Session> lanes, uint64_t most_state_bytes,
               std::shared_ptr<const kinglet::TokenScorer> scorer)
      : session(std::move(lanes)), beam(*session, most_state_bytes, std::move(scorer)) {}
  std::unique_ptr<kinglet::Session> session;
  kinglet::Beam beam;
};

struct kinglet_ngrams {
  std::shared_ptr<const kinglet::NgramModel> ngrams;
};

struct kinglet_scorer {
  std::shared_ptr<const kinglet::Model> model;
  kinglet::TokenScorer scorer;
};

struct kinglet_embedding {
  std::unique_ptr<kinglet::Embedder> embedder;
};

struct kinglet_generation {
  kinglet::Generator generator;
};

namespace kinglet {

// Stands for archives where the build leaves them out: none can be created.
template <class Archive>
struct LeftOutArchive {
  static Result<LeftOutArchive> Create(const std::shared_ptr<const Model>& /*model*/,
                                       const typename Archive::Options& /*options*/) {
    return LeftOut("archive", "model", "a library with archives", "one of language models alone");
  }
  void Add(std::span<const std::byte> /*bytes*/) {}
  void EndOfInput() {}
  Status Next(std::vector<std::byte>& /*out*/) { return {}; }
  std::vector<std::string> damages() const { return {}; }
};
template <class Archive>
using CodedArchive = std::conditional_t<kSmallBuild, LeftOutArchive<Archive>, Archive>;

}  // namespace kinglet

struct kinglet_coder {
  using Writer = kinglet::CodedArchive<kinglet::compress::ArchiveWriter>;
  using Reader = kinglet::CodedArchive<kinglet::compress::ArchiveReader>;

  std::optional<std::variant<Writer, Reader>> archive;
  std::vector<std::byte> output;  // of which the caller has the first `taken` bytes
  size_t taken = 0;
  bool is_finished = false, has_failed = false;
  std::atomic<bool> is_cancelled = false;
};

struct kinglet_typing {
#if !defined(KINGLET_SMALL) || defined(KINGLET_TYPING)
  kinglet::typing::TypingDecoder decoder;
  kinglet::typing::SessionPredictor predictor;
#endif
};

struct kinglet_state {
  kinglet::State state;
};

namespace kinglet {

// --- the bodies of most functions; `function` and `name`, the handle's, are named in error texts

// Runs `body`, which returns a Status, if the handle is not NULL.
template <class Handle, class Body>
kinglet_status With(const char* function, const char* name, const Handle* handle,
                    const Body& body) {
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, name, handle));
    return body();
  });
}

// Sets *out to value(), a value or a Result, if neither pointer is NULL.
template <class Handle, class Out, class Value>
kinglet_status Get(const char* function, const char* name, const Handle* handle, Out* out,
                   const Value& value) {
  return With(function, name, handle, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    const Result<Out> found = value();
    if (found.ok()) *out = *found;
    return found.status();
  });
}

// Gives the value to the caller as a handle, which the caller destroys.
template <class Handle, class Value>
Status Publish(Result<Value> value, Handle** out) {
  if (!value.ok()) return value.status();
  *out = std::make_unique<Handle>(Handle{std::move(value).value()}).release();
  return Status();
}

// Writes pairs to a caller's two arrays, each of which may be NULL. *count, unless `count` is NULL,
// becomes their number, even if there is too little room. pair(item) is a std::pair.
template <class Item, class Pair>
Status WritePairs(const char* function, const std::vector<Item>& items, const Pair& pair,
                  uint32_t* first, double* second, uint64_t capacity, uint32_t* count) {
  if (count != nullptr) *count = static_cast<uint32_t>(items.size());
  if (first != nullptr || second != nullptr) {
    KINGLET_RETURN_IF_ERROR(RequireCapacity(function, items.size(), capacity));
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [id, number] = pair(items[i]);
    if (first != nullptr) first[i] = id;
    if (second != nullptr) second[i] = number;
  }
  return Status();
}

// Writes lists of tokens, one after the other, to a caller's two arrays, each of which may be NULL.
inline void WriteRows(const std::vector<std::vector<Candidate>>& rows, uint32_t* ids,
                      double* log_probabilities) {
  size_t entry = 0;
  for (const std::vector<Candidate>& row : rows) {
    for (const Candidate& candidate : row) {
      if (ids != nullptr) ids[entry] = candidate.id;
      if (log_probabilities != nullptr) log_probabilities[entry] = candidate.log_probability;
      ++entry;
    }
  }
}

// --- checks of arguments

// KINGLET_INVALID_ARGUMENT if the session is NULL or has no such lane.
inline Status RequireLane(const char* function, const kinglet_session* session, uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  const uint32_t lanes = session->session->lanes();
  if (lane < lanes) return Status();
  return Invalid(function, "lane", "a number below " + std::to_string(lanes), std::to_string(lane));
}

// A caller's array of `count` elements, which may be NULL if `count` is 0.
template <class T>
Result<std::span<T>> ReadArray(const char* function, const char* name, T* array, uint64_t count) {
  if (count == 0) return std::span<T>();
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, name, array));
  KINGLET_ASSIGN_OR_RETURN(const size_t n, ReadCount(function, "count", count, sizeof *array));
  return std::span<T>(array, n);
}

// The beginning of a word or a text: any bytes.
inline Result<std::string_view> ReadPrefix(const char* function, const char* prefix,
                                           uint64_t length) {
  KINGLET_ASSIGN_OR_RETURN(const auto bytes, ReadArray(function, "prefix", prefix, length));
  return std::string_view(bytes.data(), bytes.size());
}

// Reads a caller's session options; NULL means the defaults.
Result<SessionOptions> ReadSessionOptions(const char* function,
                                          const kinglet_session_options* given);

// Reads a caller's draw options; NULL means the defaults. The session checks their ranges.
Result<DrawOptions> ReadDrawOptions(const char* function, const kinglet_draw_options* given);

// Sets *id to the id of the word whose text is these `length` bytes. KINGLET_UNKNOWN_WORD.
inline Status FindWord(const char* function, const Vocabulary& words, const char* text,
                       uint64_t length, uint32_t* id) {
  KINGLET_ASSIGN_OR_RETURN(const size_t bytes, ReadCount(function, "length", length, 1));
  const std::string_view word(text, bytes);
  const std::optional<uint32_t> found = words.Find(word);
  if (!found) {
    return Status::Refusal(KINGLET_UNKNOWN_WORD, function, "text", "a word of the model",
                           "\"" + std::string(word.substr(0, 80)) + "\"");
  }
  *id = *found;
  return Status();
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_C_API_HANDLES_H_
