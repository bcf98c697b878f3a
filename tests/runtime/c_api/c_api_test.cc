// The answers of the C interface, from the shared library as a program outside the project uses it,
// equal those of the C++ session, which has its own tests against independent values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "format/write_file.h"
#include "kinglet/kinglet.h"
#include "runtime/accounting/meter.h"
#include "runtime/session.h"
#include "tests/runtime/c_api/c_tests.h"
#include "tests/runtime/c_api/fixture.h"
#include "tests/support/masked_builder.h"

namespace kinglet::c_api_test {
namespace {

struct CTest {
  const char* name;
  const char* (*run)();
};
void PrintTo(const CTest& test, std::ostream* out) { *out << test.name; }

class StrictC11 : public testing::TestWithParam<CTest> {};

// In a thread of its own, which has no error text yet.
TEST_P(StrictC11, Holds) {
  std::thread([] {
    const char* const failed = GetParam().run();
    EXPECT_EQ(failed, nullptr) << failed << "\n" << kinglet_error_message();
  }).join();
}

INSTANTIATE_TEST_SUITE_P(
    CApi, StrictC11,
    testing::Values(
        CTest{"Embeddings", TestEmbeddings}, CTest{"EmbeddingErrors", TestEmbeddingErrors},
        CTest{"Typing", TestTyping}, CTest{"TypingErrors", TestTypingErrors},
        CTest{"Archives", TestArchives}, CTest{"ArchiveErrors", TestArchiveErrors},
        CTest{"Ngrams", TestNgrams}, CTest{"NgramErrors", TestNgramErrors},
        CTest{"Scorers", TestScorers}, CTest{"Beams", TestBeams},
        CTest{"BeamErrors", TestBeamErrors}, CTest{"AllTexts", TestAllTexts},
        CTest{"SpecialTokens", TestSpecialTokens}, CTest{"DrawOptions", TestDrawOptions},
        CTest{"Draws", TestDraws}, CTest{"Generation", TestGeneration},
        CTest{"GenerationErrors", TestGenerationErrors}, CTest{"LaneQueries", TestLaneQueries},
        CTest{"LaneQueryErrors", TestLaneQueryErrors}, CTest{"Masked", TestMasked},
        CTest{"MaskedAnswers", TestMaskedAnswers}, CTest{"MaskedErrors", TestMaskedErrors},
        CTest{"Library", TestLibrary}, CTest{"ModelOptions", TestModelOptions},
        CTest{"ModelsOpen", TestModelsOpen}, CTest{"ModelsAnswer", TestModelsAnswer},
        CTest{"SessionOptions", TestSessionOptions}, CTest{"MemoryLimits", TestMemoryLimits},
        CTest{"Sessions", TestSessions}, CTest{"SessionOutlivesHandle", TestSessionOutlivesHandle},
        CTest{"Cancel", TestCancel}, CTest{"CancelFromAnotherThread", TestCancelFromAnotherThread},
        CTest{"Queries", TestQueries}, CTest{"QueryErrors", TestQueryErrors},
        CTest{"Temperatures", TestTemperatures}, CTest{"Work", TestWork},
        CTest{"NotFinite", TestNotFinite}, CTest{"Tokenize", TestTokenize},
        CTest{"TokenizeErrors", TestTokenizeErrors}, CTest{"ManySteps", TestManySteps},
        CTest{"Trees", TestTrees}, CTest{"TreeErrors", TestTreeErrors},
        CTest{"Sources", TestSources}, CTest{"SourceErrors", TestSourceErrors},
        CTest{"States", TestStates}, CTest{"StateBytes", TestStateBytes},
        CTest{"StateErrors", TestStateErrors}, CTest{"WordQueries", TestWordQueries},
        CTest{"WordQueryErrors", TestWordQueryErrors}, CTest{"TextQueries", TestTextQueries},
        CTest{"TextQueryErrors", TestTextQueryErrors}),
    [](const auto& test) { return std::string(test.param.name); });

void ExpectSameWork(const Session& expected, const kinglet_session* session) {
  kinglet_work work{};
  work.struct_size = sizeof work;
  ASSERT_EQ(kinglet_session_last_work(session, 0, &work), KINGLET_OK);
  const QueryWork& done = expected.last_work();
  const OperationTally tally = QueryOperations(
      expected.model().plan(), TraitsOf(expected.model().backend()), expected.position() - 1, done);
  EXPECT_EQ(work.cache_computed, done.cache ? 1U : 0U);
  EXPECT_EQ(work.clusters_opened, done.clusters.LowBits());
  EXPECT_EQ(work.cluster_count, done.clusters.Count());
  EXPECT_EQ(work.multiplications, tally.multiplications);
  EXPECT_EQ(work.additions, tally.additions);
  EXPECT_EQ(work.others, tally.others);
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
        ASSERT_EQ(kinglet_session_step(session, 0, id), KINGLET_OK);
        ASSERT_TRUE((*expected)->StepToken(id).ok());
        double rare = 0;
        ASSERT_EQ(kinglet_session_log_probability(session, 0, tiny.vocabulary_size - 1, &rare),
                  KINGLET_OK);
        ASSERT_TRUE((*expected)->LogProbability(tiny.vocabulary_size - 1).ok());
        ExpectSameWork(**expected, session);
        std::vector<float> all(tiny.vocabulary_size);
        ASSERT_TRUE((*expected)->LogProbabilities(std::span<float>(all)).ok());
        EXPECT_EQ(AllOf(session, tiny.vocabulary_size), all);
        for (uint32_t word = 0; word < tiny.vocabulary_size; ++word) {
          double log_probability = 1;
          ASSERT_EQ(kinglet_session_log_probability(session, 0, word, &log_probability),
                    KINGLET_OK);
          EXPECT_EQ(log_probability, double{all[word]});
        }
        // Of the last query: everything was there already.
        ASSERT_TRUE((*expected)->LogProbability(tiny.vocabulary_size - 1).ok());
        ExpectSameWork(**expected, session);
        uint32_t word = 0;
        const kinglet_draw_options warm = {sizeof warm, 0, 0.8, 1, nullptr, 0};
        ASSERT_EQ(kinglet_session_draw(session, 0, 7, &warm, &word), KINGLET_OK);
        const auto drawn = (*expected)->Draw(7, {.temperature = 0.8});
        ASSERT_TRUE(drawn.ok());
        EXPECT_EQ(word, *drawn);
        ExpectSameWork(**expected, session);
      }
      kinglet_session_destroy(session);
      kinglet_model_close(model);
    }
  }
}

TEST(CApi, ReadsWhatTheSessionReads) {
  auto bytes = SerialiseModel(TinyMasked({.scores = 3}));
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  kinglet_model* model = nullptr;
  ASSERT_EQ(kinglet_model_open_memory(bytes->data(), bytes->size(), nullptr, &model), KINGLET_OK);
  kinglet_session* session = nullptr;
  ASSERT_EQ(kinglet_session_create(model, nullptr, &session), KINGLET_OK);
  auto expected_model = Model::FromBytes(*bytes, {});
  ASSERT_TRUE(expected_model.ok()) << expected_model.status().message();
  auto expected = Session::Create(*expected_model);
  ASSERT_TRUE(expected.ok());
  const std::vector<uint32_t> ids = {2, 5, 4, 3, 9, 3}, segments = {0, 0, 0, 0, 1, 1};
  ASSERT_EQ(kinglet_session_read(session, 0, ids.data(), segments.data(), ids.size()), KINGLET_OK);
  ASSERT_TRUE((*expected)->Encode(ids, segments, 0).ok());
  for (uint64_t position = 0; position < ids.size(); ++position) {
    ASSERT_EQ(kinglet_session_look_at(session, 0, position), KINGLET_OK);
    ASSERT_TRUE((*expected)->LookAt(position).ok());
    std::vector<float> all((*expected_model)->vocabulary_size());
    ASSERT_TRUE((*expected)->LogProbabilities(std::span<float>(all)).ok());
    EXPECT_EQ(AllOf(session, (*expected_model)->vocabulary_size()), all);
  }
  std::vector<double> pooled((*expected)->pooled_width()), scores((*expected)->scores());
  std::vector<double> found_pooled(pooled.size()), found_scores(scores.size());
  ASSERT_TRUE((*expected)->Pooled(pooled).ok());
  ASSERT_TRUE((*expected)->Scores(scores).ok());
  EXPECT_EQ(kinglet_session_pooled(session, 0, found_pooled.data(), pooled.size()), KINGLET_OK);
  EXPECT_EQ(kinglet_session_scores(session, 0, 0, found_scores.data(), scores.size()), KINGLET_OK);
  EXPECT_EQ(found_pooled, pooled);
  EXPECT_EQ(found_scores, scores);
  kinglet_session_destroy(session);
  kinglet_model_close(model);
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
  ASSERT_EQ(kinglet_session_step(session, 0, 4), KINGLET_OK);
  ASSERT_EQ(kinglet_session_step(other, 0, 4), KINGLET_OK);
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
  EXPECT_EQ(kinglet_session_log_probability(session, 0, 0, &log_probability), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(kinglet_session_log_probabilities(session, 0, all, 23), KINGLET_NO_TOKEN_YET);
  EXPECT_EQ(kinglet_session_top_k(session, 0, 1, &count, nullptr, 1, nullptr),
            KINGLET_NO_TOKEN_YET);
  for (const uint32_t id : kStream) {
    ASSERT_EQ(kinglet_session_step(other, 0, id), KINGLET_OK);
    ASSERT_EQ(kinglet_session_step(session, 0, id), KINGLET_OK);
    EXPECT_EQ(kinglet_session_step(session, 0, 23), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_step(session, 0, UINT32_MAX), KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_log_probability(session, 0, 23, &log_probability),
              KINGLET_ID_OUT_OF_RANGE);
    EXPECT_EQ(kinglet_session_log_probabilities(session, 0, all, 22), KINGLET_BUFFER_TOO_SMALL);
    EXPECT_EQ(AllOf(session, 23), AllOf(other, 23));
  }
  EXPECT_EQ(log_probability, 1);
  uint64_t position = 0;
  ASSERT_EQ(kinglet_session_position(session, 0, &position), KINGLET_OK);
  EXPECT_EQ(position, std::size(kStream));
  kinglet_session_destroy(other);
  kinglet_session_destroy(session);
}

TEST(CApi, ResetStartsANewStream) {
  kinglet_session* session = StartTiny({.cache_capacity = 3});
  std::vector<std::vector<float>> first;
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < std::size(kStream); ++i) {
      ASSERT_EQ(kinglet_session_step(session, 0, kStream[i]), KINGLET_OK);
      if (pass == 0) first.push_back(AllOf(session, 23));
      EXPECT_EQ(AllOf(session, 23), first[i]);
    }
    ASSERT_EQ(kinglet_session_reset(session, 0), KINGLET_OK);
    uint64_t position = 1;
    ASSERT_EQ(kinglet_session_position(session, 0, &position), KINGLET_OK);
    EXPECT_EQ(position, 0U);
  }
  kinglet_session_destroy(session);
}

}  // namespace
}  // namespace kinglet::c_api_test
