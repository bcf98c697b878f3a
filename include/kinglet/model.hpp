// Models, and how answers of the C interface become values: a part of kinglet.hpp, which includes
// this file.
#ifndef KINGLET_MODEL_HPP_
#define KINGLET_MODEL_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "kinglet/status.h"

namespace kinglet {
inline namespace api {

// kinglet_model_options with every field at its default.
struct ModelOptions : kinglet_model_options {
  ModelOptions() : kinglet_model_options() { struct_size = sizeof(kinglet_model_options); }
};

// A token of a text, which is bytes [begin, end) of the text.
struct TextToken {
  uint32_t id;
  uint64_t begin, end;
};

// A token and its natural log-probability.
struct Candidate {
  uint32_t id;
  double log_probability;
};

// The status that a function of the C interface returned, with the thread's error text.
inline Status StatusOf(kinglet_status status) {
  if (status == KINGLET_OK) return Status();
  return Status(static_cast<StatusCode>(status), kinglet_error_message());
}

// `value` if the call that was to set it succeeded, otherwise the call's error.
template <class T>
Result<T> ResultOf(kinglet_status status, T value) {
  if (status != KINGLET_OK) return StatusOf(status);
  return value;
}

// The text that write(buffer, capacity, needed) writes as kinglet_model_token_text does. `write` is
// called twice: for the size, then for the text.
template <class Write>
Result<std::string> TextOf(const Write& write) {
  uint64_t needed = 0;
  if (const kinglet_status status = write(nullptr, 0, &needed); status != KINGLET_OK) {
    return StatusOf(status);
  }
  std::string text(static_cast<size_t>(needed), '\0');
  const kinglet_status status = write(text.data(), needed, &needed);
  text.pop_back();  // the NUL
  return ResultOf(status, std::move(text));
}

// A verified model. Move-only. Immutable: any number of threads may use one at the same time.
class Model {
 public:
  static Result<Model> Open(const std::string& path, const ModelOptions& options = {}) {
    kinglet_model* model = nullptr;
    const kinglet_status status = kinglet_model_open(path.c_str(), &options, &model);
    return ResultOf(status, Model(model));
  }
  static Result<Model> OpenMemory(const void* bytes, size_t size,
                                  const ModelOptions& options = {}) {
    kinglet_model* model = nullptr;
    const kinglet_status status = kinglet_model_open_memory(bytes, size, &options, &model);
    return ResultOf(status, Model(model));
  }

  Result<uint32_t> VocabularySize() const {
    uint32_t size = 0;
    const kinglet_status status = kinglet_model_vocabulary_size(get(), &size);
    return ResultOf(status, size);
  }
  Result<uint32_t> StartToken() const {
    uint32_t id = 0;
    const kinglet_status status = kinglet_model_start_token(get(), &id);
    return ResultOf(status, id);
  }
  Result<uint32_t> Positions() const {
    uint32_t positions = 0;
    const kinglet_status status = kinglet_model_positions(get(), &positions);
    return ResultOf(status, positions);
  }
  Result<bool> HasWords() const {
    int32_t has_words = 0;
    const kinglet_status status = kinglet_model_has_words(get(), &has_words);
    return ResultOf(status, has_words != 0);
  }
  Result<std::string> TokenText(uint32_t id) const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_token_text(get(), id, buffer, capacity, needed);
    });
  }
  // The texts of all tokens; element i of the answer is that of token i.
  Result<std::vector<std::string>> TokenTexts() const {
    uint64_t needed = 0;
    const Result<uint32_t> words = VocabularySize();
    kinglet_status status = kinglet_model_token_texts(get(), nullptr, 0, &needed, nullptr);
    if (!words.ok() || status != KINGLET_OK) return StatusOf(status);
    std::string all(static_cast<size_t>(needed), '\0');
    std::vector<uint64_t> offsets(*words + size_t{1});
    status = kinglet_model_token_texts(get(), all.data(), needed, nullptr, offsets.data());
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<std::string> texts;
    texts.reserve(*words);
    for (size_t i = 0; i < *words; ++i) {
      texts.push_back(all.substr(offsets[i], offsets[i + 1] - offsets[i] - 1));
    }
    return texts;
  }
  Result<uint32_t> SpecialToken(kinglet_special_token which) const {
    uint32_t id = 0;
    const kinglet_status status = kinglet_model_special_token(get(), which, &id);
    return ResultOf(status, id);
  }
  Result<uint32_t> FindToken(std::string_view text) const {
    uint32_t id = 0;
    // data() of an empty view may be null, which the C interface refuses.
    const char* const bytes = text.empty() ? "" : text.data();
    const kinglet_status status = kinglet_model_find_token(get(), bytes, text.size(), &id);
    return ResultOf(status, id);
  }
  Result<bool> Spells() const {
    int32_t spells = 0;
    const kinglet_status status = kinglet_model_spells(get(), &spells);
    return ResultOf(status, spells != 0);
  }
  // The number by which sessions read a word (kinglet_model_spell).
  Result<uint32_t> Spell(std::string_view word) const {
    uint32_t number = 0;
    const char* const bytes = word.empty() ? "" : word.data();
    const kinglet_status status = kinglet_model_spell(get(), bytes, word.size(), &number);
    return ResultOf(status, number);
  }
  // The tokens of a text, as kinglet_model_tokenize splits it.
  Result<std::vector<TextToken>> Tokenize(std::string_view text) const {
    const char* const bytes = text.empty() ? "" : text.data();
    uint64_t count = 0;
    kinglet_status status =
        kinglet_model_tokenize(get(), bytes, text.size(), nullptr, nullptr, 0, &count);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<uint32_t> ids(count);
    std::vector<uint64_t> ranges(2 * count);
    status = kinglet_model_tokenize(get(), bytes, text.size(), ids.data(), ranges.data(), count,
                                    nullptr);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<TextToken> tokens;
    for (size_t i = 0; i < ids.size(); ++i) {
      tokens.push_back({ids[i], ranges[2 * i], ranges[2 * i + 1]});
    }
    return tokens;
  }
  Result<std::string> Detokenize(const std::vector<uint32_t>& ids) const {
    const uint32_t none = 0;
    const uint32_t* const first = ids.empty() ? &none : ids.data();
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_detokenize(get(), first, ids.size(), buffer, capacity, needed);
    });
  }
  // The segment of each token that Tokenize makes of the text; "A ||| B" is a pair of texts.
  Result<std::vector<uint32_t>> TextSegments(std::string_view text) const {
    const char* const bytes = text.empty() ? "" : text.data();
    uint64_t count = 0;
    kinglet_status status =
        kinglet_model_text_segments(get(), bytes, text.size(), nullptr, 0, &count);
    if (status != KINGLET_OK) return StatusOf(status);
    std::vector<uint32_t> segments(count);
    uint32_t none = 0;
    status = kinglet_model_text_segments(
        get(), bytes, text.size(), segments.empty() ? &none : segments.data(), count, nullptr);
    return ResultOf(status, std::move(segments));
  }
  // The most tokens of a source to translate, or of a masked model's text; 0 for any other model.
  Result<uint32_t> LongestSource() const {
    uint32_t tokens = 0;
    const kinglet_status status = kinglet_model_longest_source(get(), &tokens);
    return ResultOf(status, tokens);
  }
  // Masked models: the number of elements of a text's pooled vector; 0 for a model without a
  // pooler.
  Result<uint32_t> PooledWidth() const {
    uint32_t width = 0;
    const kinglet_status status = kinglet_model_pooled_width(get(), &width);
    return ResultOf(status, width);
  }
  // Masked models: the number of scores of a text or token; 0 for a model without scores.
  Result<uint32_t> ScoreCount() const {
    uint32_t count = 0;
    const kinglet_status status = kinglet_model_score_count(get(), &count);
    return ResultOf(status, count);
  }
  // The size of the source's vocabulary; 0 for a model without an encoder.
  Result<uint32_t> SourceVocabularySize() const {
    uint32_t size = 0;
    const kinglet_status status = kinglet_model_source_vocabulary_size(get(), &size);
    return ResultOf(status, size);
  }
  Result<uint32_t> FindSourceToken(std::string_view text) const {
    uint32_t id = 0;
    const char* const bytes = text.empty() ? "" : text.data();
    const kinglet_status status = kinglet_model_find_source_token(get(), bytes, text.size(), &id);
    return ResultOf(status, id);
  }
  Result<std::string> Digest() const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_digest(get(), buffer, capacity, needed);
    });
  }
  Result<std::string> Backend() const {
    return TextOf([&](char* buffer, uint64_t capacity, uint64_t* needed) {
      return kinglet_model_backend(get(), buffer, capacity, needed);
    });
  }
  Result<uint64_t> LaneBytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_model_lane_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }
  Result<uint64_t> StateBytes() const {
    uint64_t bytes = 0;
    const kinglet_status status = kinglet_model_state_bytes(get(), &bytes);
    return ResultOf(status, bytes);
  }

  // The C handle, which this object still owns.
  kinglet_model* get() const { return model_.get(); }

 private:
  struct Close {
    void operator()(kinglet_model* model) const { kinglet_model_close(model); }
  };
  explicit Model(kinglet_model* model) : model_(model) {}
  std::unique_ptr<kinglet_model, Close> model_;
};

}  // namespace api
}  // namespace kinglet

#endif  // KINGLET_MODEL_HPP_
