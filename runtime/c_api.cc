// The C interface over Model and Session. Each function is one Guard: inside it C++ as everywhere
// else in the project, outside it a number and the thread's error text.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "runtime/model.h"
#include "runtime/session.h"

struct kinglet_model {
  std::shared_ptr<const kinglet::Model> model;
};

struct kinglet_session {
  std::unique_ptr<kinglet::Session> session;
};

namespace kinglet {
namespace {

static_assert(KINGLET_SOVERSION == KINGLET_ABI_VERSION,
              "the project's major version and KINGLET_ABI_VERSION change together");

// Larger claims come from memory that was never initialised; believing them would read beyond it.
constexpr uint32_t kLargestOptions = 4096;

// Static storage, so that reporting "out of memory" needs none.
thread_local char error_text[1024] = "";

kinglet_status Fail(kinglet_status code, std::string_view message) noexcept {
  size_t length = std::min(message.size(), sizeof error_text - 1);
  if (length < message.size()) {  // not in the middle of a UTF-8 character
    while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0) == 0x80) --length;
  }
  for (size_t i = 0; i < length; ++i) {  // one line, whatever a path or a word holds
    const auto byte = static_cast<unsigned char>(message[i]);
    error_text[i] = byte < 0x20 || byte == 0x7F ? '?' : message[i];
  }
  error_text[length] = '\0';
  return code;
}

// Runs `body`, which returns a Status, and turns whatever happens into a kinglet_status.
template <class Body>
kinglet_status Guard(Body&& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? KINGLET_OK : Fail(status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return Fail(KINGLET_OUT_OF_MEMORY,
                "kinglet: memory: expected more, found that the system has none left");
  } catch (const std::exception& exception) {
    return Fail(KINGLET_INTERNAL, exception.what());
  } catch (...) {
    return Fail(KINGLET_INTERNAL, "kinglet: expected no exception, found one of unknown type");
  }
}

Status Invalid(const char* function, const char* argument, const std::string& expected,
               const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, function, argument, expected, found);
}

Status RequirePointer(const char* function, const char* argument, const void* pointer) {
  return pointer != nullptr ? Status() : Invalid(function, argument, "a pointer", "NULL");
}

// A caller's structure, of whatever size the caller was compiled with, as this library's: fields
// the caller does not have are zero, the default; fields the library does not have must be.
template <class Options>
Result<Options> ReadOptions(const char* function, const Options* given) {
  Options options{};
  if (given == nullptr) return options;
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  uint32_t size = 0;
  std::memcpy(&size, bytes, sizeof size);
  if (size < sizeof options || size > kLargestOptions) {
    return Invalid(function, "options->struct_size",
                   std::to_string(sizeof options) + " .. " + std::to_string(kLargestOptions),
                   std::to_string(size));
  }
  std::memcpy(&options, bytes, sizeof options);
  for (size_t i = sizeof options; i < size; ++i) {
    if (bytes[i] != 0) {
      return Invalid(function, "options",
                     "zeros after byte " + std::to_string(sizeof options) +
                         ", where this library knows no field",
                     std::to_string(bytes[i]) + " at byte " + std::to_string(i));
    }
  }
  return options;
}

template <class Options>
kinglet_status InitOptions(const char* function, Options* options, uint32_t struct_size) noexcept {
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "options", options));
    if (struct_size < sizeof(uint32_t) || struct_size > kLargestOptions) {
      return Invalid(function, "struct_size", "4 .. " + std::to_string(kLargestOptions),
                     std::to_string(struct_size));
    }
    auto* bytes = reinterpret_cast<unsigned char*>(options);
    std::fill_n(bytes, struct_size, static_cast<unsigned char>(0));
    std::memcpy(bytes, &struct_size, sizeof struct_size);
    return Status();
  });
}

Result<ModelOptions> ReadModelOptions(const char* function, const kinglet_model_options* given) {
  KINGLET_ASSIGN_OR_RETURN(const kinglet_model_options options, ReadOptions(function, given));
  if (options.reserved != 0) {
    return Invalid(function, "options->reserved", "0", std::to_string(options.reserved));
  }
  ModelOptions result;
  if (options.backend != nullptr) result.backend = options.backend;
  if (options.session_memory_limit != 0) result.session_memory_limit = options.session_memory_limit;
  return result;
}

// Hands `model` to the caller as a handle.
Status Publish(Result<std::shared_ptr<const Model>> model, kinglet_model** out) {
  if (!model.ok()) return model.status();
  *out = std::make_unique<kinglet_model>(kinglet_model{std::move(model).value()}).release();
  return Status();
}

// Copies text and a NUL by the interface's rule for buffers.
Status CopyText(const char* function, std::string_view text, char* buffer, uint64_t capacity,
                uint64_t* needed) {
  const uint64_t bytes = uint64_t{text.size()} + 1;
  if (buffer != nullptr && capacity < bytes) {
    Status status = Status::Refusal(KINGLET_BUFFER_TOO_SMALL, function, "capacity",
                                    "at least " + std::to_string(bytes), std::to_string(capacity));
    if (needed != nullptr) *needed = bytes;
    return status;
  }
  if (buffer != nullptr) {
    std::copy(text.begin(), text.end(), buffer);
    buffer[text.size()] = '\0';
  }
  if (needed != nullptr) *needed = bytes;
  return Status();
}

Result<const Vocabulary*> WordsOf(const char* function, const kinglet_model* model) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
  const Vocabulary* vocabulary = model->model->vocabulary();
  if (vocabulary == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, function, "model", "a model with words",
                           "one that has ids only");
  }
  return vocabulary;
}

Status RequireId(const char* function, uint32_t id, uint32_t vocabulary_size) {
  if (id < vocabulary_size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, function, "id",
                         "an id below " + std::to_string(vocabulary_size), std::to_string(id));
}

}  // namespace
}  // namespace kinglet

using kinglet::CopyText;
using kinglet::Guard;
using kinglet::Invalid;
using kinglet::RequireId;
using kinglet::RequirePointer;
using kinglet::Result;
using kinglet::Status;

uint32_t kinglet_abi_version(void) { return KINGLET_ABI_VERSION; }

const char* kinglet_version_string(void) { return KINGLET_VERSION; }

const char* kinglet_status_name(kinglet_status status) {
  switch (static_cast<kinglet_status_code>(status)) {
    case KINGLET_OK:
      return "KINGLET_OK";
    case KINGLET_INVALID_ARGUMENT:
      return "KINGLET_INVALID_ARGUMENT";
    case KINGLET_ID_OUT_OF_RANGE:
      return "KINGLET_ID_OUT_OF_RANGE";
    case KINGLET_UNKNOWN_WORD:
      return "KINGLET_UNKNOWN_WORD";
    case KINGLET_BUFFER_TOO_SMALL:
      return "KINGLET_BUFFER_TOO_SMALL";
    case KINGLET_NOT_FOUND:
      return "KINGLET_NOT_FOUND";
    case KINGLET_IO_ERROR:
      return "KINGLET_IO_ERROR";
    case KINGLET_CORRUPT:
      return "KINGLET_CORRUPT";
    case KINGLET_UNSUPPORTED_VERSION:
      return "KINGLET_UNSUPPORTED_VERSION";
    case KINGLET_INVALID_MODEL:
      return "KINGLET_INVALID_MODEL";
    case KINGLET_INVALID_CHECKPOINT:
      return "KINGLET_INVALID_CHECKPOINT";
    case KINGLET_OUT_OF_MEMORY:
      return "KINGLET_OUT_OF_MEMORY";
    case KINGLET_NO_TOKEN_YET:
      return "KINGLET_NO_TOKEN_YET";
    case KINGLET_CANCELLED:
      return "KINGLET_CANCELLED";
    case KINGLET_UNSUPPORTED:
      return "KINGLET_UNSUPPORTED";
    case KINGLET_NOT_FINITE:
      return "KINGLET_NOT_FINITE";
    case KINGLET_MISMATCH:
      return "KINGLET_MISMATCH";
    case KINGLET_INTERNAL:
      return "KINGLET_INTERNAL";
  }
  return "unknown status";
}

const char* kinglet_error_message(void) { return kinglet::error_text; }

kinglet_status kinglet_model_options_init(kinglet_model_options* options, uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

kinglet_status kinglet_model_open(const char* path, const kinglet_model_options* options,
                                  kinglet_model** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "path", path));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::ModelOptions model_options,
                             kinglet::ReadModelOptions(function, options));
    return kinglet::Publish(kinglet::Model::Open(path, model_options), out);
  });
}

kinglet_status kinglet_model_open_memory(const void* bytes, uint64_t size,
                                         const kinglet_model_options* options,
                                         kinglet_model** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "bytes", bytes));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    if (size > PTRDIFF_MAX) {
      return Invalid(function, "size", "at most " + std::to_string(PTRDIFF_MAX),
                     std::to_string(size));
    }
    KINGLET_ASSIGN_OR_RETURN(const kinglet::ModelOptions model_options,
                             kinglet::ReadModelOptions(function, options));
    const std::span<const std::byte> span(static_cast<const std::byte*>(bytes),
                                          static_cast<size_t>(size));
    return kinglet::Publish(kinglet::Model::FromBytes(span, model_options), out);
  });
}

void kinglet_model_close(kinglet_model* model) { delete model; }

kinglet_status kinglet_model_vocabulary_size(const kinglet_model* model, uint32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    *out = model->model->vocabulary_size();
    return Status();
  });
}

kinglet_status kinglet_model_has_words(const kinglet_model* model, int32_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    *out = model->model->vocabulary() != nullptr ? 1 : 0;
    return Status();
  });
}

kinglet_status kinglet_model_token_text(const kinglet_model* model, uint32_t id, char* buffer,
                                        uint64_t capacity, uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const kinglet::Vocabulary* words, kinglet::WordsOf(function, model));
    KINGLET_RETURN_IF_ERROR(RequireId(function, id, words->size()));
    return CopyText(function, words->Word(id), buffer, capacity, needed);
  });
}

kinglet_status kinglet_model_find_token(const kinglet_model* model, const char* text,
                                        uint64_t length, uint32_t* id) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "text", text));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "id", id));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::Vocabulary* words, kinglet::WordsOf(function, model));
    if (length > PTRDIFF_MAX) {
      return Invalid(function, "length", "at most " + std::to_string(PTRDIFF_MAX),
                     std::to_string(length));
    }
    const std::string_view word(text, static_cast<size_t>(length));
    const std::optional<uint32_t> found = words->Find(word);
    if (!found) {
      return Status::Refusal(KINGLET_UNKNOWN_WORD, function, "text", "a word of the model",
                             "\"" + std::string(word.substr(0, 80)) + "\"");
    }
    *id = *found;
    return Status();
  });
}

kinglet_status kinglet_model_digest(const kinglet_model* model, char* buffer, uint64_t capacity,
                                    uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    return CopyText(function, model->model->file().digest(), buffer, capacity, needed);
  });
}

kinglet_status kinglet_session_options_init(kinglet_session_options* options,
                                            uint32_t struct_size) {
  return kinglet::InitOptions(__func__, options, struct_size);
}

kinglet_status kinglet_session_create(const kinglet_model* model,
                                      const kinglet_session_options* options,
                                      kinglet_session** out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const kinglet_session_options given,
                             kinglet::ReadOptions(function, options));
    if (given.empty_cache > KINGLET_EMPTY_CACHE_NORMALISED) {
      return Invalid(function, "options->empty_cache", "a kinglet_empty_cache",
                     std::to_string(given.empty_cache));
    }
    const kinglet::SessionOptions session_options{
        .empty_cache = given.empty_cache == KINGLET_EMPTY_CACHE_NORMALISED
                           ? kinglet::EmptyCache::kNormalised
                           : kinglet::EmptyCache::kReference};
    KINGLET_ASSIGN_OR_RETURN(std::unique_ptr<kinglet::Session> session,
                             kinglet::Session::Create(model->model, session_options));
    *out = std::make_unique<kinglet_session>(kinglet_session{std::move(session)}).release();
    return Status();
  });
}

void kinglet_session_destroy(kinglet_session* session) { delete session; }

kinglet_status kinglet_session_reset(kinglet_session* session) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    return session->session->Reset();
  });
}

kinglet_status kinglet_session_step(kinglet_session* session, uint32_t id) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    return session->session->StepToken(id);
  });
}

kinglet_status kinglet_session_position(const kinglet_session* session, uint64_t* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    *out = session->session->position();
    return Status();
  });
}

kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t id, double* out) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(*out, session->session->LogProbability(id));
    return Status();
  });
}

kinglet_status kinglet_session_log_probabilities(kinglet_session* session, float* out,
                                                 uint64_t capacity) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    const uint32_t words = session->session->model().vocabulary_size();
    if (capacity < words) {
      return Status::Refusal(KINGLET_BUFFER_TOO_SMALL, function, "capacity",
                             "at least " + std::to_string(words), std::to_string(capacity));
    }
    return session->session->LogProbabilities(std::span<float>(out, words));
  });
}

kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t k, uint32_t* ids,
                                     double* log_probabilities, uint64_t capacity,
                                     uint32_t* count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    const uint32_t wanted = std::min(k, session->session->model().vocabulary_size());
    if (capacity < wanted && (ids != nullptr || log_probabilities != nullptr)) {
      Status status =
          Status::Refusal(KINGLET_BUFFER_TOO_SMALL, function, "capacity",
                          "at least " + std::to_string(wanted), std::to_string(capacity));
      if (count != nullptr) *count = wanted;
      return status;
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<kinglet::Candidate> best,
                             session->session->TopK(wanted));
    for (size_t i = 0; i < best.size(); ++i) {
      if (ids != nullptr) ids[i] = best[i].id;
      if (log_probabilities != nullptr) log_probabilities[i] = best[i].log_probability;
    }
    if (count != nullptr) *count = static_cast<uint32_t>(best.size());
    return Status();
  });
}
