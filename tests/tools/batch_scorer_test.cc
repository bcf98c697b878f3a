#include "tools/batch_scorer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "tests/support/model_builder.h"
#include "tests/support/transformer_builder.h"

namespace kinglet::batch_scorer_test {
namespace {

SentenceStream StreamOf(std::vector<uint32_t> tokens) {
  return {std::nullopt, std::move(tokens), 0};
}

TEST(BatchScorer, FindsTheStreamsThatShareABeginning) {
  const std::vector<uint32_t> beginning = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<SentenceStream> streams;
  const auto add = [&](std::vector<uint32_t> tokens, size_t count, uint32_t end) {
    tokens.resize(count);
    tokens.push_back(end);
    streams.push_back(StreamOf(std::move(tokens)));
  };
  add(beginning, 8, 9);
  add(beginning, 7, 12);  // seven tokens are too few
  add({5}, 1, 5);
  add(beginning, 8, 10);
  streams.push_back(StreamOf({}));
  add(beginning, 8, 9);
  std::vector<size_t> shared = BatchScorer::WithSharedBeginnings(streams);
  std::sort(shared.begin(), shared.end());
  EXPECT_EQ(shared, (std::vector<size_t>{0, 3, 5}));
  EXPECT_TRUE(BatchScorer::WithSharedBeginnings({}).empty());
}

TEST(BatchScorer, EveryBatchHasTheValuesOfLanes) {
  const auto model =
      *Model::FromFile(*ModelFile::FromBytes(*SerialiseModel(TinyTransformer())), {});
  std::vector<SentenceStream> streams;
  for (uint32_t i = 0; i < 12; ++i) {
    std::vector<uint32_t> tokens;
    for (uint32_t t = 0; t < 3 * i; ++t) tokens.push_back((t * t + (t < 10 ? i % 2 : i)) % 17);
    streams.push_back(StreamOf(std::move(tokens)));
  }
  ASSERT_FALSE(BatchScorer::WithSharedBeginnings(streams).empty());
  const auto name = [](uint64_t index, size_t) { return std::to_string(index); };
  std::vector<std::vector<double>> values(streams.size());
  const auto sink = [&](uint64_t index, std::span<const ScoredToken> tokens) {
    for (const ScoredToken& token : tokens) values[index].push_back(token.log_probability);
    return Status();
  };
  std::vector<size_t> all(streams.size());
  std::iota(all.begin(), all.end(), size_t{0});
  auto in_lanes = *SentenceScorer::Create(model, {.lanes = 3});
  ASSERT_TRUE(in_lanes.RunInLanes(streams, all, sink, name).ok());
  const auto expected = values;
  BatchScorer scorer(*SentenceScorer::Create(model, {.lanes = 3}));
  for (int batch = 0; batch < 4; ++batch) {  // each way is tried, then the quicker one
    for (auto& of_stream : values) of_stream.clear();
    ASSERT_TRUE(scorer.Run(streams, sink, name).ok());
    EXPECT_EQ(values, expected) << batch;
  }
}

}  // namespace
}  // namespace kinglet::batch_scorer_test
