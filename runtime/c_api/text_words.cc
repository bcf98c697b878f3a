// Queries about the text that follows, through the C interface.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/words.h"
#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"
#include "runtime/c_api/next_characters.h"
#include "runtime/text_prefix.h"

namespace kinglet {
namespace {

// A question about the text that follows a lane.
struct TextQuestion {
  TextPrefix* texts;
  std::string_view prefix;
};

Result<TextQuestion> ReadQuestion(const char* function, kinglet_session* session,
                                  const char* prefix, uint64_t length) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "session", session));
  KINGLET_ASSIGN_OR_RETURN(const std::string_view text, ReadPrefix(function, prefix, length));
  if (!session->text_prefix) {
    KINGLET_ASSIGN_OR_RETURN(TextPrefix made, TextPrefix::Create(session->session->model()));
    session->text_prefix.emplace(std::move(made));
  }
  return TextQuestion{&*session->text_prefix, text};
}

void WriteSteps(const TextPrefix& texts, uint64_t* steps) {
  if (steps != nullptr) *steps = texts.steps();
}

}  // namespace
}  // namespace kinglet

using kinglet::Guard;
using kinglet::ReadQuestion;
using kinglet::RequirePointer;
using kinglet::Status;
using kinglet::WriteSteps;

kinglet_status kinglet_session_text_probability(kinglet_session* session, uint32_t lane,
                                                const char* prefix, uint64_t length,
                                                uint64_t most_steps, double* out, uint64_t* steps) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(const auto question, ReadQuestion(function, session, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(
        *out, question.texts->Probability(*session->session, lane, question.prefix, most_steps));
    WriteSteps(*question.texts, steps);
    return Status();
  });
}

kinglet_status kinglet_session_text_next_characters(kinglet_session* session, uint32_t lane,
                                                    const char* prefix, uint64_t length,
                                                    uint64_t most_steps, uint32_t* characters,
                                                    double* probabilities, uint64_t capacity,
                                                    uint32_t* count, uint64_t* steps) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto question, ReadQuestion(function, session, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(
        const auto next,
        question.texts->NextCharacters(*session->session, lane, question.prefix, most_steps));
    WriteSteps(*question.texts, steps);
    return kinglet::WriteNextCharacters(function, next, characters, probabilities, capacity, count);
  });
}

kinglet_status kinglet_session_text_words(kinglet_session* session, uint32_t lane,
                                          const char* prefix, uint64_t length, uint32_t k,
                                          uint32_t beam, uint64_t most_steps, char* buffer,
                                          uint64_t capacity, uint64_t* needed, uint64_t* offsets,
                                          double* log_probabilities, uint32_t* count,
                                          uint64_t* steps) {
  const char* const function = __func__;
  return Guard([&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto question, ReadQuestion(function, session, prefix, length));
    KINGLET_ASSIGN_OR_RETURN(
        const auto words,
        question.texts->Best(*session->session, lane, question.prefix, {k, beam, most_steps}));
    std::string texts;
    std::vector<uint64_t> begins;
    for (const kinglet::TextCompletion& word : words) {
      begins.push_back(texts.size());
      texts += word.text;
      texts += '\0';
    }
    begins.push_back(texts.size());
    // No allocation may follow, because one that fails would leave outputs half written.
    WriteSteps(*question.texts, steps);
    if (count != nullptr) *count = static_cast<uint32_t>(words.size());
    if (log_probabilities != nullptr) {
      std::transform(words.begin(), words.end(), log_probabilities,
                     [](const kinglet::TextCompletion& word) { return word.log_probability; });
    }
    return kinglet::CopyTexts(function, texts, begins, buffer, capacity, needed, offsets);
  });
}
