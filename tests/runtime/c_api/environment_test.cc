// Every function of the C interface, called by a host with any float environment: the bits, texts
// and refusals of a host with the usual one, and the host's environment is as it was.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "tests/format/editable_file.h"
#include "tests/runtime/c_api/c_tests.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/define_builder.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace kinglet::environment_test {
namespace {

// The registers that control how a thread computes, and their values in hosts of many kinds.
// Written directly, because <cfenv> has neither denormals nor precision.
struct Registers {
  bool operator==(const Registers&) const = default;
  uint64_t control = 0, status = 0, old_control = 0, old_status = 0;
};

struct Host {
  const char* name;
  Registers registers;
};

#if defined(__x86_64__)

constexpr Registers kUsual = {0x1F80, 0, 0x037F, 0};

Registers Now() {
  const uint32_t sse = _mm_getcsr();
  uint16_t control, status;
  asm volatile("fnstcw %0" : "=m"(control));
  asm volatile("fnstsw %0" : "=m"(status));
  return {sse & ~0x3FU, sse & 0x3F, control, status & 0xFFU};
}

void Set(const Registers& registers) {
  uint16_t x87[14];
  asm volatile("fnstenv %0" : "=m"(x87));
  x87[0] = static_cast<uint16_t>(registers.old_control);
  x87[2] = static_cast<uint16_t>(registers.old_status);
  asm volatile("fldenv %0" : : "m"(x87));
  _mm_setcsr(static_cast<uint32_t>(registers.control | registers.status));
}

constexpr Host kHosts[] = {
    {"upward", {0x5F80, 0, 0x0B7F, 0}},
    {"downward", {0x3F80, 0, 0x077F, 0}},
    {"toward zero", {0x7F80, 0, 0x0F7F, 0}},
    {"denormals are zero", {0x9FC0, 0, 0x037F, 0}},
    {"x87 in single precision", {0x1F80, 0, 0x007F, 0}},
    {"traps of invalid operations, divisions by zero, overflows", {0x1900, 0, 0x0372, 0}},
    {"all traps, of inexact results too", {0, 0, 0x0340, 0}},
    {"all flags set", {0x1F80, 0x3F, 0x037F, 0x3D}},
    {"everything at once", {0xA040, 0, 0x0440, 0}},
};

#elif defined(__aarch64__)

constexpr Registers kUsual = {};

Registers Now() {
  Registers now;
  asm volatile("mrs %0, fpcr" : "=r"(now.control));
  asm volatile("mrs %0, fpsr" : "=r"(now.status));
  return now;
}

void Set(const Registers& registers) {
  asm volatile("msr fpcr, %0" : : "r"(registers.control));
  asm volatile("msr fpsr, %0" : : "r"(registers.status));
}

constexpr Host kHosts[] = {
    {"upward", {1U << 22}},       {"downward", {2U << 22}},
    {"toward zero", {3U << 22}},  {"denormals are zero", {1U << 24 | 1U << 19}},
    {"one NaN", {1U << 25}},      {"all traps", {0x9F00}},  // where the processor has them
    {"all flags set", {0, 0x9F}}, {"everything at once", {2U << 22 | 1U << 24 | 1U << 25 | 0x9F00}},
};

#else

constexpr Registers kUsual = {};
Registers Now() { return {}; }
void Set(const Registers&) {}
constexpr Host kHosts[] = {{"the usual one", {}}};

#endif

// Where any function may write its answer; compared as bytes.
struct Buffers {
  double doubles[128];
  float floats[128];
  uint32_t ids[128], count;
  uint64_t numbers[128], needed;
  int32_t flag;
  char text[8192];
  kinglet_work work;
};

// Calls functions as a host does, and keeps what they return and write.
class Caller {
 public:
  explicit Caller(const Registers& host) : host_(host) { ClearOut(); }

  template <class Function, class... Arguments>
  void operator()(const char* name, Function* function, Arguments... arguments) {
    Set(host_);
    const Registers before = Now();
    std::string returned;
    bool failed = false;
    if constexpr (std::is_void_v<std::invoke_result_t<Function, Arguments...>>) {
      function(arguments...);
      const Registers after = Now();
      Set(kUsual);
      EXPECT_TRUE(after == before) << name;
    } else {
      const auto result = function(arguments...);
      const Registers after = Now();
      Set(kUsual);
      EXPECT_TRUE(after == before) << name;
      if constexpr (std::is_same_v<decltype(result), const char* const>) {
        returned = result;
      } else {
        returned = std::to_string(result);
        failed = std::is_same_v<decltype(result), const kinglet_status> && result != KINGLET_OK;
      }
    }
    called_.insert(name);
    if (!failed) succeeded_.insert(name);
    answers_.emplace_back(name,
                          returned + std::string(reinterpret_cast<const char*>(&out), sizeof out));
    ClearOut();
  }

  const std::set<std::string>& called() const { return called_; }
  const std::set<std::string>& succeeded() const { return succeeded_; }
  void ExpectAnswersOf(const Caller& other) const {
    ASSERT_EQ(answers_.size(), other.answers_.size());
    for (size_t i = 0; i < answers_.size(); ++i) {
      EXPECT_TRUE(answers_[i] == other.answers_[i])
          << answers_[i].first << ", call " << i << ": another answer";
    }
  }

  Buffers out;

 private:
  // Padding too, as answers are compared byte by byte.
  void ClearOut() {
    std::memset(static_cast<void*>(&out), 0, sizeof out);
    out.work.struct_size = sizeof out.work;
  }

  const Registers host_;
  std::set<std::string> called_, succeeded_;
  std::vector<std::pair<std::string, std::string>> answers_;
};

#define CALL(function, ...) call(#function, function __VA_OPT__(, ) __VA_ARGS__)

struct Kind {
  const char* name;
  ModelDraft draft;
  const char* backend = "cpu";
  uint32_t threads = 1;
};

constexpr const char* kTexts[] = {"ab", "abba aab b a", " w3 w4 w1", "the t5 qq w",
                                  "a\xFF \xE2\x82\xAC"};

void AskModel(Caller& call, const kinglet_model* model) {
  Buffers& out = call.out;
  CALL(kinglet_model_vocabulary_size, model, out.ids);
  CALL(kinglet_model_start_token, model, out.ids);
  CALL(kinglet_model_positions, model, out.ids);
  CALL(kinglet_model_has_words, model, &out.flag);
  CALL(kinglet_model_token_text, model, 3U, out.text, sizeof out.text, &out.needed);
  CALL(kinglet_model_token_texts, model, out.text, sizeof out.text, &out.needed, out.numbers);
  CALL(kinglet_model_special_token, model, KINGLET_TOKEN_UNKNOWN, out.ids);
  CALL(kinglet_model_find_token, model, "w3", 2U, out.ids);
  CALL(kinglet_model_spells, model, &out.flag);
  CALL(kinglet_model_spell, model, "w3", 2U, out.ids);
  CALL(kinglet_model_source_vocabulary_size, model, out.ids);
  CALL(kinglet_model_longest_source, model, out.ids);
  CALL(kinglet_model_find_source_token, model, "s3", 2U, out.ids);
  CALL(kinglet_model_digest, model, out.text, sizeof out.text, &out.needed);
  CALL(kinglet_model_backend, model, out.text, sizeof out.text, &out.needed);
  CALL(kinglet_model_lane_bytes, model, out.numbers);
  CALL(kinglet_model_state_bytes, model, out.numbers);
  CALL(kinglet_model_pooled_width, model, out.ids);
  CALL(kinglet_model_score_count, model, out.ids);
  for (const char* text : kTexts) {
    CALL(kinglet_model_tokenize, model, text, std::strlen(text), out.ids, out.numbers, 60U,
         &out.needed);
    CALL(kinglet_model_text_segments, model, text, std::strlen(text), out.ids, 60U, &out.needed);
  }
  static constexpr uint32_t kIds[] = {5, 6, 1, 7};
  CALL(kinglet_model_detokenize, model, kIds, 4U, out.text, sizeof out.text, &out.needed);
}

void AskEmbedding(Caller& call, const kinglet_model* model) {
  Buffers& out = call.out;
  static constexpr uint32_t kIds[] = {1, 5, 2, 5};
  kinglet_embedding* embedding = nullptr;
  CALL(kinglet_embedding_create, model, &embedding);
  CALL(kinglet_embedding_width, embedding, out.ids);
  CALL(kinglet_embedding_classes, embedding, out.ids);
  CALL(kinglet_embedding_vectors, embedding, kIds, 4U, out.floats, std::size(out.floats));
  CALL(kinglet_embedding_classify, embedding, kIds, 4U, out.doubles, out.doubles + 60, 60U);
  CALL(kinglet_embedding_destroy, embedding);
}

void AskAboutWords(Caller& call, kinglet_session* session, const kinglet_draw_options& draw) {
  Buffers& out = call.out;
  constexpr uint32_t kRoom = 60;
  static constexpr uint32_t kLanes[] = {1, 0}, kSome[] = {1, 16, 3, 9, 3};
  static constexpr uint64_t kSeeds[] = {3, 4};
  const kinglet_draw_options warm = {sizeof warm, 0, 1.3, 1, nullptr, 0};
  CALL(kinglet_session_compute_lanes, session, kLanes, 2U);
  CALL(kinglet_session_log_probability, session, 0U, 7U, out.doubles);
  CALL(kinglet_session_last_work, session, 0U, &out.work);
  CALL(kinglet_session_log_probabilities, session, 0U, out.floats, kRoom);
  CALL(kinglet_session_log_probabilities_of, session, 0U, kSome, 5U, out.doubles);
  CALL(kinglet_session_probabilities, session, 0U, out.floats, kRoom);
  CALL(kinglet_session_top_k, session, 0U, 9U, out.ids, out.doubles, kRoom, &out.count);
  CALL(kinglet_session_log_probability_lanes, session, kLanes, kSome, 2U, out.doubles);
  CALL(kinglet_session_top_k_lanes, session, kLanes, 2U, 9U, out.ids, out.doubles, kRoom,
       &out.count);
  CALL(kinglet_session_draw_lanes, session, kLanes, kSeeds, 2U, &draw, out.ids);
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CALL(kinglet_session_draw, session, 0U, seed, &draw, out.ids);
    CALL(kinglet_session_draw, session, 0U, seed, &warm, out.ids);
    CALL(kinglet_session_top_p, session, 0U, 0.09 * static_cast<double>(seed + 1), out.ids,
         out.doubles, kRoom, &out.count);
    CALL(kinglet_session_rank, session, 0U, static_cast<uint32_t>(seed), out.ids);
    CALL(kinglet_session_interval, session, 0U, static_cast<uint32_t>(seed), out.numbers,
         out.numbers + 1);
    CALL(kinglet_session_word_at, session, 0U, static_cast<uint32_t>(seed) << 28, out.ids);
  }
  CALL(kinglet_session_allowed_top_k, session, 0U, kSome, 5U, 3U, out.ids, out.doubles, kRoom,
       &out.count);
  CALL(kinglet_session_allowed_probability, session, 0U, kSome, 5U, out.doubles);
  CALL(kinglet_session_prefix_top_k, session, 0U, "w", 1U, 4U, out.ids, out.doubles, kRoom,
       &out.count);
  CALL(kinglet_session_prefix_probability, session, 0U, "w1", 2U, out.doubles);
  CALL(kinglet_session_next_characters, session, 0U, "w", 1U, out.ids, out.doubles, kRoom,
       &out.count);
  for (const char* text : kTexts) {
    const uint64_t length = std::strlen(text);
    CALL(kinglet_session_text_probability, session, 0U, text, length, 200U, out.doubles,
         out.numbers);
    CALL(kinglet_session_text_next_characters, session, 0U, text, length, 200U, out.ids,
         out.doubles, kRoom, &out.count, out.numbers);
    CALL(kinglet_session_text_words, session, 0U, text, length, 5U, 4U, 100U, out.text,
         sizeof out.text, &out.needed, out.numbers + 1, out.doubles, &out.count, out.numbers);
  }
}

void AskState(Caller& call, const kinglet_model* model, kinglet_session* session) {
  Buffers& out = call.out;
  kinglet_state *saved = nullptr, *read = nullptr;
  CALL(kinglet_session_save, session, 0U, &saved);
  CALL(kinglet_state_position, saved, out.numbers);
  CALL(kinglet_state_hash, saved, out.numbers);
  CALL(kinglet_state_bytes, saved, out.numbers);
  char blob[sizeof out.text] = {};
  uint64_t size = 0;
  CALL(kinglet_state_write, saved, blob, sizeof blob, &size);
  std::memcpy(out.text, blob, sizeof blob);
  CALL(kinglet_state_read, model, blob, size, &read);
  CALL(kinglet_state_equal, saved, read, &out.flag);
  CALL(kinglet_session_restore, session, 1U, read);
  CALL(kinglet_session_log_probabilities, session, 1U, out.floats, std::size(out.floats));
  CALL(kinglet_state_destroy, saved);
  CALL(kinglet_state_destroy, read);
}

void AskSession(Caller& call, const kinglet_model* model, const Kind& kind,
                const kinglet_draw_options& draw) {
  Buffers& out = call.out;
  static constexpr uint32_t kIds[] = {2, 6, 1, 5, 5, 9, 3}, kLanes[] = {0, 1};
  kinglet_session_options options;
  CALL(kinglet_session_options_init, &options, uint32_t{sizeof options});
  options.lanes = 2;
  options.threads = kind.threads;
  kinglet_session* session = nullptr;
  CALL(kinglet_session_create, model, &options, &session);
  CALL(kinglet_session_lanes, session, out.ids);
  // Calls that a kind of model does not support are refused, and do not change the lanes.
  for (const uint32_t lane : kLanes) {
    CALL(kinglet_session_encode, session, lane, kIds, 6U);
    CALL(kinglet_session_read, session, lane, kIds, nullptr, 7U);
  }
  for (const uint32_t id : kIds) CALL(kinglet_session_step, session, 0U, id);
  CALL(kinglet_session_fork, session, 0U, 1U);
  CALL(kinglet_session_step_lanes, session, kLanes, kIds, 2U);
  CALL(kinglet_session_step_many, session, 1U, kIds, 7U, out.doubles, out.numbers);
  CALL(kinglet_session_look_at, session, 0U, 2U);
  CALL(kinglet_session_look_at, session, 1U, 3U);
  CALL(kinglet_session_position, session, 1U, out.numbers);
  AskAboutWords(call, session, draw);
  CALL(kinglet_session_pooled, session, 0U, out.doubles, std::size(out.doubles));
  CALL(kinglet_session_scores, session, 0U, 0U, out.doubles, std::size(out.doubles));
  AskState(call, model, session);
  CALL(kinglet_session_cancel, session);
  CALL(kinglet_session_step, session, 0U, 1U);
  CALL(kinglet_error_message);
  static constexpr uint32_t kParents[] = {KINGLET_NO_PARENT, 0, 1, 1, 0};
  CALL(kinglet_session_score_tree, session, kParents, kIds, 5U, out.doubles, out.numbers);
  CALL(kinglet_session_reset, session, 0U);
  CALL(kinglet_session_destroy, session);
}

void AskBeam(Caller& call, const kinglet_model* model, const Kind& kind) {
  Buffers& out = call.out;
  kinglet_ngrams* ngrams = nullptr;
  const char* const file = TestNgramFile();
  CALL(kinglet_ngrams_open, file, &ngrams);
  std::filesystem::remove(file);
  kinglet_ngram_state state = {};
  CALL(kinglet_ngrams_begin, ngrams, 1U, &state);
  CALL(kinglet_ngrams_word, ngrams, "w3", uint64_t{2}, out.ids);
  CALL(kinglet_ngrams_score, ngrams, &state, out.ids, uint64_t{1}, &state, out.doubles);
  kinglet_scorer* scorer = nullptr;
  CALL(kinglet_scorer_create, model, 0.5, -1.0, &scorer);
  CALL(kinglet_scorer_add_ngrams, scorer, ngrams, uint32_t{KINGLET_NGRAMS_MIXED}, 0.25);
  static constexpr uint32_t kPhrase[] = {6, 2};
  CALL(kinglet_scorer_add_phrase, scorer, kPhrase, uint64_t{2}, 1.5);
  CALL(kinglet_ngrams_destroy, ngrams);
  kinglet_beam_options options;
  CALL(kinglet_beam_options_init, &options, uint32_t{sizeof options});
  options.scorer = scorer;
  options.threads = kind.threads;
  options.state_bytes = 1;
  kinglet_beam* beam = nullptr;
  CALL(kinglet_beam_create, model, &options, &beam);
  CALL(kinglet_scorer_destroy, scorer);
  uint64_t from[] = {0, 0, 0}, to[] = {0, 0, 0};  // numbers that differ from life to life
  CALL(kinglet_beam_begin, beam, nullptr, from);
  from[1] = from[2] = from[0];
  static constexpr uint32_t kIds[] = {2, 6, 2};
  for (int i = 0; i < 3; ++i) {
    CALL(kinglet_beam_step, beam, from, kIds, 3U, to);
    CALL(kinglet_beam_log_probability, beam, to, kIds, 3U, out.doubles);
    CALL(kinglet_beam_log_probabilities, beam, to, 3U, out.floats, std::size(out.floats));
    CALL(kinglet_beam_top_k, beam, to, 3U, 4U, out.ids, out.doubles, 12U, &out.count);
    CALL(kinglet_beam_hold, beam, to, 3U);
    CALL(kinglet_beam_drop, beam, from, i == 0 ? 1U : 3U);
    std::copy(std::begin(to), std::end(to), std::begin(from));
  }
  kinglet_state* saved = nullptr;
  CALL(kinglet_beam_tokens, beam, from[0], out.ids, 7U, &out.needed);
  CALL(kinglet_beam_save, beam, from[0], &saved);
  CALL(kinglet_beam_stepped, beam, out.numbers);
  CALL(kinglet_beam_cancel, beam);
  CALL(kinglet_state_destroy, saved);
  CALL(kinglet_beam_destroy, beam);
}

void AskGeneration(Caller& call, const kinglet_model* model, const Kind& kind,
                   const kinglet_draw_options& draw) {
  Buffers& out = call.out;
  static constexpr uint32_t kPrompt[] = {2, 6, 1};
  kinglet_generation_options options;
  CALL(kinglet_generation_options_init, &options, uint32_t{sizeof options});
  options.streams = 2;
  options.tokens = 12;
  options.threads = kind.threads;
  options.draw = &draw;
  kinglet_generation* generation = nullptr;
  CALL(kinglet_generation_create, model, &options, kPrompt, 3U, &generation);
  for (int i = 0; i < 12; ++i) CALL(kinglet_generation_next, generation, &out.flag);
  CALL(kinglet_generation_ended, generation, 1U, &out.flag);
  CALL(kinglet_generation_ids, generation, 1U, out.ids, std::size(out.ids), &out.needed);
  CALL(kinglet_generation_text, generation, 1U, out.text, sizeof out.text, &out.needed);
  CALL(kinglet_generation_destroy, generation);
}

void AskTyping(Caller& call, const kinglet_model* model) {
  Buffers& out = call.out;
  kinglet_typing_input input;
  CALL(kinglet_typing_input_init, &input, uint32_t{sizeof input});
  const uint32_t begins[] = {0, 2, 3, 4}, characters[] = {'w', 'e', '1', '5'};
  const double costs[] = {0.5, 1.25, 0, 0.125};
  input.touches = 3;
  input.begins = begins;
  input.characters = characters;
  input.costs = costs;
  kinglet_typing* typing = nullptr;
  CALL(kinglet_typing_create, model, &typing);
  kinglet_session* session = nullptr;
  CALL(kinglet_session_create, model, nullptr, &session);
  CALL(kinglet_session_step, session, 0U, 3U);
  const uint64_t offsets[] = {0, 2};
  CALL(kinglet_typing_set_blocked, typing, "w4", offsets, 1U);
  CALL(kinglet_typing_set_allowed, typing, nullptr, nullptr, 0U);
  char path[] = "/tmp/kinglet-words-XXXXXX";
  const int made = mkstemp(path);
  EXPECT_GE(made, 0);
  close(made);
  CALL(kinglet_typing_open_words, typing, path);
  CALL(kinglet_typing_learn, typing, "the", "w15");
  CALL(kinglet_typing_learn, typing, nullptr, "w16x");
  CALL(kinglet_typing_learn, typing, nullptr, "w17x");
  CALL(kinglet_typing_unlearn, typing, "w16x", nullptr);
  CALL(kinglet_typing_set_weights, typing, 0.25, 0.01);
  CALL(kinglet_typing_list, typing, 2U, out.text, sizeof out.text, &out.needed, nullptr, nullptr,
       nullptr);
  CALL(kinglet_typing_prepare, typing, session, 0U);
  double log_probabilities[3] = {}, found_costs[3] = {};
  uint32_t kinds[3] = {};
  int32_t complete = 0;
  CALL(kinglet_typing_find, typing, session, 0U, &input, 3U, out.text, sizeof out.text, &out.needed,
       nullptr, log_probabilities, found_costs, kinds, nullptr, &complete);
  CALL(kinglet_typing_forget, typing);
  unlink(path);
  CALL(kinglet_session_destroy, session);
  CALL(kinglet_typing_destroy, typing);
}

void AskCoders(Caller& call, const kinglet_model* model, const Kind& kind) {
  Buffers& out = call.out;
  kinglet_coder_options options;
  CALL(kinglet_coder_options_init, &options, uint32_t{sizeof options});
  options.threads = kind.threads;
  std::vector<char> archive(1000);
  uint64_t size = 0, count = 0;
  kinglet_coder* coder = nullptr;
  CALL(kinglet_compressor_create, model, &options, &coder);
  CALL(kinglet_coder_add, coder, "the w3 w4 unheard w5", 20U);
  CALL(kinglet_coder_finish, coder);
  CALL(kinglet_coder_take, coder, archive.data(), archive.size(), &size);
  CALL(kinglet_coder_destroy, coder);
  coder = nullptr;
  CALL(kinglet_decompressor_create, model, &options, &coder);
  CALL(kinglet_coder_add, coder, archive.data(), size);
  CALL(kinglet_coder_finish, coder);
  CALL(kinglet_coder_take, coder, out.text, sizeof out.text, &count);
  CALL(kinglet_coder_damages, coder, out.text, sizeof out.text, &out.needed);
  CALL(kinglet_coder_cancel, coder);
  CALL(kinglet_coder_take, coder, out.text, sizeof out.text, &count);
  CALL(kinglet_coder_destroy, coder);
}

// A whole life of a model, which calls every function.
void Live(Caller& call, const Kind& kind, const std::vector<std::byte>& bytes) {
  CALL(kinglet_abi_version);
  CALL(kinglet_version_string);
  CALL(kinglet_status_name, KINGLET_CORRUPT);
  kinglet_draw_options draw;
  CALL(kinglet_draw_options_init, &draw, uint32_t{sizeof draw});
  draw.top_p = 0.8;
  draw.temperature = 0.9;
  kinglet_model_options options;
  CALL(kinglet_model_options_init, &options, uint32_t{sizeof options});
  options.backend = kind.backend;
  kinglet_model* model = nullptr;
  static const std::string path = testing::TempDir() + "kinglet_environment.kgl";
  std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()),
                            static_cast<std::streamsize>(bytes.size()));
  CALL(kinglet_model_open, path.c_str(), &options, &model);
  std::filesystem::remove(path);
  CALL(kinglet_model_close, model);
  CALL(kinglet_model_open_memory, bytes.data(), bytes.size(), &options, &model);
  ASSERT_NE(model, nullptr) << kind.name << ": " << kinglet_error_message();
  AskModel(call, model);
  AskEmbedding(call, model);
  AskSession(call, model, kind, draw);
  AskBeam(call, model, kind);
  AskGeneration(call, model, kind, draw);
  AskCoders(call, model, kind);
  AskTyping(call, model);
  CALL(kinglet_model_close, model);
}

ModelDraft WithPieces(SentencePieceTables::Algorithm algorithm) {
  using Type = SentencePieceTables::Type;
  SentencePieceTables tables;
  tables.algorithm = algorithm;
  tables.normaliser = {true, true, true, {}};
  tables.pieces = {{"<unk>", 0, Type::kUnknown},
                   {"</s>", 0, Type::kControl},
                   {"\xE2\x96\x81", -1.5F},
                   {"a", -2.25F},
                   {"b", -2.3F},
                   {"ab", -4.55F},
                   {"ba", -4.5500002F},
                   {"aab", -6.8F},
                   {"\xE2\x96\x81"
                    "a",
                    -3.75F},
                   {"bb", -1e-42F},
                   {"abba", -9.1F}};
  for (char letter = 'c'; tables.pieces.size() < 23; ++letter) {
    tables.pieces.push_back({std::string(1, letter), -0.1F * static_cast<float>(letter)});
  }
  ModelDraft draft = TinyMicronet({.quantised = true});
  draft.vocabulary.clear();
  for (const auto& piece : tables.pieces) draft.vocabulary.push_back(piece.text);
  draft.tokenizer = TextTables{false, tables};
  return draft;
}

std::vector<Kind> Kinds() {
  using Cell = RecurrentCell;
  std::vector<Kind> kinds;
  kinds.push_back(
      {"MicroNet, 9 bits, neural cache, words",
       TinyMicronet({.quantised = true, .bits = 9, .pruned = true, .cache_capacity = 4})});
  kinds.back().draft.tokenizer = TextTables{false, WordRule{}};
  kinds.push_back({"MicroNet, floats, threads", TinyMicronet({.cache_capacity = 4}), "cpu", 2});
  kinds.push_back({"MicroNet on ref64", TinyMicronet({.cache_capacity = 4}), "ref64"});
  kinds.push_back(
      {"recurrent, floats, neural cache",
       TinyRecurrent({.cells = {Cell::kQrnn, Cell::kGru, Cell::kLstm}, .cache_capacity = 4})});
  kinds.push_back({"recurrent, coded tables, on ref",
                   TinyRecurrent({.more_units = 0,
                                  .quantised = true,
                                  .bits = 9,
                                  .input_coding = TinyCoding{2, {7, 9}},
                                  .head_coding = TinyCoding{2, {7, 9}}}),
                   "ref"});
  kinds.push_back(
      {"Transformer, relative positions",
       TinyTransformer({.positions = TinyPositions::kRelative, .clamp = 3, .bits = 9})});
  kinds.push_back({"Transformer, absolute positions",
                   TinyTransformer({.positions = TinyPositions::kAbsolute, .bits = 5})});
  kinds.push_back({"masked, WordPiece", TinyMasked({.bits = 9, .quantised = true, .scores = 3})});
  WordPieceTables words;
  words.pieces = kinds.back().draft.vocabulary;
  kinds.back().draft.tokenizer = TextTables{false, words};
  kinds.push_back({"encoder and decoder", TinyTranslation({.bits = 9, .quantised = true})});
  kinds.push_back({"classifier", TinyClassifier({.hidden = 5})});
  kinds.push_back({"character CNN", TinyDefine({.spells = true})});
  kinds.push_back({"unigram pieces", WithPieces(SentencePieceTables::Algorithm::kUnigram)});
  kinds.push_back({"BPE pieces", WithPieces(SentencePieceTables::Algorithm::kBpe)});
  kinds.push_back({"merges", TinyMicronet({})});
  kinds.back().draft.tokenizer =
      TextTables{false, MergeTables{false, {{"a", "b</w>"}, {"a", "a"}}, {}}};
  return kinds;
}

// What the headers declare.
std::set<std::string> Declared() {
  std::set<std::string> names;
  const std::regex declaration(R"(KINGLET_API\b[^;(]*?\b(kinglet_\w+)\()");
  for (const auto& header : std::filesystem::directory_iterator(KINGLET_HEADERS)) {
    if (header.path().extension() != ".h") continue;
    std::ifstream file(header.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator at(text.begin(), text.end(), declaration), end; at != end; ++at) {
      names.insert((*at)[1]);
    }
  }
  return names;
}

TEST(Environment, NoHostChangesAnAnswerAndEveryHostKeepsItsOwn) {
  const std::set<std::string> declared = Declared();
  std::set<std::string> succeeded;
  for (const Kind& kind : Kinds()) {
    const auto bytes = SerialiseModel(kind.draft);
    ASSERT_TRUE(bytes.ok()) << kind.name << ": " << bytes.status().message();
    Caller usual(kUsual);
    Live(usual, kind, *bytes);
    EXPECT_EQ(usual.called(), declared);
    succeeded.insert(usual.succeeded().begin(), usual.succeeded().end());
    for (const Host& host : kHosts) {
      SCOPED_TRACE(std::string(kind.name) + ", " + host.name);
      Caller caller(host.registers);
      Live(caller, kind, *bytes);
      caller.ExpectAnswersOf(usual);
    }
  }
  EXPECT_EQ(succeeded, declared);  // by one kind or another
}

void Open(Caller& call, const std::vector<std::byte>& bytes) {
  kinglet_model* model = nullptr;
  CALL(kinglet_model_open_memory, bytes.data(), bytes.size(), nullptr, &model);
  CALL(kinglet_error_message);
  CALL(kinglet_model_close, model);
}

// Sets all values of a dense tensor, or all scales of another, to one that overflows or is a
// denormal. Scales that are packed in fewer bits become others of its bits.
std::vector<std::vector<std::byte>> FilesWithAnOddNumber(const ModelDraft& draft) {
  using Limits = std::numeric_limits<float>;
  std::vector<std::vector<std::byte>> files;
  for (const EncodedTensor& tensor : draft.tensors) {
    for (const float number : {0.0F, Limits::denorm_min(), 3e38F, -1.0F, Limits::infinity(),
                               Limits::quiet_NaN(), Limits::signaling_NaN()}) {
      EditableFile file = EditableFile::FromDraft(draft);
      const bool dense = std::holds_alternative<DenseF32>(tensor.values);
      std::vector<std::byte>& floats = dense ? file.Values(tensor.name) : file.Scales(tensor.name);
      for (size_t at = 0; at + sizeof number <= floats.size(); at += sizeof number) {
        std::memcpy(floats.data() + at, &number, sizeof number);
      }
      files.push_back(file.Build());
    }
  }
  return files;
}

TEST(Environment, NoHostIsEndedByAHostileFile) {
  for (const ModelDraft& draft :
       {TinyMicronet({.quantised = true, .bits = 5, .pruned = true, .cache_capacity = 4}),
        TinyRecurrent({.quantised = true, .bits = 5}), TinyTranslation()}) {
    for (const std::vector<std::byte>& bytes : FilesWithAnOddNumber(draft)) {
      Caller usual(kUsual);
      Open(usual, bytes);
      for (const Host& host : kHosts) {
        SCOPED_TRACE(host.name);
        Caller caller(host.registers);
        Open(caller, bytes);
        caller.ExpectAnswersOf(usual);
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::environment_test
