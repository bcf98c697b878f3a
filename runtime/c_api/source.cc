// Models with an encoder, through the C interface: the source of a translation.
#include <optional>
#include <string>
#include <string_view>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

using kinglet::Get;
using kinglet::Guard;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_model_source_vocabulary_size(const kinglet_model* model, uint32_t* out) {
  return Get(__func__, "model", model, out,
             [&] { return kinglet::SourceVocabularySize(model->model->file().description()); });
}

kinglet_status kinglet_model_longest_source(const kinglet_model* model, uint32_t* out) {
  return Get(__func__, "model", model, out, [&] {
    const auto& encoder = model->model->plan().encoder;
    return encoder ? encoder->window : 0;
  });
}

kinglet_status kinglet_model_find_source_token(const kinglet_model* model, const char* text,
                                               uint64_t length, uint32_t* id) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "text", text));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "id", id));
    const kinglet::Vocabulary* words = model->model->file().source_vocabulary();
    if (words == nullptr) {
      return Status::Refusal(KINGLET_UNSUPPORTED, function, "model",
                             "a model with words of a source", "one without");
    }
    return kinglet::FindWord(function, *words, text, length, id);
  });
}

kinglet_status kinglet_session_encode(kinglet_session* session, uint32_t lane,
                                      const uint32_t* source, uint64_t count) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "source", source));
    KINGLET_ASSIGN_OR_RETURN(const size_t n,
                             kinglet::ReadCount(function, "count", count, sizeof *source));
    return session->session->Encode({source, n}, lane);
  });
}
