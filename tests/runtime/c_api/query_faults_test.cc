// Every query of the C interface when memory runs out: an error, no answer, and the session as it
// was. The answer afterwards is that of a session that never lacked memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kinglet/kinglet.h"
#include "tests/runtime/c_api/fixture.h"
#include "tests/support/fail_each_allocation.h"
#include "tests/support/translation_builder.h"

namespace kinglet::query_faults_test {
namespace {

constexpr uint32_t kWords = 23;

// Where any query may write its answer; compared as bytes.
struct Answer {
  Answer() { std::memset(this, 0x5A, sizeof *this); }
  bool operator==(const Answer& other) const {
    return std::memcmp(this, &other, sizeof *this) == 0;
  }
  double doubles[3 * kWords];
  float floats[3 * kWords];
  uint32_t ids[3 * kWords], count;
  uint64_t numbers[3 * kWords], needed;
  char text[400];
};

// Checks a call that writes an Answer. It allocates nothing of its own.
template <class Ask>
class Checked {
 public:
  explicit Checked(const Ask& ask) : ask_(ask) { status_ = ask_(expected_); }
  kinglet_status first() const { return status_; }
  kinglet_status operator()() const {
    Answer answer;
    const kinglet_status status = ask_(answer);
    if (status == KINGLET_OK) return answer == expected_ ? KINGLET_OK : KINGLET_INTERNAL;
    return answer == untouched_ ? status : KINGLET_CORRUPT;
  }

 private:
  const Ask& ask_;
  Answer expected_;
  const Answer untouched_;
  kinglet_status status_;
};

struct Query {
  const char* name;
  std::function<kinglet_status(kinglet_session*, Answer&)> ask;
};

std::vector<Query> QueriesOfWords() {
  static constexpr uint32_t kSome[] = {22, 1, 22, 9}, kLanes[] = {1, 0}, kIds[] = {22, 5};
  static constexpr uint64_t kSeeds[] = {3, 4};
  return {
      {"log_probability",
       [](auto* s, Answer& a) { return kinglet_session_log_probability(s, 0, 22, a.doubles); }},
      {"log_probabilities",
       [](auto* s, Answer& a) {
         return kinglet_session_log_probabilities(s, 0, a.floats, kWords);
       }},
      {"log_probabilities_of",
       [](auto* s, Answer& a) {
         return kinglet_session_log_probabilities_of(s, 0, kSome, 4, a.doubles);
       }},
      {"probabilities",
       [](auto* s, Answer& a) { return kinglet_session_probabilities(s, 0, a.floats, kWords); }},
      {"top_k",
       [](auto* s, Answer& a) {
         return kinglet_session_top_k(s, 0, 9, a.ids, a.doubles, 9, &a.count);
       }},
      {"draw",
       [](auto* s, Answer& a) {
         const kinglet_draw_options options = {sizeof options, 7, 0.8, 0.9, kSome, 4};
         return kinglet_session_draw(s, 0, 3, &options, a.ids);
       }},
      {"draw of all words",
       [](auto* s, Answer& a) {
         const kinglet_draw_options options = {sizeof options, 0, 0.7, 1, nullptr, 0};
         return kinglet_session_draw(s, 0, 3, &options, a.ids);
       }},
      {"log_probability_lanes",
       [](auto* s, Answer& a) {
         return kinglet_session_log_probability_lanes(s, kLanes, kIds, 2, a.doubles);
       }},
      {"top_k_lanes",
       [](auto* s, Answer& a) {
         return kinglet_session_top_k_lanes(s, kLanes, 2, 9, a.ids, a.doubles, 18, &a.count);
       }},
      {"draw_lanes",
       [](auto* s, Answer& a) {
         return kinglet_session_draw_lanes(s, kLanes, kSeeds, 2, nullptr, a.ids);
       }},
      {"compute_lanes",
       [](auto* s, Answer&) { return kinglet_session_compute_lanes(s, kLanes, 2); }},
      {"top_p",
       [](auto* s, Answer& a) {
         return kinglet_session_top_p(s, 0, 0.7, a.ids, a.doubles, kWords, &a.count);
       }},
      {"rank", [](auto* s, Answer& a) { return kinglet_session_rank(s, 0, 17, a.ids); }},
      {"interval",
       [](auto* s, Answer& a) {
         return kinglet_session_interval(s, 0, 17, a.numbers, a.numbers + 1);
       }},
      {"word_at",
       [](auto* s, Answer& a) { return kinglet_session_word_at(s, 0, 1U << 31, a.ids); }},
      {"allowed_top_k",
       [](auto* s, Answer& a) {
         return kinglet_session_allowed_top_k(s, 0, kSome, 4, 2, a.ids, a.doubles, 2, &a.count);
       }},
      {"allowed_probability",
       [](auto* s, Answer& a) {
         return kinglet_session_allowed_probability(s, 0, kSome, 4, a.doubles);
       }},
      {"prefix_top_k",
       [](auto* s, Answer& a) {
         return kinglet_session_prefix_top_k(s, 0, "w", 1, 4, a.ids, a.doubles, 4, &a.count);
       }},
      {"prefix_probability",
       [](auto* s, Answer& a) {
         return kinglet_session_prefix_probability(s, 0, "w1", 2, a.doubles);
       }},
      {"next_characters",
       [](auto* s, Answer& a) {
         return kinglet_session_next_characters(s, 0, "w", 1, a.ids, a.doubles, kWords, &a.count);
       }},
  };
}

std::vector<Query> QueriesOfText() {
  return {
      {"text_probability",
       [](auto* s, Answer& a) {
         return kinglet_session_text_probability(s, 0, " w3 w4 w1", 9, 50, a.doubles, a.numbers);
       }},
      {"text_next_characters",
       [](auto* s, Answer& a) {
         return kinglet_session_text_next_characters(s, 0, " w3 w1", 6, 50, a.ids, a.doubles,
                                                     kWords, &a.count, a.numbers);
       }},
      {"text_words",
       [](auto* s, Answer& a) {
         return kinglet_session_text_words(s, 0, " w3 w1", 6, 3, 4, 100, a.text, sizeof a.text,
                                           &a.needed, a.numbers + 1, a.doubles, &a.count,
                                           a.numbers);
       }},
  };
}

// Two lanes with the first words of kStream, and what they remember.
class TwoLanes {
 public:
  explicit TwoLanes(const char* backend) {
    const std::vector<std::byte> bytes = TinyModel({.cache_capacity = 4});
    kinglet_model_options options;
    kinglet_model_options_init(&options, sizeof options);
    options.backend = backend;
    EXPECT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), &options, &model), KINGLET_OK);
    kinglet_session_options two;
    kinglet_session_options_init(&two, sizeof two);
    two.lanes = 2;
    EXPECT_EQ(kinglet_session_create(model, &two, &session), KINGLET_OK);
    for (uint32_t t = 0; t < 6; ++t) {
      EXPECT_EQ(kinglet_session_step(session, 0, kStream[t]), KINGLET_OK);
      EXPECT_EQ(kinglet_session_step(session, 1, kStream[t + 1]), KINGLET_OK);
    }
    for (uint32_t lane = 0; lane < 2; ++lane) {
      EXPECT_EQ(kinglet_session_save(session, lane, &states[lane]), KINGLET_OK);
    }
  }
  ~TwoLanes() {
    for (kinglet_state* state : states) kinglet_state_destroy(state);
    kinglet_session_destroy(session);
    kinglet_model_close(model);
  }
  // Nothing is then known of what queries had computed.
  kinglet_status Restore() const {
    for (uint32_t lane = 0; lane < 2; ++lane) {
      const kinglet_status status = kinglet_session_restore(session, lane, states[lane]);
      if (status != KINGLET_OK) return status;
    }
    return KINGLET_OK;
  }
  void ExpectUnchanged() const {
    for (uint32_t lane = 0; lane < 2; ++lane) {
      kinglet_state* now = nullptr;
      int32_t equal = 0;
      ASSERT_EQ(kinglet_session_save(session, lane, &now), KINGLET_OK);
      EXPECT_EQ(kinglet_state_equal(now, states[lane], &equal), KINGLET_OK);
      EXPECT_EQ(equal, 1) << lane;
      kinglet_state_destroy(now);
    }
  }

  kinglet_model* model = nullptr;
  kinglet_session* session = nullptr;
  kinglet_state* states[2] = {};
};

class QueriesWithoutMemory : public testing::TestWithParam<const char*> {};

TEST_P(QueriesWithoutMemory, AnswerNothingAndChangeNothing) {
  const TwoLanes lanes(GetParam());
  std::vector<Query> queries = QueriesOfWords();
  for (const Query& query : QueriesOfText()) queries.push_back(query);
  int64_t places = 0;
  for (const Query& query : queries) {
    const auto ask = [&](Answer& answer) {
      const kinglet_status status = lanes.Restore();
      return status == KINGLET_OK ? query.ask(lanes.session, answer) : status;
    };
    const Checked checked(ask);
    ASSERT_EQ(checked.first(), KINGLET_OK) << query.name << ": " << kinglet_error_message();
    places += FailEachAllocation(
        query.name, checked, [&] { lanes.ExpectUnchanged(); }, kRepeatable);
  }
  std::printf("%s: %lld places in %zu queries\n", GetParam(), static_cast<long long>(places),
              queries.size());
}

INSTANTIATE_TEST_SUITE_P(CApi, QueriesWithoutMemory, testing::Values("cpu", "ref", "ref64"),
                         [](const auto& backend) { return std::string(backend.param); });

// Afterwards every lane is as after a reset, or as it was where the call did not get so far.
TEST(CApi, ATreeWithoutMemoryLeavesEveryLaneReset) {
  const TwoLanes lanes("cpu");
  static constexpr uint32_t kNone = KINGLET_NO_PARENT;
  static constexpr uint32_t kParents[] = {kNone, 0, 1, 1, 0, kNone, 5, 4, 6, 3, 3, 9, 10, 2, 7};
  static constexpr uint32_t kIds[] = {1, 3, 4, 5, 3, 1, 3, 22, 4, 6, 7, 8, 9, 10, 11};
  const auto ask = [&](Answer& answer) {
    const kinglet_status status = lanes.Restore();
    if (status != KINGLET_OK) return status;
    // The number of tokens is higher where a state could not be saved.
    return kinglet_session_score_tree(lanes.session, kParents, kIds, 15, answer.doubles, nullptr);
  };
  const Checked checked(ask);
  ASSERT_EQ(checked.first(), KINGLET_OK);
  FailEachAllocation(
      "score_tree", checked,
      [&] {
        uint64_t first = 99, second = 99;
        ASSERT_EQ(kinglet_session_position(lanes.session, 0, &first), KINGLET_OK);
        ASSERT_EQ(kinglet_session_position(lanes.session, 1, &second), KINGLET_OK);
        ASSERT_EQ(first, second);
        if (first != 0) lanes.ExpectUnchanged();
      },
      kRepeatable);
}

// A beam's life. What fails is asked again: only a beam that is as it was gives the same answers.
kinglet_status LiveAsABeam(const kinglet_model* model, Answer& a) {
  const auto twice = [](const auto& call) {
    const kinglet_status status = call();
    return status == KINGLET_OUT_OF_MEMORY ? call() : status;
  };
  static constexpr uint32_t kIds[] = {3, 22, 3, 5};
  const kinglet_beam_options options = {sizeof options, 0, 2, 1, 1, nullptr};
  kinglet_beam* beam = nullptr;
  uint64_t from[4] = {}, to[4] = {};
  kinglet_state* state = nullptr;
  kinglet_status status = twice([&] { return kinglet_beam_create(model, &options, &beam); });
  const auto then = [&](const auto& call) {
    if (status == KINGLET_OK) status = twice(call);
  };
  double numbers[8] = {};
  float row[kWords] = {};
  uint32_t ids[12] = {};
  uint64_t bytes = 0;
  then([&] { return kinglet_beam_begin(beam, nullptr, from); });
  from[3] = from[2] = from[1] = from[0];
  then([&] { return kinglet_beam_step(beam, from, kIds, 4, to); });
  then([&] { return kinglet_beam_log_probability(beam, to, kIds, 4, numbers); });
  then([&] { return kinglet_beam_step(beam, to, kIds, 4, from); });
  then([&] { return kinglet_beam_drop(beam, to, 4); });
  then([&] { return kinglet_beam_log_probability(beam, from, kIds, 4, numbers + 4); });
  then([&] { return kinglet_beam_top_k(beam, from, 4, 3, ids, nullptr, 12, nullptr); });
  then([&] { return kinglet_beam_log_probabilities(beam, from, 1, row, kWords); });
  then([&] { return kinglet_beam_save(beam, from[1], &state); });
  then([&] { return kinglet_state_hash(state, &bytes); });
  kinglet_state_destroy(state);
  kinglet_beam_destroy(beam);
  if (status != KINGLET_OK) return status;
  std::copy(std::begin(numbers), std::end(numbers), a.doubles);
  std::copy(std::begin(row), std::end(row), a.floats);
  std::copy(std::begin(ids), std::end(ids), a.ids);
  a.numbers[0] = bytes;
  return status;
}

TEST(CApi, WhatAModelReportsOfItselfWithoutMemory) {
  const std::vector<std::byte> bytes = [] {
    ModelDraft draft = TinyMicronet({.cache_capacity = 4});
    draft.tokenizer = TextTables{false, WordRule{}};
    return *SerialiseModel(draft);
  }();
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK);
  static constexpr uint32_t kIds[] = {3, 22, 0};
  const std::vector<std::pair<const char*, std::function<kinglet_status(Answer&)>>> calls = {
      {"beam", [&](Answer& a) { return LiveAsABeam(model, a); }},
      {"token_text",
       [&](Answer& a) { return kinglet_model_token_text(model, 3, a.text, 40, &a.needed); }},
      {"token_texts",
       [&](Answer& a) {
         return kinglet_model_token_texts(model, a.text, sizeof a.text, &a.needed, a.numbers);
       }},
      {"special_token",
       [&](Answer& a) { return kinglet_model_special_token(model, KINGLET_TOKEN_BEGIN, a.ids); }},
      {"find_token", [&](Answer& a) { return kinglet_model_find_token(model, "w3", 2, a.ids); }},
      {"tokenize",
       [&](Answer& a) {
         return kinglet_model_tokenize(model, "w3 the w22 w5", 13, a.ids, a.numbers, 20, &a.needed);
       }},
      {"detokenize",
       [&](Answer& a) {
         return kinglet_model_detokenize(model, kIds, 3, a.text, sizeof a.text, &a.needed);
       }},
      {"digest", [&](Answer& a) { return kinglet_model_digest(model, a.text, 40, &a.needed); }},
      {"backend", [&](Answer& a) { return kinglet_model_backend(model, a.text, 40, &a.needed); }},
      {"lane_bytes", [&](Answer& a) { return kinglet_model_lane_bytes(model, a.numbers); }},
      {"state_bytes", [&](Answer& a) { return kinglet_model_state_bytes(model, a.numbers); }},
      {"open and close",
       [&](Answer&) {
         kinglet_model* other = nullptr;
         const kinglet_status status =
             kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &other);
         kinglet_model_close(other);
         return status;
       }},
      {"generate",
       [&](Answer& a) {
         kinglet_generation* generation = nullptr;
         kinglet_generation_options options;
         kinglet_generation_options_init(&options, sizeof options);
         options.streams = 2;
         options.tokens = 5;
         options.stop = "w9";
         options.stop_length = 2;
         kinglet_status status = kinglet_generation_create(model, &options, kIds, 3, &generation);
         for (int32_t more = 1; status == KINGLET_OK && more != 0;) {
           status = kinglet_generation_next(generation, &more);
         }
         if (status == KINGLET_OK) {
           status = kinglet_generation_text(generation, 1, a.text, sizeof a.text, &a.needed);
         }
         kinglet_generation_destroy(generation);
         return status;
       }},
      {"compress and restore",
       [&](Answer& a) {
         char archive[400];
         uint64_t size = 0;
         kinglet_coder_options options;
         kinglet_coder_options_init(&options, sizeof options);
         options.block_size = 1024;
         options.threads = 2;
         const auto pass = [&](auto create, const char* input, uint64_t count, char* out,
                               uint64_t room, uint64_t* length) {
           kinglet_coder* coder = nullptr;
           kinglet_status status = create(model, &options, &coder);
           if (status == KINGLET_OK) status = kinglet_coder_add(coder, input, count);
           if (status == KINGLET_OK) status = kinglet_coder_finish(coder);
           if (status == KINGLET_OK) status = kinglet_coder_take(coder, out, room, length);
           kinglet_coder_destroy(coder);
           return status;
         };
         static const std::string text(2000, 'w');  // made before an allocation fails
         const kinglet_status status = pass(kinglet_compressor_create, text.data(), text.size(),
                                            archive, sizeof archive, &size);
         if (status != KINGLET_OK) return status;
         return pass(kinglet_decompressor_create, archive, size, a.text, sizeof a.text, &a.needed);
       }},
  };
  for (const auto& [name, ask] : calls) {
    const Checked checked(ask);
    ASSERT_EQ(checked.first(), KINGLET_OK) << name << ": " << kinglet_error_message();
    FailEachAllocation(
        name, checked, [] {}, kRepeatable);
  }
  kinglet_model_close(model);
}

// A source that could not be read leaves the lane with the one before it.
TEST(CApi, EncodingWithoutMemoryLeavesTheSourceBefore) {
  const std::vector<std::byte> bytes = *SerialiseModel(TinyTranslation());
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK);
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  static constexpr uint32_t kSource[] = {1, 12, 0, 4, 7}, kOther[] = {5, 5, 6};
  ASSERT_EQ(kinglet_session_encode(session, 0, kOther, 3), KINGLET_OK);
  ASSERT_EQ(kinglet_session_step(session, 0, 2), KINGLET_OK);
  kinglet_state* state = nullptr;
  ASSERT_EQ(kinglet_session_save(session, 0, &state), KINGLET_OK);
  const auto ask = [&](Answer& answer) {
    kinglet_status status = kinglet_session_encode(session, 0, kSource, 5);
    if (status == KINGLET_OK) status = kinglet_session_step(session, 0, 2);
    if (status == KINGLET_OK) {
      status = kinglet_session_log_probabilities(session, 0, answer.floats, 17);
    }
    return status;
  };
  const Checked checked(ask);
  ASSERT_EQ(checked.first(), KINGLET_OK);
  FailEachAllocation(
      "encode, step and ask", checked, [] {}, kRepeatable);
  ASSERT_EQ(kinglet_session_restore(session, 0, state), KINGLET_OK);
  FailEachAllocation(
      "encode", [&] { return kinglet_session_encode(session, 0, kSource, 5); },
      [&] {
        kinglet_state* now = nullptr;
        int32_t equal = 0;
        ASSERT_EQ(kinglet_session_save(session, 0, &now), KINGLET_OK);
        ASSERT_EQ(kinglet_state_equal(now, state, &equal), KINGLET_OK);
        ASSERT_EQ(equal, 1);
        kinglet_state_destroy(now);
      });
  kinglet_state_destroy(state);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

}  // namespace
}  // namespace kinglet::query_faults_test
