// What the C interface answers, asked of the shared library itself as a program outside the project
// does, is what the C++ session answers; the session has its own tests against independent numbers.
#include "tests/runtime/c_api_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "kinglet/kinglet.h"
#include "runtime/session.h"
#include "tests/runtime/c_api_fixture.h"

namespace kinglet {
namespace {

TEST(CApi, AsStrictC11) {
  const std::vector<std::byte> bytes = TinyModel();
  const char* failed = UseInterfaceFromC(bytes.data(), bytes.size());
  EXPECT_EQ(failed, nullptr) << failed << "\n" << kinglet_error_message();
}

TEST(CApi, NamesItself) {
  EXPECT_EQ(kinglet_abi_version(), uint32_t{KINGLET_ABI_VERSION});
  EXPECT_EQ(std::atoi(kinglet_version_string()), KINGLET_ABI_VERSION);
  EXPECT_STREQ(kinglet_status_name(KINGLET_OK), "KINGLET_OK");
  EXPECT_STREQ(kinglet_status_name(KINGLET_CORRUPT), "KINGLET_CORRUPT");
  EXPECT_STREQ(kinglet_status_name(KINGLET_INTERNAL), "KINGLET_INTERNAL");
  EXPECT_STREQ(kinglet_status_name(1), "unknown status");
  EXPECT_STREQ(kinglet_status_name(INT32_MIN), "unknown status");
}

TEST(CApi, AnswersWhatTheSessionAnswers) {
  for (const uint32_t cache : {0U, 4U}) {
    for (const uint32_t empty : {0U, 1U}) {
      const TinyOptions tiny{.cache_capacity = cache};
      kinglet_model* model = OpenTiny(tiny);
      kinglet_session_options options;
      ASSERT_EQ(kinglet_session_options_init(&options, sizeof options), KINGLET_OK);
      options.empty_cache = empty;
      kinglet_session* session = nullptr;
      ASSERT_EQ(kinglet_session_create(model, &options, &session), KINGLET_OK);

      const std::vector<std::byte> bytes = TinyModel(tiny);
      auto expected_model = Model::FromBytes(bytes, {});
      ASSERT_TRUE(expected_model.ok()) << expected_model.status().message();
      auto expected = Session::Create(
          *expected_model,
          {.empty_cache = empty == 0 ? EmptyCache::kReference : EmptyCache::kNormalised});
      ASSERT_TRUE(expected.ok());
      for (const uint32_t id : kStream) {
        ASSERT_EQ(kinglet_session_step(session, id), KINGLET_OK);
        ASSERT_TRUE((*expected)->StepToken(id).ok());
        std::vector<float> all(tiny.vocabulary_size);
        ASSERT_TRUE((*expected)->LogProbabilities(std::span<float>(all)).ok());
        EXPECT_EQ(AllOf(session, tiny.vocabulary_size), all);
        for (uint32_t word = 0; word < tiny.vocabulary_size; ++word) {
          double log_probability = 1;
          ASSERT_EQ(kinglet_session_log_probability(session, word, &log_probability), KINGLET_OK);
          EXPECT_EQ(log_probability, double{all[word]});
        }
      }
      kinglet_session_destroy(session);
      kinglet_model_close(model);
    }
  }
}

TEST(CApi, TopKIsTheSortedDistribution) {
  kinglet_session* session = StartTiny();
  const uint32_t words = TinyOptions().vocabulary_size;
  for (const uint32_t id : kStream) {
    ASSERT_EQ(kinglet_session_step(session, id), KINGLET_OK);
    for (const uint32_t k : {0U, 1U, 5U, words, words + 1, UINT32_MAX}) {
      std::vector<uint32_t> ids(words, 999);
      std::vector<double> best(words, 1);
      uint32_t count = 999;
      ASSERT_EQ(kinglet_session_top_k(session, k, ids.data(), best.data(), words, &count),
                KINGLET_OK)
          << kinglet_error_message();
      ASSERT_EQ(count, std::min(k, words));
      const std::vector<float> all = AllOf(session, words);
      std::vector<uint32_t> order(words);
      for (uint32_t i = 0; i < words; ++i) order[i] = i;
      std::stable_sort(order.begin(), order.end(),
                       [&](uint32_t a, uint32_t b) { return all[a] > all[b]; });
      for (uint32_t i = 0; i < words; ++i) {
        EXPECT_EQ(ids[i], i < count ? order[i] : 999);
        EXPECT_EQ(best[i], i < count ? double{all[order[i]]} : 1.0);
      }
    }
  }
  kinglet_session_destroy(session);
}

TEST(CApi, TopKSaysHowMuchRoomItNeeds) {
  kinglet_session* session = StartTiny();
  ASSERT_EQ(kinglet_session_step(session, 0), KINGLET_OK);
  uint32_t ids[4] = {77, 77, 77, 77};
  double best[4];
  uint32_t count = 0;
  EXPECT_EQ(kinglet_session_top_k(session, 5, ids, best, 4, &count), KINGLET_BUFFER_TOO_SMALL);
  EXPECT_EQ(count, 5U);
  EXPECT_EQ(ids[0], 77U);
  EXPECT_EQ(kinglet_session_top_k(session, 5, nullptr, nullptr, 0, &count), KINGLET_OK);
  EXPECT_EQ(count, 5U);
  EXPECT_EQ(kinglet_session_top_k(session, 4, ids, nullptr, 4, nullptr), KINGLET_OK);
  EXPECT_EQ(kinglet_session_top_k(session, 4, nullptr, best, 4, nullptr), KINGLET_OK);
  double first = 0;
  ASSERT_EQ(kinglet_session_log_probability(session, ids[0], &first), KINGLET_OK);
  EXPECT_EQ(first, best[0]);
  kinglet_session_destroy(session);
}

TEST(CApi, WordsBothWays) {
  kinglet_model* model = OpenTiny();
  int32_t has_words = -1;
  ASSERT_EQ(kinglet_model_has_words(model, &has_words), KINGLET_OK);
  EXPECT_EQ(has_words, 1);
  const std::vector<std::string> words = TinyMicronet().vocabulary;
  for (uint32_t id = 0; id < words.size(); ++id) {
    uint64_t needed = 0;
    ASSERT_EQ(kinglet_model_token_text(model, id, nullptr, 0, &needed), KINGLET_OK);
    ASSERT_EQ(needed, words[id].size() + 1);
    std::string buffer(needed + 1, '*');
    EXPECT_EQ(kinglet_model_token_text(model, id, buffer.data(), needed - 1, &needed),
              KINGLET_BUFFER_TOO_SMALL);
    EXPECT_EQ(buffer, std::string(words[id].size() + 2, '*'));
    EXPECT_EQ(kinglet_model_token_text(model, id, buffer.data(), needed, nullptr), KINGLET_OK);
    EXPECT_EQ(buffer, words[id] + '\0' + '*');
    uint32_t found = 999;
    const std::string longer = words[id] + "!";  // no NUL after the word
    EXPECT_EQ(kinglet_model_find_token(model, longer.data(), words[id].size(), &found), KINGLET_OK);
    EXPECT_EQ(found, id);
    EXPECT_EQ(kinglet_model_find_token(model, longer.data(), longer.size(), &found),
              KINGLET_UNKNOWN_WORD);
    EXPECT_EQ(found, id);
  }
  uint32_t id = 7;
  EXPECT_EQ(kinglet_model_find_token(model, "", 0, &id), KINGLET_UNKNOWN_WORD);
  EXPECT_EQ(kinglet_model_find_token(model, "", UINT64_MAX, &id), KINGLET_INVALID_ARGUMENT);
  char text[8];
  EXPECT_EQ(kinglet_model_token_text(model, 23, text, 8, nullptr), KINGLET_ID_OUT_OF_RANGE);
  EXPECT_EQ(kinglet_model_token_text(model, UINT32_MAX, text, 8, nullptr), KINGLET_ID_OUT_OF_RANGE);
  kinglet_model_close(model);
}

TEST(CApi, AModelMayHaveIdsOnly) {
  kinglet_model* model = OpenTiny({.vocabulary = false});
  int32_t has_words = -1;
  ASSERT_EQ(kinglet_model_has_words(model, &has_words), KINGLET_OK);
  EXPECT_EQ(has_words, 0);
  uint32_t value = 0;
  ASSERT_EQ(kinglet_model_vocabulary_size(model, &value), KINGLET_OK);
  EXPECT_EQ(value, TinyOptions().vocabulary_size);
  char text[8];
  EXPECT_EQ(kinglet_model_token_text(model, 0, text, 8, nullptr), KINGLET_UNSUPPORTED);
  EXPECT_EQ(kinglet_model_find_token(model, "the", 3, &value), KINGLET_UNSUPPORTED);
  kinglet_model_close(model);
}

TEST(CApi, OpensFromAPathAndNamesTheContent) {
  const std::vector<std::byte> bytes = TinyModel();
  const std::string path = testing::TempDir() + "c_api_test.kgl";
  ASSERT_TRUE(WriteFileAtomically(bytes, path).ok());
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open(path.c_str(), nullptr, &model), KINGLET_OK)
      << kinglet_error_message();
  ASSERT_EQ(std::remove(path.c_str()), 0);
  auto file = ModelFile::FromBytes(bytes);
  ASSERT_TRUE(file.ok());
  char digest[33];
  uint64_t needed = 0;
  EXPECT_EQ(kinglet_model_digest(model, digest, 32, &needed), KINGLET_BUFFER_TOO_SMALL);
  EXPECT_EQ(needed, 33U);
  EXPECT_EQ(kinglet_model_digest(model, digest, sizeof digest, nullptr), KINGLET_OK);
  EXPECT_EQ(digest, (*file)->digest());
  kinglet_model_close(model);
}

TEST(CApi, BytesMayBeMisalignedAndGoAway) {
  const std::vector<std::byte> bytes = TinyModel();
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(shifted.data() + 1, bytes.size(), nullptr, &model),
            KINGLET_OK);
  std::fill(shifted.begin(), shifted.end(), std::byte{0xFF});
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  kinglet_session* other = StartTiny();
  ASSERT_EQ(kinglet_session_step(session, 4), KINGLET_OK);
  ASSERT_EQ(kinglet_session_step(other, 4), KINGLET_OK);
  EXPECT_EQ(AllOf(session, 23), AllOf(other, 23));
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
}

TEST(CApi, ErrorsLeaveTheSessionAsItWas) {
  kinglet_session* session = StartTiny();
  kinglet_session* other = StartTiny();
  double log_probability = 1;
  float all[23];
  uint32_t count = 0;
  EXPECT_EQ(kinglet_session_log_probability(session, 0, &log_probability), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(kinglet_session_log_probabilities(session, all, 23), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(kinglet_session_top_k(session, 1, &count, nullptr, 1, nullptr), KINGLET_NO_TOKEN_YET);
  for (const uint32_t id : kStream) {
    ASSERT_EQ(kinglet_session_step(other, id), KINGLET_OK);
    ASSERT_EQ(kinglet_session_step(session, id), KINGLET_OK);
    EXPECT_EQ(kinglet_session_step(session, 23), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_step(session, UINT32_MAX), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_log_probability(session, 23, &log_probability),
              KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_log_probabilities(session, all, 22), KINGLET_BUFFER_TOO_SMALL);
    EXPECT_EQ(AllOf(session, 23), AllOf(other, 23));
  }
  EXPECT_EQ(log_probability, 1);
  uint64_t position = 0;
  ASSERT_EQ(kinglet_session_position(session, &position), KINGLET_OK);
  EXPECT_EQ(position, std::size(kStream));
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
}

TEST(CApi, ResetStartsANewStream) {
  kinglet_session* session = StartTiny({.cache_capacity = 3});
  std::vector<std::vector<float>> first;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < std::size(kStream); ++i) {
      ASSERT_EQ(kinglet_session_step(session, kStream[i]), KINGLET_OK);
      if (pass == 0) first.push_back(AllOf(session, 23));
      EXPECT_EQ(AllOf(session, 23), first[i]);
    }
    ASSERT_EQ(kinglet_session_reset(session), KINGLET_OK);
    uint64_t position = 1;
    ASSERT_EQ(kinglet_session_position(session, &position), KINGLET_OK);
    EXPECT_EQ(position, 0U);
  }
  kinglet_session_destroy(session);
}

TEST(CApi, OneModelManyThreads) {
  const TinyOptions options{.cache_capacity = 4};
  kinglet_model* model = OpenTiny(options);
  std::vector<std::vector<float>> last(4);
  std::vector<std::thread> threads;
  for (auto& result : last) {
    threads.emplace_back([&result, model] {
      kinglet_session* session = nullptr;
      ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
      for (int pass = 0; pass < 20; ++pass) {
        for (const uint32_t id : kStream) ASSERT_EQ(kinglet_session_step(session, id), KINGLET_OK);
      }
      result = AllOf(session, 23);
      kinglet_session_destroy(session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : last) EXPECT_EQ(result, last[0]);
  kinglet_model_close(model);
}

}  // namespace
}  // namespace kinglet
