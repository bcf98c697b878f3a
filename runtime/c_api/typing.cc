// Typing through the C interface.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "format/system.h"
#include "runtime/c_api/guard.h"
#include "runtime/c_api/handles.h"

kinglet_status kinglet_typing_input_init(kinglet_typing_input* input, uint32_t struct_size) {
  const kinglet_status status = kinglet::InitOptions(__func__, input, struct_size);
  if (status != KINGLET_OK || struct_size < sizeof *input) return status;
  const kinglet::typing::ErrorCosts errors;
  input->insertion = errors.insertion;
  input->deletion = errors.deletion;
  input->transposition = errors.transposition;
  input->substitution = errors.substitution;
  input->missing_space = errors.missing_space;
  return status;
}

void kinglet_typing_destroy(kinglet_typing* typing) { kinglet::Destroy(typing); }

#if defined(KINGLET_SMALL) && !defined(KINGLET_TYPING)

// A decoder takes more code than a small library has room for (docs/TYPING.md), so that no handle
// exists.
kinglet_status kinglet_typing_create(const kinglet_model* /*model*/, kinglet_typing** /*out*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_set_blocked(kinglet_typing* /*typing*/, const char* /*texts*/,
                                          const uint64_t* /*offsets*/, uint64_t /*count*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_set_allowed(kinglet_typing* /*typing*/, const char* /*texts*/,
                                          const uint64_t* /*offsets*/, uint64_t /*count*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_prepare(kinglet_typing* /*typing*/, kinglet_session* /*session*/,
                                      uint32_t /*lane*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_find(kinglet_typing* /*typing*/, kinglet_session* /*session*/,
                                   uint32_t /*lane*/, const kinglet_typing_input* /*input*/,
                                   uint32_t /*k*/, char* /*buffer*/, uint64_t /*capacity*/,
                                   uint64_t* /*needed*/, uint64_t* /*offsets*/,
                                   double* /*log_probabilities*/, double* /*costs*/,
                                   uint32_t* /*kinds*/, uint32_t* /*count*/,
                                   int32_t* /*complete*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_open_words(kinglet_typing* /*typing*/, const char* /*path*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_learn(kinglet_typing* /*typing*/, const char* /*before*/,
                                    const char* /*word*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_unlearn(kinglet_typing* /*typing*/, const char* /*word*/,
                                      uint64_t* /*removed*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_forget(kinglet_typing* /*typing*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_list(kinglet_typing* /*typing*/, uint64_t /*most*/, char* /*buffer*/,
                                   uint64_t /*capacity*/, uint64_t* /*needed*/,
                                   uint64_t* /*offsets*/, uint64_t* /*uses*/, uint64_t* /*count*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

kinglet_status kinglet_typing_set_weights(kinglet_typing* /*typing*/, double /*user*/,
                                          double /*spelling*/) {
  return kinglet::WithoutPart(__func__, "typing");
}

#else

namespace kinglet {
namespace {

using typing::Capitals;
using typing::kMostTouches;
using typing::TypingQuestion;

// The size of the structure's first version, which is this one.
constexpr uint32_t kSmallestTypingInput = sizeof(kinglet_typing_input);

Result<kinglet_typing_input> ReadInput(const char* function, const kinglet_typing_input* given) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "input", given));
  KINGLET_ASSIGN_OR_RETURN(const kinglet_typing_input input,
                           ReadOptions(function, given, kSmallestTypingInput));
  const std::pair<const char*, uint32_t> numbers[] = {{"input->capitals", input.capitals},
                                                      {"input->finished", input.finished},
                                                      {"input->touches", input.touches}};
  const uint32_t most[] = {KINGLET_CAPITALS_ALL, 1, kMostTouches};
  for (size_t i = 0; i < std::size(most); ++i) {
    const auto [name, number] = numbers[i];
    if (number > most[i]) {
      return Invalid(function, name, "at most " + std::to_string(most[i]), std::to_string(number));
    }
  }
  return input;
}

Status CheckCost(const char* function, const std::string& name, double cost) {
  if (cost >= 0) return {};
  return Invalid(function, name.c_str(), "a cost of 0 or more", std::to_string(cost));
}

Status CheckAscending(const char* function, const char* name, uint64_t before, uint64_t after) {
  if (before <= after) return {};
  return Invalid(function, name, "numbers from 0 that do not descend",
                 std::to_string(after) + " after " + std::to_string(before));
}

Status ReadTouches(const char* function, const kinglet_typing_input& input,
                   typing::Touches& touches) {
  if (input.touches == 0) return {};
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "input->begins", input.begins));
  for (uint32_t i = 0, before = 0; i <= input.touches; before = input.begins[i++]) {
    KINGLET_RETURN_IF_ERROR(CheckAscending(function, "input->begins", before, input.begins[i]));
  }
  if (input.begins[0] != 0) {
    return Invalid(function, "input->begins", "0 as the first", std::to_string(input.begins[0]));
  }
  const uint32_t all = input.begins[input.touches];
  KINGLET_ASSIGN_OR_RETURN(const auto characters,
                           ReadArray(function, "input->characters", input.characters, all));
  KINGLET_ASSIGN_OR_RETURN(const auto costs, ReadArray(function, "input->costs", input.costs, all));
  touches.characters.reserve(all);
  for (uint32_t i = 0; i < all; ++i) {
    if (characters[i] > 0x10FFFF || (characters[i] >= 0xD800 && characters[i] < 0xE000)) {
      return Invalid(function, "input->characters", "code points", std::to_string(characters[i]));
    }
    KINGLET_RETURN_IF_ERROR(CheckCost(function, "input->costs", costs[i]));
    touches.characters.push_back({static_cast<char32_t>(characters[i]), costs[i]});
  }
  touches.begins.assign(input.begins, input.begins + input.touches + 1);
  return {};
}

Result<TypingQuestion> ReadTypingQuestion(const char* function, const kinglet_typing_input* given) {
  const auto start = std::chrono::steady_clock::now();
  KINGLET_ASSIGN_OR_RETURN(const kinglet_typing_input input, ReadInput(function, given));
  TypingQuestion question;
  KINGLET_RETURN_IF_ERROR(ReadTouches(function, input, question.touches));
  const std::pair<const char*, double> costs[] = {{"input->insertion", input.insertion},
                                                  {"input->deletion", input.deletion},
                                                  {"input->transposition", input.transposition},
                                                  {"input->substitution", input.substitution},
                                                  {"input->missing_space", input.missing_space}};
  for (const auto& [name, cost] : costs) KINGLET_RETURN_IF_ERROR(CheckCost(function, name, cost));
  question.errors = {input.insertion, input.deletion, input.transposition, input.substitution,
                     input.missing_space};
  question.capitals = static_cast<Capitals>(input.capitals);
  question.is_finished = input.finished != 0;
  if (input.before != nullptr) question.before = input.before;
  if (input.deadline > 0) {
    // A day is as good as no limit, and no sum overflows.
    constexpr uint64_t kMost = 86'400'000'000;
    question.deadline = start + std::chrono::microseconds(std::min(input.deadline, kMost));
  }
  return question;
}

Result<std::vector<std::string> > ReadWords(const char* function, const char* texts,
                                            const uint64_t* offsets, uint64_t count) {
  std::vector<std::string> words;
  if (count == 0) return words;
  KINGLET_ASSIGN_OR_RETURN(const auto begins, ReadArray(function, "offsets", offsets, count));
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "texts", texts));
  if (begins[0] != 0) return Invalid(function, "offsets", "0 first", std::to_string(begins[0]));
  for (size_t i = 0; i < begins.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(CheckAscending(function, "offsets", offsets[i], offsets[i + 1]));
    KINGLET_ASSIGN_OR_RETURN(const size_t length,
                             ReadCount(function, "offsets", offsets[i + 1] - offsets[i], 1));
    words.emplace_back(texts + offsets[i], length);
  }
  return words;
}

// Directs the decoder to a lane.
Status UseLane(const char* function, kinglet_typing* typing, kinglet_session* session,
               uint32_t lane) {
  KINGLET_RETURN_IF_ERROR(RequirePointer(function, "typing", typing));
  KINGLET_RETURN_IF_ERROR(RequireLane(function, session, lane));
  if (&session->session->model() != &typing->decoder.words().model()) {
    return Status::Refusal(KINGLET_MISMATCH, function, "session",
                           "one of the decoder's model, opened once", "one of another");
  }
  KINGLET_RETURN_IF_ERROR(session->session->CheckHasToken(lane));
  typing->predictor.Use(*session->session, lane);
  return {};
}

template <class Set>
kinglet_status SetWords(const char* function, kinglet_typing* typing, const char* texts,
                        const uint64_t* offsets, uint64_t count, const Set& set) {
  return With(function, "typing", typing, [&]() -> Status {
    KINGLET_ASSIGN_OR_RETURN(const auto words, ReadWords(function, texts, offsets, count));
    set(typing->decoder, words);
    return {};
  });
}

}  // namespace
}  // namespace kinglet

using kinglet::RequirePointer;
using kinglet::Status;
using kinglet::typing::TypingDecoder;

kinglet_status kinglet_typing_create(const kinglet_model* model, kinglet_typing** out) {
  const char* const function = __func__;
  return kinglet::With(function, "model", model, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "out", out));
    KINGLET_ASSIGN_OR_RETURN(auto words, kinglet::typing::TypingVocabulary::Of(model->model));
    *out = std::make_unique<kinglet_typing>(kinglet_typing{TypingDecoder(std::move(words)), {}})
               .release();
    kinglet::system::ReturnFreedMemory();  // a list of all words, and counts of their letters
    return {};
  });
}

kinglet_status kinglet_typing_set_blocked(kinglet_typing* typing, const char* texts,
                                          const uint64_t* offsets, uint64_t count) {
  return kinglet::SetWords(__func__, typing, texts, offsets, count,
                           [](auto& decoder, auto& words) { decoder.SetBlocked(words); });
}

kinglet_status kinglet_typing_set_allowed(kinglet_typing* typing, const char* texts,
                                          const uint64_t* offsets, uint64_t count) {
  return kinglet::SetWords(__func__, typing, texts, offsets, count,
                           [](auto& decoder, auto& words) { decoder.SetAllowed(words); });
}

kinglet_status kinglet_typing_prepare(kinglet_typing* typing, kinglet_session* session,
                                      uint32_t lane) {
  const char* const function = __func__;
  return kinglet::Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(kinglet::UseLane(function, typing, session, lane));
    return typing->decoder.Prepare(typing->predictor);
  });
}

kinglet_status kinglet_typing_find(kinglet_typing* typing, kinglet_session* session, uint32_t lane,
                                   const kinglet_typing_input* input, uint32_t k, char* buffer,
                                   uint64_t capacity, uint64_t* needed, uint64_t* offsets,
                                   double* log_probabilities, double* costs, uint32_t* kinds,
                                   uint32_t* count, int32_t* complete) {
  const char* const function = __func__;
  return kinglet::Guard([&]() -> Status {
    KINGLET_RETURN_IF_ERROR(kinglet::UseLane(function, typing, session, lane));
    KINGLET_ASSIGN_OR_RETURN(auto question, kinglet::ReadTypingQuestion(function, input));
    question.count = k;
    KINGLET_ASSIGN_OR_RETURN(const auto answer, typing->decoder.Find(typing->predictor, question));
    std::string texts;
    std::vector<uint64_t> begins = {0};
    for (const auto& candidate : answer.candidates) {
      texts += candidate.text;
      texts += '\0';
      begins.push_back(texts.size());
    }
    if (count != nullptr) *count = static_cast<uint32_t>(answer.candidates.size());
    if (complete != nullptr) *complete = answer.is_complete ? 1 : 0;
    KINGLET_RETURN_IF_ERROR(
        kinglet::CopyTexts(function, texts, begins, buffer, capacity, needed, offsets));
    for (size_t i = 0; i < answer.candidates.size(); ++i) {
      const auto& candidate = answer.candidates[i];
      if (log_probabilities != nullptr) log_probabilities[i] = candidate.log_probability;
      if (costs != nullptr) costs[i] = candidate.cost;
      if (kinds != nullptr) kinds[i] = static_cast<uint32_t>(candidate.kind);
    }
    return {};
  });
}

kinglet_status kinglet_typing_open_words(kinglet_typing* typing, const char* path) {
  const char* const function = __func__;
  return kinglet::With(function, "typing", typing, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "path", path));
    return typing->decoder.user().Open(path);
  });
}

kinglet_status kinglet_typing_learn(kinglet_typing* typing, const char* before, const char* word) {
  const char* const function = __func__;
  return kinglet::With(function, "typing", typing, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "word", word));
    return typing->decoder.user().Learn(function, before == nullptr ? "" : before, word);
  });
}

kinglet_status kinglet_typing_unlearn(kinglet_typing* typing, const char* word, uint64_t* removed) {
  const char* const function = __func__;
  return kinglet::With(function, "typing", typing, [&]() -> Status {
    KINGLET_RETURN_IF_ERROR(RequirePointer(function, "word", word));
    uint64_t count = 0;
    KINGLET_RETURN_IF_ERROR(typing->decoder.user().Unlearn(word, count));
    if (removed != nullptr) *removed = count;
    return {};
  });
}

kinglet_status kinglet_typing_forget(kinglet_typing* typing) {
  return kinglet::With(__func__, "typing", typing, [&] { return typing->decoder.user().Forget(); });
}

kinglet_status kinglet_typing_list(kinglet_typing* typing, uint64_t most, char* buffer,
                                   uint64_t capacity, uint64_t* needed, uint64_t* offsets,
                                   uint64_t* uses, uint64_t* count) {
  const char* const function = __func__;
  return kinglet::With(function, "typing", typing, [&]() -> Status {
    const kinglet::typing::UserWords& words = typing->decoder.user().words();
    std::string texts;
    std::vector<uint64_t> begins = {0};
    uint64_t all = 0;
    for (const uint32_t number : words.order()) {
      if (words.uses(number) == 0 || all++ >= most) continue;
      texts += words.text(number);
      texts += '\0';
      if (uses != nullptr) uses[begins.size() - 1] = words.uses(number);
      begins.push_back(texts.size());
    }
    if (count != nullptr) *count = all;
    return kinglet::CopyTexts(function, texts, begins, buffer, capacity, needed, offsets);
  });
}

kinglet_status kinglet_typing_set_weights(kinglet_typing* typing, double user, double spelling) {
  const char* const function = __func__;
  return kinglet::With(function, "typing", typing, [&]() -> Status {
    if (!(user >= 0 && spelling >= 0 && user + spelling < 1)) {
      return kinglet::Invalid(function, "user", "weights of 0 or more, together below 1",
                              std::to_string(user) + " and " + std::to_string(spelling));
    }
    typing->decoder.SetWeights({user, spelling});
    return {};
  });
}

#endif
