#include "tools/bench/bench_input.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/accounting/meter.h"
#include "runtime/lower/lower.h"
#include "tests/support/model_builder.h"

namespace kinglet::bench_input_test {
namespace {

std::shared_ptr<const ModelFile> FileOf(const TinyOptions& options,
                                        const std::vector<uint64_t>& frequencies = {}) {
  ModelDraft draft = TinyMicronet(options);
  for (Block& block : draft.description.blocks) {
    auto* embedding = std::get_if<AdaptiveEmbedding>(&block);
    for (size_t i = 0; embedding != nullptr && i < frequencies.size(); ++i) {
      embedding->bins[i].tokens = frequencies[i];
    }
  }
  return *ModelFile::FromBytes(*SerialiseModel(draft));
}

TEST(WarmUpTokens, FillTheCacheAndTheWindow) {
  TinyOptions options;  // window 6
  EXPECT_EQ(WarmUpTokens(*Lower(*FileOf(options))), 6u);
  options.cache_capacity = 9;
  EXPECT_EQ(WarmUpTokens(*Lower(*FileOf(options))), 15u);
  options.quantised = true;
  options.cache_capacity = 1;
  EXPECT_EQ(WarmUpTokens(*Lower(*FileOf(options))), 7u);
}

TEST(MakeSchedule, TimesWhatIsWantedWhereThereAreIdsEnough) {
  const BenchSchedule schedule = MakeSchedule(100, 1000);
  EXPECT_EQ(schedule.Timed(), 1000u);
  EXPECT_GT(schedule.rounds, 1u);
  EXPECT_EQ(schedule.Ids(), 100 + 1000 + schedule.rounds * schedule.settle + 1);
  const auto same = MakeSchedule(100, 1000, schedule.Ids(), "ids");
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->Ids(), schedule.Ids());
  EXPECT_EQ(MakeSchedule(0, 1).Timed(), 1u);
}

TEST(MakeSchedule, HasNoMoreRoundsThanAreWanted) {
  const BenchSchedule schedule = MakeSchedule(100, 12, 2);
  EXPECT_EQ(schedule.rounds, 2u);
  EXPECT_EQ(schedule.Timed(), 12u);
  EXPECT_EQ(MakeSchedule(100, 12, schedule.Ids(), "ids", 2)->rounds, 2u);
  EXPECT_EQ(MakeSchedule(100, 1, 2).rounds, 1u);
}

TEST(MakeSchedule, TimesFewerWhereIdsAreFewAndNeverRunsOut) {
  for (const uint64_t warm_up : {0u, 1u, 50u}) {
    for (const uint64_t tokens : {1u, 7u, 19u, 20u, 1000u}) {
      uint64_t before = 0;
      for (uint64_t ids = warm_up + 2; ids < warm_up + 1500; ++ids) {
        const auto schedule = MakeSchedule(warm_up, tokens, ids, "ids");
        ASSERT_TRUE(schedule.ok());
        EXPECT_LE(schedule->Ids(), ids);
        EXPECT_GE(schedule->Timed(), 1u);
        EXPECT_LE(schedule->Timed(), tokens);
        EXPECT_EQ(schedule->warm_up, warm_up);
        before = schedule->Timed();
      }
      EXPECT_EQ(before, MakeSchedule(warm_up, tokens).Timed());
    }
  }
}

TEST(MakeSchedule, RefusesTooFewIdsSayingHowManyItTakes) {
  const auto schedule = MakeSchedule(100, 10, 101, "few.txt");
  ASSERT_FALSE(schedule.ok());
  EXPECT_EQ(schedule.status().code(), KINGLET_INVALID_ARGUMENT);
  EXPECT_EQ(schedule.status().message(),
            "few.txt: ids: expected at least 102, 100 of which fill cache and context, found 101");
  EXPECT_TRUE(MakeSchedule(100, 10, 102, "few.txt").ok());
}

TEST(SampleIds, FollowTheFrequenciesOfTheFile) {
  const auto file = FileOf({}, {70, 0, 30});  // bins of 3, 7 and 13 words
  const Plan plan = *Lower(*file);
  const std::vector<uint32_t> ids = SampleIds(EmbeddingOf(plan), 20000);
  EXPECT_EQ(ids, SampleIds(EmbeddingOf(plan), 20000));
  std::vector<double> counts(23);
  for (const uint32_t id : ids) ++counts.at(id);
  const auto sum = [&](size_t first, size_t end) {
    return std::accumulate(counts.begin() + static_cast<ptrdiff_t>(first),
                           counts.begin() + static_cast<ptrdiff_t>(end), 0.0);
  };
  // Four standard deviations of 20,000 draws are below 0.014.
  EXPECT_NEAR(sum(0, 3) / 20000, 0.7, 0.014);
  EXPECT_EQ(sum(3, 10), 0);
  EXPECT_NEAR(sum(10, 23) / 20000, 0.3, 0.014);
  // Ranks 1, 2 and 3 of the first bin: 6/11, 3/11, 2/11 of it.
  EXPECT_NEAR(counts[0] / 20000, 0.7 * 6 / 11, 0.014);
  EXPECT_NEAR(counts[2] / 20000, 0.7 * 2 / 11, 0.014);
}

TEST(SampleIds, FollowZipfWhereTheFileSaysNothing) {
  const auto file = FileOf({});
  const std::vector<uint32_t> ids = SampleIds(EmbeddingOf(*Lower(*file)), 20000);
  double harmonic = 0;
  for (int rank = 1; rank <= 23; ++rank) harmonic += 1.0 / rank;
  std::vector<double> counts(23);
  for (const uint32_t id : ids) ++counts.at(id);
  for (int rank = 1; rank <= 23; ++rank) {
    EXPECT_NEAR(counts[static_cast<size_t>(rank - 1)] / 20000, 1.0 / rank / harmonic, 0.014);
  }
  EXPECT_TRUE(SampleIds(EmbeddingOf(*Lower(*file)), 0).empty());
}

TEST(LaneIds, StartElsewhereAndGoRound) {
  const LaneIds ids({10, 11, 12, 13, 14}, 2);
  EXPECT_EQ(ids.At(0, 0), 10u);
  EXPECT_EQ(ids.At(0, 4), 14u);
  EXPECT_EQ(ids.At(0, 5), 10u);
  EXPECT_EQ(ids.At(1, 0), 12u);
  EXPECT_EQ(ids.At(1, 3), 10u);
  const LaneIds one({7}, 100);
  EXPECT_EQ(one.At(99, 12345), 7u);
}

}  // namespace
}  // namespace kinglet::bench_input_test
