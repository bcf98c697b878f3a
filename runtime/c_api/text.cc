// Tokenizing and detokenizing text through the C interface.
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/text/model_text.h"

namespace kinglet {
namespace {

Result<const ModelText*> TextOfModel(const char* function, const kinglet_model* model) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "model", model));
  const ModelText* text = model->model->text();
  if (text == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, function, "model",
                           "a model with words, or a masked model with a tokenizer "
                           "(kinglet convert --vocab, --tokenizer)",
                           "one without");
  }
  return text;
}

// Tokenizes a caller's text as the model does.
Result<TokenizedText> TokenizeText(const char* function, const kinglet_model* model,
                                   const char* text, uint64_t length) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "text", text));
  KINGLET_ASSIGN_OR_RETURN(const size_t bytes, ReadCount(function, "length", length, 1));
  KINGLET_ASSIGN_OR_RETURN(const ModelText* splitter, TextOfModel(function, model));
  return splitter->Encode(std::string_view(text, bytes));
}

}  // namespace
}  // namespace kinglet

using kinglet::Guard;
using kinglet::RequirePointer;
using kinglet::Status;

kinglet_status kinglet_model_tokenize(const kinglet_model* model, const char* text, uint64_t length,
                                      uint32_t* ids, uint64_t* ranges, uint64_t capacity,
                                      uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const kinglet::TokenizedText tokenized,
                             kinglet::TokenizeText(function, model, text, length));
    KINGLET_ASSIGN_OR_RETURN(
        const bool wanted,
        kinglet::PrepareBuffer(function, tokenized.tokens.size(), ids, capacity, needed));
    if (!wanted) return Status();
    for (size_t i = 0; i < tokenized.tokens.size(); ++i) {
      ids[i] = tokenized.tokens[i].id;
      if (ranges == nullptr) continue;
      ranges[2 * i] = tokenized.tokens[i].begin;
      ranges[2 * i + 1] = tokenized.tokens[i].end;
    }
    return Status();
  });
}

kinglet_status kinglet_model_text_segments(const kinglet_model* model, const char* text,
                                           uint64_t length, uint32_t* segments, uint64_t capacity,
                                           uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const kinglet::TokenizedText tokenized,
                             kinglet::TokenizeText(function, model, text, length));
    KINGLET_ASSIGN_OR_RETURN(
        const bool wanted,
        kinglet::PrepareBuffer(function, tokenized.tokens.size(), segments, capacity, needed));
    if (!wanted) return Status();
    for (size_t i = 0; i < tokenized.tokens.size(); ++i) {
      segments[i] = i < tokenized.segments.size() ? tokenized.segments[i] : 0;
    }
    return Status();
  });
}

kinglet_status kinglet_model_detokenize(const kinglet_model* model, const uint32_t* ids,
                                        uint64_t count, char* buffer, uint64_t capacity,
                                        uint64_t* needed) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "ids", ids));
    KINGLET_ASSIGN_OR_RETURN(const size_t tokens,
                             kinglet::ReadCount(function, "count", count, sizeof *ids));
    KINGLET_ASSIGN_OR_RETURN(const auto* splitter, kinglet::TextOfModel(function, model));
    kinglet::TextDecoder decoder(splitter->tokenizer());
    std::string text;
    for (size_t i = 0; i < tokens; ++i) {
      const uint32_t size = splitter->vocabulary().size();
      if (ids[i] >= size) {
        return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, function, "ids",
                               "ids below " + std::to_string(size), std::to_string(ids[i]));
      }
      text += splitter->Decode(ids[i], decoder);
    }
    text += decoder.Finish();
    return kinglet::CopyText(function, text, buffer, capacity, needed);
  });
}
