// One model, 32 threads, every thread its own session; states go from thread to thread, and
// some threads cancel the calls of others; models open and close at the same time, and sessions
// have worker threads. Each answer equals that of one thread alone. With ThreadSanitizer (the tsan
// preset) the test also shows that no thread reads memory while another one writes to it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "kinglet/generation.h"
#include "kinglet/kinglet.h"
#include "kinglet/queries.h"
#include "kinglet/tree.h"
#include "kinglet/words.h"
#include "tests/runtime/c_api/fixture.h"

namespace kinglet::threads_test {
namespace {

constexpr uint32_t kWords = 23;
constexpr size_t kThreads = 32;
constexpr uint32_t kTokens = 60;
constexpr uint32_t kBranch = 20;  // where the shared states are taken

// All answers of a session about the tokens it is fed.
using Answers = std::vector<double>;

uint32_t TokenAt(size_t text, uint32_t t) {
  return static_cast<uint32_t>((5 * t + text * (t / 3 + 1)) % kWords);
}

// A call that another thread may cancel, made until it is not.
template <class Call>
kinglet_status Insist(const Call& call) {
  kinglet_status status = call();
  while (status == KINGLET_CANCELLED) status = call();
  return status;
}

// Feeds tokens [from, to) of a text and appends what the session answers after each.
void Feed(kinglet_session* session, uint32_t lane, size_t text, uint32_t from, uint32_t to,
          Answers* answers) {
  for (uint32_t t = from; t < to; ++t) {
    ASSERT_EQ(Insist([&] { return kinglet_session_step(session, lane, TokenAt(text, t)); }),
              KINGLET_OK);
    double one = 0;
    uint32_t best[3], drawn = 0;
    std::array<float, kWords> all;
    const uint32_t word = TokenAt(text, t + 1);
    ASSERT_EQ(
        Insist([&] { return kinglet_session_top_k(session, lane, 3, best, nullptr, 3, nullptr); }),
        KINGLET_OK);
    ASSERT_EQ(Insist([&] { return kinglet_session_log_probability(session, lane, word, &one); }),
              KINGLET_OK);
    ASSERT_EQ(Insist([&] { return kinglet_session_draw(session, lane, t, nullptr, &drawn); }),
              KINGLET_OK);
    ASSERT_EQ(Insist([&] {
                return kinglet_session_log_probabilities(session, lane, all.data(), kWords);
              }),
              KINGLET_OK);
    answers->insert(answers->end(), {one, double(best[0]), double(best[2]), double(drawn)});
    answers->insert(answers->end(), all.begin(), all.end());
  }
}

// What each thread does with the shared state of `text`: its own lane 0 goes through the text,
// lane 1 continues from the shared state, lane 2 is a fork of lane 1 that goes another way, and the
// state as bytes read again is the state.
void Work(const kinglet_model* model, kinglet_session* session, const kinglet_state* shared,
          size_t text, Answers* answers) {
  Feed(session, 0, text, 0, kTokens, answers);
  ASSERT_EQ(kinglet_session_restore(session, 1, shared), KINGLET_OK);
  ASSERT_EQ(kinglet_session_fork(session, 1, 2), KINGLET_OK);
  Feed(session, 1, text, kBranch, kTokens, answers);
  Feed(session, 2, text + 1, kBranch, kTokens, answers);

  kinglet_state *saved = nullptr, *read = nullptr;
  ASSERT_EQ(kinglet_session_restore(session, 0, shared), KINGLET_OK);
  ASSERT_EQ(kinglet_session_save(session, 0, &saved), KINGLET_OK);
  uint64_t size = 0, hash = 0, hash_of_shared = 0;
  ASSERT_EQ(kinglet_state_bytes(shared, &size), KINGLET_OK);
  std::vector<unsigned char> bytes(size);
  ASSERT_EQ(kinglet_state_write(shared, bytes.data(), size, nullptr), KINGLET_OK);
  ASSERT_EQ(kinglet_state_read(model, bytes.data(), size, &read), KINGLET_OK);
  int32_t saved_is_equal = 0, read_is_equal = 0;
  ASSERT_EQ(kinglet_state_equal(shared, saved, &saved_is_equal), KINGLET_OK);
  ASSERT_EQ(kinglet_state_equal(read, shared, &read_is_equal), KINGLET_OK);
  EXPECT_EQ(saved_is_equal + read_is_equal, 2);
  ASSERT_EQ(kinglet_state_hash(shared, &hash_of_shared), KINGLET_OK);
  ASSERT_EQ(kinglet_state_hash(read, &hash), KINGLET_OK);
  EXPECT_EQ(hash, hash_of_shared);
  kinglet_state_destroy(read);
  kinglet_state_destroy(saved);
}

kinglet_session* StartLanes(const kinglet_model* model, uint32_t threads = 1) {
  kinglet_session_options options;
  EXPECT_EQ(kinglet_session_options_init(&options, sizeof options), KINGLET_OK);
  options.lanes = 3;
  options.threads = threads;
  kinglet_session* session = nullptr;
  EXPECT_EQ(kinglet_session_create(model, &options, &session), KINGLET_OK)
      << kinglet_error_message();
  return session;
}

TEST(CApiThreads, ManyShareAModelAndStates) {
  kinglet_model* model = OpenTiny({.cache_capacity = 4});
  // Two and two come from one stream, and share its pages.
  std::array<kinglet_state*, kThreads> states{};
  std::array<Answers, kThreads> expected, found;
  for (size_t i = 0; i < kThreads; i += 2) {
    kinglet_session* session = StartLanes(model);
    Answers unused;
    Feed(session, 0, i, 0, kBranch, &unused);
    ASSERT_EQ(kinglet_session_save(session, 0, &states[i]), KINGLET_OK);
    Feed(session, 0, i, kBranch, kBranch + 1, &unused);
    ASSERT_EQ(kinglet_session_save(session, 0, &states[i + 1]), KINGLET_OK);
    kinglet_session_destroy(session);
  }
  for (size_t i = 0; i < kThreads; ++i) {
    kinglet_session* session = StartLanes(model);
    Work(model, session, states[i % 4], i, &expected[i]);  // a state is several threads'
    kinglet_session_destroy(session);
  }

  std::array<kinglet_session*, kThreads> sessions{};
  for (kinglet_session*& session : sessions) session = StartLanes(model);
  std::atomic<size_t> working{kThreads};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      // Another's session is cancelled now and then, while its owner uses it.
      EXPECT_EQ(kinglet_session_cancel(sessions[(i + 1) % kThreads]), KINGLET_OK);
      Work(model, sessions[i], states[i % 4], i, &found[i]);
      EXPECT_EQ(kinglet_session_cancel(sessions[(i + 5) % kThreads]), KINGLET_OK);
      // Sessions come and go while others compute.
      kinglet_session* own = StartLanes(model);
      Answers more;
      Work(model, own, states[(i + 1) % 4], i, &more);
      EXPECT_EQ(more.size(), found[i].size());
      kinglet_session_destroy(own);
      --working;
    });
  }
  while (working > 0) {
    for (size_t i = 0; i < kThreads; i += 2) kinglet_session_cancel(sessions[i]);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(found[i], expected[i]) << i;
    kinglet_session_destroy(sessions[i]);
    kinglet_state_destroy(states[i]);
  }
  kinglet_model_close(model);
}

// A model of the thread's own, opened from the bytes that all share and closed before its last
// session: a session with workers continues with a state of the shared model, which another thread
// may be restoring, in all lanes at once. With `cancelled`, the number of calls that a canceller
// has made, it continues after the first of them: a quick thread would be done before the canceller
// runs.
void OpenAndClose(const std::vector<std::byte>& file, const kinglet_model* shared, size_t text,
                  std::atomic<kinglet_session*>* published, Answers* answers,
                  const std::atomic<uint64_t>* cancelled = nullptr) {
  kinglet_model* own = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(file.data(), file.size(), nullptr, &own), KINGLET_OK)
      << kinglet_error_message();
  kinglet_session* first = StartLanes(shared);
  Feed(first, 0, text, 0, kBranch, answers);
  kinglet_state* state = nullptr;
  ASSERT_EQ(kinglet_session_save(first, 0, &state), KINGLET_OK);
  kinglet_session_destroy(first);
  uint64_t size = 0;
  ASSERT_EQ(kinglet_state_bytes(state, &size), KINGLET_OK);
  std::vector<unsigned char> bytes(size);
  ASSERT_EQ(kinglet_state_write(state, bytes.data(), size, nullptr), KINGLET_OK);
  kinglet_state_destroy(state);

  kinglet_session* session = StartLanes(own, 3);
  ASSERT_EQ(kinglet_state_read(own, bytes.data(), size, &state), KINGLET_OK);
  kinglet_model_close(own);
  for (uint32_t lane = 0; lane < 3; ++lane) {
    ASSERT_EQ(kinglet_session_restore(session, lane, state), KINGLET_OK);
  }
  kinglet_state_destroy(state);
  published->store(session);  // from now on another thread cancels
  while (cancelled != nullptr && *cancelled == 0) std::this_thread::yield();
  const uint32_t lanes[] = {0, 1, 2};
  for (uint32_t t = kBranch; t < kTokens; ++t) {
    const uint32_t ids[] = {TokenAt(text, t), TokenAt(text + 1, t), TokenAt(text + 2, t)};
    ASSERT_EQ(Insist([&] { return kinglet_session_step_lanes(session, lanes, ids, 3); }),
              KINGLET_OK);
    for (const uint32_t lane : lanes) {
      double one = 0;
      ASSERT_EQ(
          Insist([&] { return kinglet_session_log_probability(session, lane, ids[2], &one); }),
          KINGLET_OK);
      answers->push_back(one);
    }
    if (t % 13 == 0) {
      ASSERT_EQ(kinglet_session_reset(session, 1), KINGLET_OK);
    }
    if (t % 17 == 0) {
      ASSERT_EQ(kinglet_session_fork(session, 0, 1), KINGLET_OK);
    }
  }
  // The thread that takes the session away destroys it; a thread that cancels keeps it meanwhile.
  kinglet_session* taken = session;
  while (!published->compare_exchange_weak(taken, nullptr)) taken = session;
  kinglet_session_destroy(session);
}

TEST(CApiThreads, ManyOpenAndCloseModelsWithWorkersOfTheirOwn) {
  constexpr int kRounds = 3;
  const std::vector<std::byte> file = TinyModel({.cache_capacity = 4});
  kinglet_model* model = OpenTiny({.cache_capacity = 4});
  std::array<Answers, kThreads> expected, found;
  std::array<std::atomic<kinglet_session*>, kThreads> published{};
  for (size_t i = 0; i < kThreads; ++i) {
    OpenAndClose(file, model, i, &published[i], &expected[i]);
  }
  std::atomic<size_t> working{kThreads};
  std::atomic<uint64_t> cancelled{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        Answers answers;
        OpenAndClose(file, model, i, &published[i], &answers, &cancelled);
        EXPECT_EQ(answers, expected[i]) << i;
        found[i] = answers;
      }
      --working;
    });
  }
  while (working > 0) {
    for (std::atomic<kinglet_session*>& place : published) {
      kinglet_session* session = place.exchange(nullptr);
      if (session == nullptr) continue;
      cancelled += kinglet_session_cancel(session) == KINGLET_OK ? 1 : 0;
      place.store(session);
    }
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(cancelled, 0u);
  for (size_t i = 0; i < kThreads; ++i) EXPECT_EQ(found[i], expected[i]) << i;
  kinglet_model_close(model);
}

// A model of characters and of pieces of a few.
kinglet_model* OpenText() {
  ModelDraft draft = TinyMicronet({.cache_capacity = 4});
  const char* const pieces[] = {"<unk>", "a", "b", "ab", "ba", "aab", " ", "<eos>"};
  std::copy(std::begin(pieces), std::end(pieces), draft.vocabulary.begin());
  draft.tokenizer = TextTables{false, WordRule{WordRule::Rule::kCharacters}};
  const auto bytes = SerialiseModel(draft).value();
  kinglet_model* model = nullptr;
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK)
      << kinglet_error_message();
  return model;
}

// What one thread asks about text: the tokenizer, the streams that follow a text's prefixes, words
// in a session's own memory, embeddings, a tree, and a text that is written with a beam.
void AskAboutText(const kinglet_model* model, size_t text, Answers* answers) {
  const std::string line = std::string(text % 5, 'b') + "ab aab zb";
  std::array<uint32_t, 64> ids;
  std::array<char, 256> written;
  uint64_t count = 0, steps = 0;
  ASSERT_EQ(kinglet_model_tokenize(model, line.data(), line.size(), ids.data(), nullptr, ids.size(),
                                   &count),
            KINGLET_OK);
  answers->insert(answers->end(), ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count));
  ASSERT_EQ(
      kinglet_model_detokenize(model, ids.data(), count, written.data(), written.size(), nullptr),
      KINGLET_OK);
  EXPECT_EQ(std::string(written.data()).substr(0, 2), line.substr(0, 2));

  kinglet_session* session = StartLanes(model, 1 + text % 2);
  ASSERT_EQ(kinglet_session_step_many(session, 1, ids.data(), count, nullptr, nullptr), KINGLET_OK);
  const std::string prefix = "ab" + std::string(text % 3, 'a');
  double probability = 0;
  ASSERT_EQ(kinglet_session_text_probability(session, 1, prefix.data(), prefix.size(), 1000,
                                             &probability, &steps),
            KINGLET_OK);
  answers->insert(answers->end(), {probability, double(steps)});
  std::array<uint32_t, 64> characters;
  std::array<double, 64> numbers;
  uint32_t found = 0;
  ASSERT_EQ(kinglet_session_text_next_characters(session, 1, prefix.data(), prefix.size(), 1000,
                                                 characters.data(), numbers.data(), numbers.size(),
                                                 &found, &steps),
            KINGLET_OK);
  answers->insert(answers->end(), numbers.begin(), numbers.begin() + found);
  ASSERT_EQ(kinglet_session_text_words(session, 1, prefix.data(), prefix.size(), 3, 4, 100,
                                       written.data(), written.size(), nullptr, nullptr,
                                       numbers.data(), &found, &steps),
            KINGLET_OK);
  answers->insert(answers->end(), numbers.begin(), numbers.begin() + found);
  ASSERT_EQ(kinglet_session_prefix_probability(session, 1, "a", 1, &probability), KINGLET_OK);
  answers->push_back(probability);
  const uint32_t parents[] = {KINGLET_NO_PARENT, 0, 0, 1, 2};
  ASSERT_EQ(kinglet_session_score_tree(session, parents, ids.data(), 5, numbers.data(), &steps),
            KINGLET_OK);
  answers->insert(answers->end(), numbers.begin(), numbers.begin() + 5);
  kinglet_session_destroy(session);

  kinglet_beam_options of_beam;
  ASSERT_EQ(kinglet_beam_options_init(&of_beam, sizeof of_beam), KINGLET_OK);
  of_beam.threads = static_cast<uint32_t>(1 + text % 2);
  of_beam.lanes = 2;
  of_beam.state_bytes = 1;
  kinglet_beam* beam = nullptr;
  ASSERT_EQ(kinglet_beam_create(model, &of_beam, &beam), KINGLET_OK);
  uint64_t from[3] = {}, to[3] = {};
  ASSERT_EQ(kinglet_beam_begin(beam, nullptr, from), KINGLET_OK);
  from[1] = from[2] = from[0];
  for (int t = 0; t < 3; ++t) {
    ASSERT_EQ(kinglet_beam_step(beam, from, ids.data() + t, 3, to), KINGLET_OK);
    ASSERT_EQ(kinglet_beam_log_probability(beam, to, ids.data(), 3, numbers.data()), KINGLET_OK);
    answers->insert(answers->end(), numbers.begin(), numbers.begin() + 3);
    ASSERT_EQ(kinglet_beam_drop(beam, from, t == 0 ? 1 : 3), KINGLET_OK);
    std::copy(std::begin(to), std::end(to), std::begin(from));
  }
  kinglet_beam_destroy(beam);

  kinglet_embedding* embedding = nullptr;
  ASSERT_EQ(kinglet_embedding_create(model, &embedding), KINGLET_OK);
  uint32_t width = 0;
  ASSERT_EQ(kinglet_embedding_width(embedding, &width), KINGLET_OK);
  std::vector<float> vectors(count * width);
  ASSERT_EQ(kinglet_embedding_vectors(embedding, ids.data(), count, vectors.data(), vectors.size()),
            KINGLET_OK);
  answers->insert(answers->end(), vectors.begin(), vectors.end());
  kinglet_embedding_destroy(embedding);

  kinglet_generation_options options;
  ASSERT_EQ(kinglet_generation_options_init(&options, sizeof options), KINGLET_OK);
  options.tokens = 8;
  kinglet_generation* generation = nullptr;
  ASSERT_EQ(kinglet_generation_create(model, &options, ids.data(), count, &generation), KINGLET_OK);
  int32_t more = 1;
  while (more != 0) ASSERT_EQ(kinglet_generation_next(generation, &more), KINGLET_OK);
  ASSERT_EQ(kinglet_generation_text(generation, 0, written.data(), written.size(), &count),
            KINGLET_OK);
  answers->insert(answers->end(), written.begin(), written.begin() + static_cast<ptrdiff_t>(count));
  kinglet_generation_destroy(generation);
}

TEST(CApiThreads, ManyTokenizeTextAndAskAboutIt) {
  constexpr int kRounds = 3;
  kinglet_model* model = OpenText();
  std::array<Answers, kThreads> expected, found;
  for (size_t i = 0; i < kThreads; ++i) AskAboutText(model, i, &expected[i]);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        found[i].clear();
        AskAboutText(model, i, &found[i]);
        EXPECT_EQ(found[i], expected[i]) << i;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  kinglet_model_close(model);
}

}  // namespace
}  // namespace kinglet::threads_test
