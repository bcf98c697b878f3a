#include "converters/golden.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <memory>

#include "format/writer.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/converters/files.h"
#include "tests/converters/synthetic.h"
#include "tests/support/masked_builder.h"
#include "tests/support/model_builder.h"
#include "tests/support/translation_builder.h"

namespace kinglet::golden_test {
namespace {

class ReadGoldenTest : public testing::Test {
 protected:
  Result<GoldenFile> Read(const std::string& golden, const std::string& ids = "5 6 7 8\n") {
    return ReadGolden(folder_.Write("golden.tsv", golden), folder_.Write("ids", ids));
  }
  void ExpectRefused(const std::string& golden, const std::string& part) {
    const Status status = Read(golden).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << golden;
    EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
  }
  TemporaryFolder folder_;
};

TEST_F(ReadGoldenTest, PositionsIdsAndTheLastField) {
  const auto golden = Read("1\t6\t-1.5\n3\t8\tignored\t\t-2.5e-1\r\n");
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  EXPECT_EQ(golden->ids, (std::vector<uint32_t>{5, 6, 7, 8}));
  ASSERT_EQ(golden->values.size(), 2U);
  EXPECT_EQ(golden->values[0].position, 1U);
  EXPECT_EQ(golden->values[0].id, 6U);
  EXPECT_EQ(golden->values[0].log_probability, -1.5);
  EXPECT_EQ(golden->values[1].position, 3U);
  EXPECT_EQ(golden->values[1].log_probability, -0.25);
  EXPECT_EQ(Read("2\t7\t-1")->values.size(), 1U);         // no newline at the end
  EXPECT_EQ(Read("0\t5\t-1\n")->values[0].position, 0U);  // after a start token
}

TEST_F(ReadGoldenTest, AnythingElseIsRefusedWithItsLine) {
  ExpectRefused("", "at least one line");
  ExpectRefused("1\t6\t-1\n\n", "line 2");
  ExpectRefused("1\t6\n", "line 1: expected position, id and value with tabs");
  ExpectRefused("1 6 -1\n", "line 1");
  ExpectRefused("4\t5\t-1\n", "below the 4 ids, found '4'");
  ExpectRefused("2\t7\t-1\n2\t7\t-1\n", "line 2: expected a position from 3");
  ExpectRefused("-1\t6\t-1\n", "found '-1'");
  ExpectRefused("1x\t6\t-1\n", "found '1x'");
  ExpectRefused("99999999999999999999\t6\t-1\n", "line 1");
  ExpectRefused("1\t7\t-1\n", "expected id 6 as in the ids, found '7'");
  ExpectRefused("1\t\t-1\n", "found ''");
  ExpectRefused("1\t6\t\n", "last field, found ''");
  ExpectRefused("1\t6\tnan\n", "found 'nan'");
  ExpectRefused("1\t6\t-inf\n", "found '-inf'");
  ExpectRefused("1\t6\t-1 \n", "found '-1 '");
  ExpectRefused("1\t6\t-1e999\n", "line 1");
}

TEST_F(ReadGoldenTest, FilesThatAreNotThere) {
  EXPECT_EQ(ReadGolden(folder_.Path("none"), folder_.Write("ids", "1 2")).status().code(),
            KINGLET_NOT_FOUND);
  EXPECT_EQ(ReadGolden(folder_.Write("g", "1\t2\t-1"), folder_.Path("none")).status().code(),
            KINGLET_NOT_FOUND);
}

// The golden values of a float model, computed by this test token by token.
class ReplayGoldenTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto bytes = SerialiseModel(TinyMicronet({.cache_capacity = 4}));
    ASSERT_TRUE(bytes.ok());
    file_ = ModelFile::FromBytes(*bytes).value();
    const auto session = Session::Create(Model::FromFile(file_, {.backend = "ref64"}).value());
    TestRandom random(3);
    golden_.ids.push_back(3);
    for (uint64_t position = 1; position < 100; ++position) {
      ASSERT_TRUE((*session)->StepToken(golden_.ids.back()).ok());
      const uint32_t id = random.Below(23);
      golden_.ids.push_back(id);
      golden_.values.push_back({position, id, (*session)->LogProbability(id).value()});
    }
  }
  std::shared_ptr<const ModelFile> file_;
  GoldenFile golden_;
};

TEST_F(ReplayGoldenTest, AgreesWithItself) {
  const auto replay = ReplayGolden(file_, golden_, 0);
  ASSERT_TRUE(replay.ok()) << replay.status().message();
  EXPECT_EQ(replay->positions, 99U);
  EXPECT_EQ(replay->largest_difference, 0);
  // Some positions only.
  golden_.values = {golden_.values[10], golden_.values[98]};
  EXPECT_EQ(ReplayGolden(file_, golden_, 0)->positions, 2U);
}

TEST_F(ReplayGoldenTest, ReportsTheLargestDifference) {
  golden_.values[20].log_probability += 0.25;
  golden_.values[30].log_probability -= 0.5;
  EXPECT_DOUBLE_EQ(ReplayGolden(file_, golden_, 1)->largest_difference, 0.5);
}

TEST_F(ReplayGoldenTest, NamesTheFirstPositionBeyondTheTolerance) {
  golden_.values[20].log_probability = -123.5;
  golden_.values[30].log_probability = -200;
  const Status status = ReplayGolden(file_, golden_, 1e-6).status();
  EXPECT_EQ(status.code(), KINGLET_MISMATCH);
  EXPECT_NE(status.message().find("position 21, id " + std::to_string(golden_.ids[21]) +
                                  ": expected -123.5 within"),
            std::string::npos)
      << status.message();
}

TEST_F(ReplayGoldenTest, AVectorAsAFileAndBack) {
  const GoldenVector vector = *LeadingGolden(golden_, 1, 0.125);
  const GoldenFile file = AsGoldenFile(vector);
  EXPECT_EQ(file.ids, vector.ids);
  ASSERT_EQ(file.values.size(), 63U);
  for (size_t i = 0; i < file.values.size(); ++i) {
    EXPECT_EQ(file.values[i].position, golden_.values[i].position);
    EXPECT_EQ(file.values[i].id, golden_.values[i].id);
    EXPECT_EQ(file.values[i].log_probability, golden_.values[i].log_probability);
  }
}

TEST_F(ReplayGoldenTest, RecomputedAnswersAreTheModels) {
  GoldenVector vector = *LeadingGolden(golden_, 1, 0.125);
  const std::vector<double> expected = vector.log_probabilities;
  for (double& value : vector.log_probabilities) value = -7;
  const auto recomputed = RecomputeGolden(file_, vector);
  ASSERT_TRUE(recomputed.ok()) << recomputed.status().message();
  EXPECT_EQ(recomputed->ids, vector.ids);
  EXPECT_EQ(recomputed->log_probabilities, expected);
  EXPECT_EQ(recomputed->tolerance, 0.125);
  vector.ids[5] = 23;
  EXPECT_EQ(RecomputeGolden(file_, vector).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

TEST_F(ReplayGoldenTest, IdsOutOfTheVocabulary) {
  golden_.ids[5] = 23;
  EXPECT_EQ(ReplayGolden(file_, golden_, 1).status().code(), KINGLET_ID_OUT_OF_RANGE);
}

// With a start token the same values belong to one position earlier, and the first id has one too.
TEST_F(ReplayGoldenTest, BehindAStartToken) {
  ModelDraft draft = TinyMicronet({.cache_capacity = 4});
  draft.description.start_token = golden_.ids[0];
  const auto file = ModelFile::FromBytes(*SerialiseModel(draft)).value();
  golden_.ids.erase(golden_.ids.begin());
  for (GoldenValue& value : golden_.values) --value.position;
  EXPECT_EQ(ReplayGolden(file, golden_, 0)->positions, 99U);

  const auto leading = LeadingGolden(golden_, 0, 0.125);
  ASSERT_TRUE(leading.has_value());
  EXPECT_EQ(leading->ids, std::vector<uint32_t>(golden_.ids.begin(), golden_.ids.begin() + 64));
  ASSERT_EQ(leading->log_probabilities.size(), 64U);
  const GoldenFile again = AsGoldenFile(*leading);
  EXPECT_EQ(again.values[0].position, 0U);
  EXPECT_EQ(again.values[63].id, golden_.ids[63]);
  EXPECT_EQ(RecomputeGolden(file, *leading)->log_probabilities, leading->log_probabilities);

  const Status refused = ReplayGolden(file_, golden_, 0).status();
  EXPECT_EQ(refused.code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_NE(refused.message().find("position 0: expected none, as the model has no start token"),
            std::string::npos)
      << refused.message();
}

TEST_F(ReplayGoldenTest, LeadingValuesUpToSixtyFourIds) {
  const auto leading = LeadingGolden(golden_, 1, 0.125);
  ASSERT_TRUE(leading.has_value());
  EXPECT_EQ(leading->ids, std::vector<uint32_t>(golden_.ids.begin(), golden_.ids.begin() + 64));
  ASSERT_EQ(leading->log_probabilities.size(), 63U);
  EXPECT_EQ(leading->log_probabilities[62], golden_.values[62].log_probability);
  EXPECT_EQ(leading->tolerance, 0.125);
}

TEST_F(ReplayGoldenTest, LeadingValuesEndAtAGap) {
  golden_.values.erase(golden_.values.begin() + 2);
  golden_.values[0].log_probability = 1e-9;
  const auto leading = LeadingGolden(golden_, 1, 0);
  ASSERT_TRUE(leading.has_value());
  EXPECT_EQ(leading->ids.size(), 3U);
  EXPECT_EQ(leading->log_probabilities[0], 0.0);
  golden_.values.erase(golden_.values.begin());
  EXPECT_FALSE(LeadingGolden(golden_, 1, 0).has_value());
}

TEST(ReadGoldenPairs, AStreamForEachSentenceThatHasAnswers) {
  const TemporaryFile pairs("4 5 ||| 2 7 8 3\n6 ||| 2 3\n9 ||| 2 9 3\n");
  const TemporaryFile answers("0\t0\t7\t-1\t-1.5\n0\t2\t3\t-2\n2\t0\t9\t-0.25\r\n2\t1\t3\t-4");
  const auto streams = ReadGoldenPairs(answers.path(), pairs.path(), 2);
  ASSERT_TRUE(streams.ok()) << streams.status().message();
  ASSERT_EQ(streams->size(), 2U);
  EXPECT_EQ((*streams)[0].source_ids, (std::vector<uint32_t>{4, 5}));
  EXPECT_EQ((*streams)[0].ids, (std::vector<uint32_t>{7, 8, 3}));
  ASSERT_EQ((*streams)[0].values.size(), 2U);
  EXPECT_EQ((*streams)[0].values[0].log_probability, -1.5);
  EXPECT_EQ((*streams)[0].values[1].position, 2U);
  EXPECT_EQ((*streams)[1].source_ids, (std::vector<uint32_t>{9}));
  EXPECT_EQ((*streams)[1].values[1].log_probability, -4);
}

TEST(ReadGoldenPairs, AnythingElseIsRefusedWithItsLine) {
  const TemporaryFile pairs("4 5 ||| 2 7 8 3\n6 ||| 2 3\n");
  const struct {
    const char* text;
    const char* message;
  } refused[] = {
      {"", "at least one line"},
      {"0\t7\t-1\n", "line 1: expected position, id and value"},
      {"1\t0\t3\t-1\n0\t0\t7\t-1\n", "line 2: expected a sentence from 1 and below the 2 pairs"},
      {"2\t0\t3\t-1\n", "line 1: expected a sentence from 0 and below the 2 pairs, found '2'"},
      {"x\t0\t3\t-1\n", "found 'x'"},
      {"0\t3\t3\t-1\n", "line 1: expected a position from 0 and below the 3 ids"},
      {"0\t1\t8\t-1\n0\t1\t8\t-1\n", "line 2: expected a position from 2"},
      {"0\t0\t8\t-1\n", "line 1: expected id 7"},
      {"0\t0\t7\tnan\n", "line 1: expected a finite log-probability"},
  };
  for (const auto& one : refused) {
    const TemporaryFile answers(one.text);
    const Status status = ReadGoldenPairs(answers.path(), pairs.path(), 2).status();
    EXPECT_EQ(status.code(), KINGLET_INVALID_ARGUMENT) << one.text;
    EXPECT_NE(status.message().find(one.message), std::string::npos) << status.message();
  }
}

TEST(ReplayGoldenOfPairs, EverySourceIsEncoded) {
  const auto file = ModelFile::FromBytes(*SerialiseModel(TinyTranslation())).value();
  std::vector<GoldenFile> streams = {{{5, 16, 3}, {}, {1, 12, 0}}, {{3}, {}, {7}}};
  for (GoldenFile& stream : streams) {
    GoldenVector vector{stream.ids, std::vector<double>(stream.ids.size(), -1), 0,
                        stream.source_ids};
    stream = AsGoldenFile(*RecomputeGolden(file, vector));
  }
  const auto replay = ReplayGolden(file, streams, 0);
  ASSERT_TRUE(replay.ok()) << replay.status().message();
  EXPECT_EQ(replay->positions, 4U);
  const auto leading = LeadingGolden(streams[0], 0, 0.5);
  EXPECT_EQ(leading->source_ids, streams[0].source_ids);
  EXPECT_EQ(leading->log_probabilities.size(), 3U);

  std::swap(streams[0].source_ids, streams[1].source_ids);
  const Status status = ReplayGolden(file, streams, 1e-6).status();
  EXPECT_EQ(status.code(), KINGLET_MISMATCH);
  EXPECT_NE(status.message().find("stream 0: golden values: position 0"), std::string::npos)
      << status.message();
  streams[0].source_ids.clear();
  EXPECT_EQ(ReplayGolden(file, streams, 1).status().code(), KINGLET_NO_SOURCE_YET);
}

// A masked model reads the text again for each value, with [MASK] in the token's place.
TEST(GoldenOfMaskedModels, ReadReplayedAndCarried) {
  const auto file = ModelFile::FromBytes(*SerialiseModel(TinyMasked())).value();
  ModelOptions options;
  options.backend = "ref64";
  const auto session = *Session::Create(*Model::FromFile(file, options));
  const std::vector<MaskedText> texts = {
      {{2, 9, 7, 3}, {}}, {{2, 5, 3}, {}}, {{2, 9, 3, 13, 3}, {0, 0, 0, 1, 1}}};
  std::string lines;
  for (const auto& [text, position] : {std::pair(0, 1), std::pair(0, 2), std::pair(2, 3)}) {
    const double value = *MaskedLogProbability(texts[static_cast<size_t>(text)],
                                               static_cast<uint64_t>(position), 4, *session);
    char line[80];
    std::snprintf(line, sizeof(line), "%d\t%d\t%u\tfloat\t%.17g\n", text, position,
                  texts[static_cast<size_t>(text)].ids[static_cast<size_t>(position)], value);
    lines += line;
  }
  const TemporaryFile answers(lines);
  auto streams = ReadGoldenTexts(answers.path(), texts, 4);
  ASSERT_TRUE(streams.ok()) << streams.status().message();
  ASSERT_EQ(streams->size(), 2u);
  EXPECT_EQ((*streams)[1].segments, texts[2].segments);
  const auto replay = ReplayGolden(file, *streams, 0);
  ASSERT_TRUE(replay.ok()) << replay.status().message();
  EXPECT_EQ(replay->positions, 3u);

  const auto carried = LeadingGolden(streams->front(), 0, 0.5);
  ASSERT_TRUE(carried.has_value());
  EXPECT_EQ(carried->positions, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(carried->mask, 4u);
  ModelDraft draft = TinyMasked();
  draft.description.golden = carried;
  const auto with = ModelFile::FromBytes(*SerialiseModel(draft)).value();
  const GoldenFile read = AsGoldenFile(*with->description().golden);
  EXPECT_EQ(read.ids, texts[0].ids);
  EXPECT_EQ(ReplayGolden(with, read, 0)->positions, 2u);

  (*streams)[1].segments.clear();
  const Status status = ReplayGolden(file, *streams, 1e-9).status();
  EXPECT_EQ(status.code(), KINGLET_MISMATCH);
  EXPECT_TRUE(status.message().starts_with("stream 1: golden values: position 3, id 13"))
      << status.message();
  const TemporaryFile late("3\t1\t5\t-1\n");
  EXPECT_NE(ReadGoldenTexts(late.path(), texts, 4)
                .status()
                .message()
                .find("expected a line from 0 and below the 3 texts"),
            std::string::npos);
}

TEST(GoldenOfMaskedModels, AFileCarriesSixteen) {
  GoldenFile golden;
  golden.mask = 4;
  golden.ids.assign(40, 7);
  for (uint64_t i = 3; i < 40; ++i) golden.values.push_back({i, 7, -1});
  const auto carried = LeadingGolden(golden, 0, 0.5);
  EXPECT_EQ(carried->ids.size(), 40u);
  ASSERT_EQ(carried->positions.size(), 16u);
  EXPECT_EQ(carried->positions.back(), 18u);
}

}  // namespace
}  // namespace kinglet::golden_test
