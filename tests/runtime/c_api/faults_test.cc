// The C interface with wrong arguments, options and files, and when memory runs out: it returns an
// error, changes nothing and continues to work.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kinglet/kinglet.h"
#include "tests/runtime/c_api/fixture.h"
#include "tests/support/classifier_builder.h"
#include "tests/support/fail_each_allocation.h"
#include "tests/support/masked_builder.h"

namespace kinglet::faults_test {
namespace {

TEST(CApi, BadBytesAreRefusedAndNothingIsWritten) {
  std::vector<std::byte> bytes = TinyModel();
  auto* const untouched = reinterpret_cast<kinglet_model*>(&bytes);
  kinglet_model* model = untouched;
  for (size_t size = 0; size < bytes.size(); size += 1 + size / 16) {
    EXPECT_NE(kinglet_model_open_memory(bytes.data(), size, nullptr, &model), KINGLET_OK) << size;
    EXPECT_STRNE(kinglet_error_message(), "");
  }
  bytes[bytes.size() / 2] ^= std::byte{1};
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model),
            KINGLET_CORRUPT);
  EXPECT_EQ(kinglet_model_open_memory(bytes.data(), UINT64_MAX, nullptr, &model),
            KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(kinglet_model_open("no/such/model.kgl", nullptr, &model), KINGLET_NOT_FOUND);
  EXPECT_NE(std::string(kinglet_error_message()).find("no/such/model.kgl"), std::string::npos);
  EXPECT_EQ(model, untouched);
}

TEST(CApi, ErrorTextIsOneShortLinePerThread) {
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open("first", nullptr, &model), KINGLET_NOT_FOUND);
  const std::string mine = kinglet_error_message();
  std::string before = "unset", after;
  std::thread([&] {
    before = kinglet_error_message();
    kinglet_model_open("second", nullptr, &model);
    after = kinglet_error_message();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_NE(after.find("second"), std::string::npos);
  EXPECT_EQ(kinglet_error_message(), mine);
  kinglet_abi_version();
  uint32_t unused = 0;
  model = OpenTiny();
  ASSERT_EQ(kinglet_model_vocabulary_size(model, &unused), KINGLET_OK);
  EXPECT_EQ(kinglet_error_message(), mine);  // calls that succeed do not change the text
  kinglet_model_close(model);

  EXPECT_NE(kinglet_model_open("two\nlines\x1b[31m", nullptr, &model), KINGLET_OK);
  EXPECT_NE(std::string(kinglet_error_message()).find("two?lines?[31m"), std::string::npos);
  for (size_t shift = 0; shift < 3; ++shift) {  // truncated at each byte of a character
    std::string path(shift, 'x');
    for (int i = 0; i < 1000; ++i) path += "\u20ac";
    EXPECT_NE(kinglet_model_open(path.c_str(), nullptr, &model), KINGLET_OK);
    const std::string text = kinglet_error_message();
    EXPECT_LE(text.size(), 1023U);
    EXPECT_GE(text.size(), 1021U);
    EXPECT_EQ(text.substr(text.size() - 3), "\u20ac");
  }
}

// A model file, whose bytes come from mmap.
TEST(CApi, AFileWithoutMemoryIsAnErrorLikeAnyOther) {
  const std::vector<std::byte> bytes = TinyModel({.quantised = true});
  const std::string path = testing::TempDir() + "faults_test.kgl";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  kinglet_model* model = nullptr;
  const int64_t places = FailEachAllocation(
      "open a file", [&] { return kinglet_model_open(path.c_str(), nullptr, &model); },
      [&] { ASSERT_EQ(model, nullptr); });
  EXPECT_GT(places, 50);
  kinglet_model_close(model);
}

TEST(CApi, RunningOutOfMemoryIsAnErrorLikeAnyOther) {
  const std::vector<std::byte> bytes = TinyModel({.cache_capacity = 4});
  const auto nothing = [] {};
  kinglet_model* model = nullptr;
  FailEachAllocation(
      "open",
      [&] { return kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model); },
      [&] { ASSERT_EQ(model, nullptr); });
  kinglet_session* session = nullptr;
  FailEachAllocation(
      "create", [&] { return kinglet_session_create(model, nullptr, &session); },
      [&] { ASSERT_EQ(session, nullptr); });
  uint64_t position = 0;
  FailEachAllocation(
      "step", [&] { return kinglet_session_step(session, 0, 5); },
      [&] {
        ASSERT_EQ(kinglet_session_position(session, 0, &position), KINGLET_OK);
        ASSERT_EQ(position, 0U);
      });
  double log_probability = 0;
  FailEachAllocation(
      "log_probability",
      [&] { return kinglet_session_log_probability(session, 0, 20, &log_probability); }, nothing);
  uint32_t ids[23];
  FailEachAllocation(
      "top_k", [&] { return kinglet_session_top_k(session, 0, 23, ids, nullptr, 23, nullptr); },
      nothing);
  float all[23];
  FailEachAllocation(
      "log_probabilities", [&] { return kinglet_session_log_probabilities(session, 0, all, 23); },
      nothing);
  EXPECT_EQ(double{all[20]}, log_probability);
  char text[40];
  FailEachAllocation(
      "token_text", [&] { return kinglet_model_token_text(model, 3, text, 40, nullptr); }, nothing);
  uint32_t id = 0;
  FailEachAllocation(
      "find_token", [&] { return kinglet_model_find_token(model, "w3", 2, &id); }, nothing);
  EXPECT_EQ(id, 3U);

  // Reporting the error needs no memory.
  {
    const FailingMemory memory(0, Failing::kAll);
    EXPECT_EQ(kinglet_session_step(session, 0, 23), KINGLET_OUT_OF_MEMORY);
  }
  EXPECT_NE(std::string(kinglet_error_message()).find("memory"), std::string::npos);

  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

TEST(CApi, RunningOutOfMemoryLeavesEmbeddingsAsTheyWere) {
  const std::vector<std::byte> bytes = *SerialiseModel(TinyClassifier({.hidden = 5}));
  const auto nothing = [] {};
  kinglet_model* model = nullptr;
  FailEachAllocation(
      "open",
      [&] { return kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model); },
      [&] { ASSERT_EQ(model, nullptr); });
  kinglet_embedding* embedding = nullptr;
  FailEachAllocation(
      "create", [&] { return kinglet_embedding_create(model, &embedding); },
      [&] { ASSERT_EQ(embedding, nullptr); });
  const uint32_t ids[] = {1, 22, 1};
  float vectors[18];
  FailEachAllocation(
      "vectors", [&] { return kinglet_embedding_vectors(embedding, ids, 3, vectors, 18); },
      nothing);
  double logits[4] = {7};
  FailEachAllocation(
      "classify", [&] { return kinglet_embedding_classify(embedding, ids, 3, logits, nullptr, 4); },
      [&] { ASSERT_EQ(logits[0], 7); });
  kinglet_embedding_destroy(embedding);
  kinglet_model_close(model);
}

TEST(CApi, RunningOutOfMemoryLeavesTheTextThatWasRead) {
  const std::vector<std::byte> bytes = *SerialiseModel(TinyMasked({.scores = 3}));
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK);
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  const uint32_t ids[] = {2, 5, 4, 3, 9}, segments[] = {0, 0, 0, 0, 1};
  ASSERT_EQ(kinglet_session_read(session, 0, ids, segments, 3), KINGLET_OK);
  double before = 0, after = 0;
  const auto ask = [&](double* out) {
    ASSERT_EQ(kinglet_session_look_at(session, 0, 2), KINGLET_OK);
    ASSERT_EQ(kinglet_session_log_probability(session, 0, 5, out), KINGLET_OK);
  };
  ask(&before);
  FailEachAllocation(
      "read", [&] { return kinglet_session_read(session, 0, ids, segments, 5); },
      [&] {
        ask(&after);
        ASSERT_EQ(after, before);
      });
  ask(&after);
  EXPECT_NE(after, before);
  double pooled[8] = {7}, scores[3] = {7};
  FailEachAllocation(
      "look_at", [&] { return kinglet_session_look_at(session, 0, 4); }, [] {});
  FailEachAllocation(
      "pooled", [&] { return kinglet_session_pooled(session, 0, pooled, 8); },
      [&] { ASSERT_EQ(pooled[0], 7); });
  FailEachAllocation(
      "scores", [&] { return kinglet_session_scores(session, 0, 0, scores, 3); },
      [&] { ASSERT_EQ(scores[0], 7); });
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

TEST(CApi, RunningOutOfMemoryLeavesWordsAsTheyWere) {
  const std::vector<std::byte> bytes = *SerialiseModel(TinyMicronet());
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(bytes.data(), bytes.size(), nullptr, &model), KINGLET_OK);
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  ASSERT_EQ(kinglet_session_step(session, 0, 0), KINGLET_OK);
  kinglet_typing* typing = nullptr;
  FailEachAllocation(
      "create", [&] { return kinglet_typing_create(model, &typing); },
      [&] { ASSERT_EQ(typing, nullptr); });
  const std::string path = testing::TempDir() + "kinglet_faults_words";
  std::filesystem::remove(path);
  ASSERT_EQ(kinglet_typing_open_words(typing, path.c_str()), KINGLET_OK);
  // Room that the first word makes stays.
  ASSERT_EQ(kinglet_typing_learn(typing, "after", "first"), KINGLET_OK);
  uint64_t words = 0, uses[4] = {0}, expected = 1, bytes_before = std::filesystem::file_size(path);
  const auto expect_words = [&] {
    ASSERT_EQ(std::filesystem::file_size(path), bytes_before);
    ASSERT_EQ(kinglet_typing_list(typing, 4, nullptr, 0, nullptr, nullptr, uses, &words),
              KINGLET_OK);
    ASSERT_EQ(words, expected);
  };
  for (const char* const word : {"kinglet", "a-word-that-no-short-string-holds"}) {
    FailEachAllocation(
        "learn", [&] { return kinglet_typing_learn(typing, "after", word); }, expect_words);
    ++expected;
    EXPECT_GT(std::filesystem::file_size(path), bytes_before);
    bytes_before = std::filesystem::file_size(path);
    expect_words();
    EXPECT_EQ(uses[0] + uses[1] + uses[2], expected);
  }
  kinglet_typing_input input;
  ASSERT_EQ(kinglet_typing_input_init(&input, sizeof input), KINGLET_OK);
  char texts[4096] = "*";
  FailEachAllocation(
      "find",
      [&] {
        return kinglet_typing_find(typing, session, 0, &input, 30, texts, sizeof texts, nullptr,
                                   nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
      },
      [&] { ASSERT_STREQ(texts, "*"); });
  uint64_t removed = 0;
  FailEachAllocation(
      "unlearn", [&] { return kinglet_typing_unlearn(typing, "kinglet", &removed); }, expect_words);
  EXPECT_EQ(removed, 1u);
  kinglet_typing_destroy(typing);
  std::filesystem::remove(path);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

// Everything that a caller sees of a session: positions, probabilities and states of its lanes.
std::vector<std::vector<unsigned char>> Picture(kinglet_session* session, uint32_t lanes) {
  std::vector<std::vector<unsigned char>> picture;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    kinglet_state* state = nullptr;
    EXPECT_EQ(kinglet_session_save(session, lane, &state), KINGLET_OK);
    uint64_t size = 0, position = 0;
    EXPECT_EQ(kinglet_state_bytes(state, &size), KINGLET_OK);
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(kinglet_state_write(state, bytes.data(), size, nullptr), KINGLET_OK);
    kinglet_state_destroy(state);
    EXPECT_EQ(kinglet_session_position(session, lane, &position), KINGLET_OK);
    if (position > 0) {
      float all[23];
      EXPECT_EQ(kinglet_session_log_probabilities(session, lane, all, 23), KINGLET_OK);
      const auto* from = reinterpret_cast<const unsigned char*>(all);
      bytes.insert(bytes.end(), from, from + sizeof all);
    }
    picture.push_back(bytes);
  }
  return picture;
}

class OutOfMemory : public testing::TestWithParam<const char*> {};

// A session of three lanes.
kinglet_session* StartThree(const kinglet_model* model, kinglet_status* status) {
  kinglet_session_options options;
  kinglet_session* session = nullptr;
  *status = kinglet_session_options_init(&options, sizeof options);
  options.lanes = 3;
  if (*status == KINGLET_OK) *status = kinglet_session_create(model, &options, &session);
  return session;
}

TEST_P(OutOfMemory, LeavesEveryLaneAndStateAsItWas) {
  const std::vector<std::byte> bytes = TinyModel({.cache_capacity = 4});
  kinglet_model_options options;
  ASSERT_EQ(kinglet_model_options_init(&options, sizeof options), KINGLET_OK);
  options.backend = GetParam();
  uint32_t lines = 0;
  options.log = [](void* user, int32_t, const char*) { ++*static_cast<uint32_t*>(user); };
  options.log_user = &lines;
  kinglet_model* model = nullptr;
  FailEachAllocation(
      "open",
      [&] { return kinglet_model_open_memory(bytes.data(), bytes.size(), &options, &model); },
      [&] { ASSERT_EQ(model, nullptr); });
  kinglet_session* session = nullptr;
  FailEachAllocation(
      "create",
      [&] {
        kinglet_status status;
        session = StartThree(model, &status);
        return status;
      },
      [&] { ASSERT_EQ(session, nullptr); });
  EXPECT_GT(lines, 0U);

  const uint32_t lanes[] = {1, 0};
  for (uint32_t t = 0; t < 6; ++t) {
    const uint32_t ids[] = {kStream[t], kStream[t + 1]};
    const auto before = Picture(session, 3);
    const auto unchanged = [&] { ASSERT_EQ(Picture(session, 3), before); };
    // The first call makes a text block. The lane is restored afterwards.
    kinglet_state* kept = nullptr;
    ASSERT_EQ(kinglet_session_save(session, 2, &kept), KINGLET_OK);
    double of_text[4] = {7, 7, 7, 7};
    FailEachAllocation(
        "step_many",
        [&] { return kinglet_session_step_many(session, 2, kStream, 4, of_text, nullptr); },
        unchanged);
    ASSERT_EQ(kinglet_session_restore(session, 2, kept), KINGLET_OK);
    kinglet_state_destroy(kept);
    FailEachAllocation(
        "step_lanes", [&] { return kinglet_session_step_lanes(session, lanes, ids, 2); },
        unchanged);
    // Another token every time, so that every query has something to compute.
    const uint32_t asked[] = {22, 1, 22};
    double some[3] = {7, 7, 7};
    float all[23] = {7};
    uint32_t word = 99, best[5] = {99, 99, 99, 99, 99}, count = 99;
    const auto untouched = [&] {
      ASSERT_TRUE(some[0] == 7 && some[1] == 7 && some[2] == 7 && all[0] == 7 && word == 99 &&
                  best[0] == 99 && count == 99);
    };
    const auto query = [&]() -> kinglet_status {
      switch (t) {
        case 0:
          return kinglet_session_log_probabilities_of(session, 0, asked, 3, some);
        case 1:
          return kinglet_session_probabilities(session, 0, all, 23);
        case 2:
          return kinglet_session_top_k(session, 0, 5, best, some, 5, &count);
        case 3:
          return kinglet_session_log_probabilities(session, 0, all, 23);
        case 4:
          return kinglet_session_log_probability(session, 0, 22, some);
        default:
          return kinglet_session_draw(session, 0, 3, nullptr, &word);
      }
    };
    FailEachAllocation("query", query, untouched);
    kinglet_work work{};
    work.struct_size = sizeof work;
    FailEachAllocation(
        "last_work", [&] { return kinglet_session_last_work(session, 0, &work); },
        [&] { ASSERT_EQ(work.clusters_opened, 0U); });
    // Where the query failed after its clusters, the last one found them computed.
    EXPECT_TRUE(work.clusters_opened != 0 || t != 0);
  }

  auto before = Picture(session, 3);
  const auto unchanged = [&] { ASSERT_EQ(Picture(session, 3), before); };
  ASSERT_EQ(kinglet_session_step(session, 0, 5), KINGLET_OK);  // writes pages that no state has
  kinglet_state* state = nullptr;
  FailEachAllocation(
      "save", [&] { return kinglet_session_save(session, 0, &state); },
      [&] { ASSERT_EQ(state, nullptr); });
  ASSERT_EQ(kinglet_session_step(session, 0, 5), KINGLET_OK);
  before = Picture(session, 3);
  FailEachAllocation(
      "fork", [&] { return kinglet_session_fork(session, 0, 2); }, unchanged);
  before[2] = before[0];
  unchanged();
  uint64_t size = 0;
  ASSERT_EQ(kinglet_state_bytes(state, &size), KINGLET_OK);
  std::vector<unsigned char> written(size);
  FailEachAllocation(
      "write", [&] { return kinglet_state_write(state, written.data(), size, nullptr); },
      [&] { ASSERT_EQ(written[0], 0); });
  kinglet_state* read = nullptr;
  FailEachAllocation(
      "read", [&] { return kinglet_state_read(model, written.data(), size, &read); },
      [&] { ASSERT_EQ(read, nullptr); });
  int32_t equal = 0;
  FailEachAllocation(
      "equal", [&] { return kinglet_state_equal(read, state, &equal); }, [] {});
  EXPECT_EQ(equal, 1);
  uint64_t hash = 0, same_hash = 0;
  FailEachAllocation(
      "hash", [&] { return kinglet_state_hash(read, &hash); }, [] {});
  ASSERT_EQ(kinglet_state_hash(state, &same_hash), KINGLET_OK);
  EXPECT_EQ(hash, same_hash);
  FailEachAllocation(
      "restore", [&] { return kinglet_session_restore(session, 1, read); }, unchanged);
  FailEachAllocation(
      "reset", [&] { return kinglet_session_reset(session, 2); }, [] {});
  char text[40];
  FailEachAllocation(
      "digest", [&] { return kinglet_model_digest(model, text, 40, nullptr); }, [] {});
  FailEachAllocation(
      "backend", [&] { return kinglet_model_backend(model, text, 40, nullptr); }, [] {});
  EXPECT_STREQ(text, GetParam());

  // After all failures, lane 1 continues like a stream without any.
  kinglet_status status;
  kinglet_session* fresh = StartThree(model, &status);
  ASSERT_EQ(status, KINGLET_OK);
  for (uint32_t t = 0; t < 6; ++t) {
    ASSERT_EQ(kinglet_session_step(fresh, 1, kStream[t + 1]), KINGLET_OK);
  }
  ASSERT_EQ(kinglet_session_step(fresh, 1, 5), KINGLET_OK);
  EXPECT_EQ(Picture(session, 2)[1], Picture(fresh, 2)[1]);
  kinglet_session_destroy(fresh);
  kinglet_state_destroy(read);
  kinglet_state_destroy(state);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

INSTANTIATE_TEST_SUITE_P(CApi, OutOfMemory, testing::Values("cpu", "ref", "ref64"),
                         [](const auto& backend) { return std::string(backend.param); });

// On `onednn` with products of the library, which is loaded here.
TEST(CApi, StepsOfManyLanesAllocateNothing) {
  constexpr uint32_t kLanes = 16;
  const std::vector<std::byte> bytes = TinyModel(
      {.cache_capacity = 4, .width = 32, .heads = 2, .key_size = 8, .value_size = 8, .inner = 64});
  for (const char* const backend : {"cpu", "onednn"}) {
    kinglet_model_options model_options;
    kinglet_model_options_init(&model_options, sizeof model_options);
    model_options.backend = backend;
    kinglet_model* model = nullptr;
    const auto open = [&] {
      return kinglet_model_open_memory(bytes.data(), bytes.size(), &model_options, &model);
    };
    if (open() == KINGLET_UNSUPPORTED) continue;  // a build without oneDNN
    kinglet_model_close(model);
    model = nullptr;
    FailEachAllocation("open", open, [&] { ASSERT_EQ(model, nullptr); });
    kinglet_session_options options;
    kinglet_session_options_init(&options, sizeof options);
    options.lanes = kLanes;
    kinglet_session* session = nullptr;
    FailEachAllocation(
        "create", [&] { return kinglet_session_create(model, &options, &session); },
        [&] { ASSERT_EQ(session, nullptr); });
    kinglet_model_close(model);
    uint32_t lanes[kLanes], ids[kLanes];
    double answers[kLanes];
    for (uint32_t i = 0; i < kLanes; ++i) lanes[i] = i;
    const auto step_and_ask = [&](uint32_t first) {
      for (uint32_t i = 0; i < kLanes; ++i) ids[i] = (first + i) % 23;
      EXPECT_EQ(kinglet_session_step_lanes(session, lanes, ids, kLanes), KINGLET_OK);
      for (uint32_t i = 0; i < kLanes; ++i) {
        EXPECT_EQ(kinglet_session_log_probability(session, i, ids[i], &answers[i]), KINGLET_OK);
      }
    };
    for (uint32_t t = 0; t < 8; ++t) step_and_ask(t);
    const uint64_t before = AllocationsMade(), before_by_new = AllocationsMadeByNew();
    for (uint32_t t = 0; t < 8; ++t) step_and_ask(t * 5);
    EXPECT_EQ(AllocationsMadeByNew(), before_by_new) << backend;
    if (std::string_view(backend) == "cpu") {
      EXPECT_EQ(AllocationsMade(), before);
    } else {  // oneDNN takes memory of its own while it multiplies
      const auto answers_of = [&](uint32_t first) {
        for (const uint32_t lane : lanes) kinglet_session_reset(session, lane);
        step_and_ask(first);
        return std::vector<double>(answers, answers + kLanes);
      };
      const std::vector<double> expected = answers_of(3);
      for (uint32_t i = 0; i < kLanes; ++i) ids[i] = (3 + i) % 23;
      FailEachAllocation(
          "step", [&] { return kinglet_session_step_lanes(session, lanes, ids, kLanes); }, [] {});
      EXPECT_EQ(answers_of(3), expected);
    }
    kinglet_session_destroy(session);
  }
}

TEST(CApi, AStepAllocatesNothing) {
  kinglet_session* session = StartTiny({.cache_capacity = 4});
  for (const uint32_t id : kStream) ASSERT_EQ(kinglet_session_step(session, 0, id), KINGLET_OK);
  double log_probability = 0;
  ASSERT_EQ(kinglet_session_log_probability(session, 0, 20, &log_probability), KINGLET_OK);
  const uint64_t before = AllocationsMade();
  for (const uint32_t id : kStream) {
    kinglet_session_step(session, 0, id);
    kinglet_session_log_probability(session, 0, 20, &log_probability);
  }
  EXPECT_EQ(AllocationsMade(), before);
  kinglet_session_destroy(session);
}

}  // namespace
}  // namespace kinglet::faults_test
