// Models through the C interface.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/special_tokens.h"

namespace kinglet {
namespace {

static_assert(static_cast<int32_t>(LogLevel::kInfo) == KINGLET_LOG_INFO &&
              static_cast<int32_t>(LogLevel::kWarning) == KINGLET_LOG_WARNING);

// The size of the structure's first version, which is this one.
constexpr uint32_t kSmallestModelOptions = sizeof(kinglet_model_options);

Result<ModelOptions> ReadModelOptions(const char* function, const kinglet_model_options* given) {
  KINGLET_ASSIGN_OR_RETURN(const kinglet_model_options options,
                           ReadOptions(function, given, kSmallestModelOptions));
  if (options.reserved != 0) {
    return Invalid(function, "options->reserved", "0", std::to_string(options.reserved));
  }
  ModelOptions result;
  if (options.backend != nullptr) result.backend = options.backend;
  const auto addressable = [](uint64_t limit) { return std::min(limit, MemoryBudget::kNoLimit); };
  if (options.session_memory_limit != 0) {
    result.session_memory_limit = addressable(options.session_memory_limit);
  }
  if (options.memory_limit != 0) result.memory_limit = addressable(options.memory_limit);
  if (options.log != nullptr) {
    result.log = [log = options.log, user = options.log_user](LogLevel level,
                                                              const std::string& message) {
      log(user, static_cast<int32_t>(level), message.c_str());
    };
  }
  return result;
}

Result<const Vocabulary*> TokensOf(const char* function, const kinglet_model* model) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
  const Vocabulary* vocabulary = model->model->vocabulary();
  if (vocabulary == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, function, "model", "a model with words",
                           "one that has ids only");
  }
  return vocabulary;
}

// A property that not every model has. KINGLET_UNSUPPORTED, with `expected`, for a model without.
Result<uint32_t> Known(const char* function, const char* expected,
                       const std::optional<uint32_t>& fact) {
  if (fact) return *fact;
  return Status::Refusal(KINGLET_UNSUPPORTED, function, "model", expected, "another");
}

Status RequireId(const char* function, uint32_t id, uint32_t vocabulary_size) {
  if (id < vocabulary_size) return Status();
  return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, function, "id",
                         "an id below " + std::to_string(vocabulary_size), std::to_string(id));
}

// Joins all words with a NUL after each, and records where words begin and the last one ends.
void AppendTexts(const Vocabulary& words, std::string& texts, std::vector<uint64_t>& offsets) {
  for (uint32_t id = 0; id < words.size(); ++id) {
    offsets.push_back(texts.size());
    texts += words.Word(id);
    texts += '\0';
  }
  offsets.push_back(texts.size());
}

Result<std::optional<uint32_t>> SpecialToken(const char* function, const Model& model,
                                             uint32_t which) {
  const SpecialTokens words = SpecialTokensOf(model);
  switch (which) {
    case KINGLET_TOKEN_UNKNOWN:
      return words.unknown;
    case KINGLET_TOKEN_BEGIN:
      return words.begin;
    case KINGLET_TOKEN_END_OF_LINE:
      return words.end_of_line;
    default:
      return Invalid(function, "which", "a kinglet_special_token", std::to_string(which));
  }
}

}  // namespace
}  // namespace kinglet

using kinglet::CopyText;
using kinglet::Get;
using kinglet::Guard;
using kinglet::ReadCount;
using kinglet::RequireId;
using kinglet::RequirePointer;
using kinglet::Status;

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
    KINGLET_ASSIGN_OR_RETURN(const size_t count, ReadCount(function, "size", size, 1));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::ModelOptions model_options,
                             kinglet::ReadModelOptions(function, options));
    const std::span<const std::byte> span(static_cast<const std::byte*>(bytes), count);
    return kinglet::Publish(kinglet::Model::FromBytes(span, model_options), out);
  });
}

void kinglet_model_close(kinglet_model* model) { kinglet::Destroy(model); }

kinglet_status kinglet_model_vocabulary_size(const kinglet_model* model, uint32_t* out) {
  return Get(__func__, "model", model, out, [&] { return model->model->vocabulary_size(); });
}

kinglet_status kinglet_model_start_token(const kinglet_model* model, uint32_t* out) {
  const char* const function = __func__;
  return Get(function, "model", model, out, [&] {
    return kinglet::Known(function, "a model with a start token",
                          model->model->file().description().start_token);
  });
}

kinglet_status kinglet_model_positions(const kinglet_model* model, uint32_t* out) {
  const char* const function = __func__;
  return Get(function, "model", model, out, [&] {
    return kinglet::Known(function, "a model with absolute positions",
                          kinglet::PositionsOf(model->model->file().description()));
  });
}

kinglet_status kinglet_model_has_words(const kinglet_model* model, int32_t* out) {
  return Get(__func__, "model", model, out, [&] { return model->model->vocabulary() != nullptr; });
}

kinglet_status kinglet_model_token_text(const kinglet_model* model, uint32_t id, char* buffer,
                                        uint64_t capacity, uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const kinglet::Vocabulary* words, kinglet::TokensOf(function, model));
    KINGLET_RETURN_IF_ERROR(RequireId(function, id, words->size()));
    return CopyText(function, words->Word(id), buffer, capacity, needed);
  });
}

kinglet_status kinglet_model_token_texts(const kinglet_model* model, char* buffer,
                                         uint64_t capacity, uint64_t* needed, uint64_t* offsets) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const kinglet::Vocabulary* words, kinglet::TokensOf(function, model));
    const uint64_t size = words->word_bytes() + words->size();  // with a NUL each
    const uint64_t offset_bytes = (uint64_t{words->size()} + 1) * sizeof(uint64_t);
    KINGLET_ASSIGN_OR_RETURN(
        const kinglet::MemoryClaim memory,
        kinglet::ClaimMemory(model->model->budget(), size + offset_bytes, function, "texts"));
    std::string texts;
    std::vector<uint64_t> begins;
    texts.reserve(size);
    begins.reserve(uint64_t{words->size()} + 1);
    kinglet::AppendTexts(*words, texts, begins);
    return kinglet::CopyTexts(function, texts, begins, buffer, capacity, needed, offsets);
  });
}

kinglet_status kinglet_model_special_token(const kinglet_model* model, uint32_t which,
                                           uint32_t* out) {
  const char* const function = __func__;
  return Get(function, "model", model, out, [&]() -> kinglet::Result<uint32_t> {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<uint32_t> token,
                             kinglet::SpecialToken(function, *model->model, which));
    return kinglet::Known(function, "a model with this special word", token);
  });
}

kinglet_status kinglet_model_find_token(const kinglet_model* model, const char* text,
                                        uint64_t length, uint32_t* id) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "text", text));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "id", id));
    KINGLET_ASSIGN_OR_RETURN(const kinglet::Vocabulary* words, kinglet::TokensOf(function, model));
    return kinglet::FindWord(function, *words, text, length, id);
  });
}

kinglet_status kinglet_model_spells(const kinglet_model* model, int32_t* out) {
  return Get(__func__, "model", model, out, [&] { return model->model->spells(); });
}

kinglet_status kinglet_model_spell(const kinglet_model* model, const char* text, uint64_t length,
                                   uint32_t* number) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "text", text));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "number", number));
    KINGLET_ASSIGN_OR_RETURN(const size_t bytes, ReadCount(function, "length", length, 1));
    KINGLET_ASSIGN_OR_RETURN(*number, model->model->Spell({text, bytes}));
    return {};
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

kinglet_status kinglet_model_backend(const kinglet_model* model, char* buffer, uint64_t capacity,
                                     uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    return CopyText(function, model->model->backend().name, buffer, capacity, needed);
  });
}

kinglet_status kinglet_model_lane_bytes(const kinglet_model* model, uint64_t* out) {
  return Get(__func__, "model", model, out,
             [&] { return kinglet::Session::BytesPerLane(*model->model); });
}

kinglet_status kinglet_model_state_bytes(const kinglet_model* model, uint64_t* out) {
  return Get(__func__, "model", model, out,
             [&] { return kinglet::State::LargestBlobBytes(*model->model); });
}
