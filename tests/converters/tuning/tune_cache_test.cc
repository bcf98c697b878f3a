#include "converters/tuning/tune_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "converters/golden.h"
#include "converters/passes/cache.h"
#include "format/writer.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/unpack.h"

namespace kinglet::tune_cache_test {
namespace {

std::vector<std::byte> BytesOf(const ModelDraft& draft) {
  const auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return bytes.ok() ? *bytes : std::vector<std::byte>();
}

std::shared_ptr<const ModelFile> FileOf(const std::vector<std::byte>& bytes) {
  const auto file = ModelFile::FromBytes(bytes);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return file.ok() ? *file : nullptr;
}

// Words that repeat for a while, so that a cache helps.
std::vector<uint32_t> BurstyIds(uint64_t count) {
  TestRandom random(7);
  std::vector<uint32_t> ids;
  while (ids.size() < count) {
    const uint32_t a = random.Below(23), b = random.Below(23);
    for (int i = 0; i < 30; ++i)
      ids.push_back(random.Below(3) == 0 ? random.Below(23) : i % 2 ? a : b);
  }
  ids.resize(count);
  return ids;
}

TuneCacheOptions WithCapacity(uint32_t capacity) {
  TuneCacheOptions options;
  options.capacity = capacity;
  return options;
}

TuneCacheOptions WithThreads(size_t threads) {
  TuneCacheOptions options;
  options.threads = threads;
  return options;
}

// The loss that the runtime measures, token by token, for the model with this cache.
double MeasuredLoss(ModelDraft draft, const NeuralCache& cache, const std::vector<uint32_t>& ids) {
  EXPECT_TRUE(ChangeCache({cache.capacity, cache.theta, cache.lambda}, draft.description).ok());
  const auto session =
      Session::Create(Model::FromFile(FileOf(BytesOf(draft)), {.backend = "ref"}).value());
  double sum = 0;
  for (size_t at = 1; at < ids.size(); ++at) {
    EXPECT_TRUE((*session)->StepToken(ids[at - 1]).ok());
    sum -= (*session)->LogProbability(ids[at]).value();
  }
  return sum / static_cast<double>(ids.size() - 1);
}

const TinyOptions kVariants[] = {
    {.cache_capacity = 20},
    {.quantised = true, .cache_capacity = 20},
    {.bits = 4, .pruned = true, .cache_capacity = 7, .bins = 1},
};

TEST(TuneCache, EveryPointOfThePathIsWhatTheRuntimeMeasures) {
  const std::vector<uint32_t> ids = BurstyIds(400);
  for (const TinyOptions& options : kVariants) {
    const ModelDraft draft = TinyMicronet(options);
    const NeuralCache* own = FindBlock<NeuralCache>(draft.description);
    const auto tuned = TuneCache(FileOf(BytesOf(draft)), ids, {});
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    const std::vector<SearchedPoint>& path = tuned->search.path;
    EXPECT_EQ(path.front().parameters, (CacheParameters{own->lambda, own->theta}));
    EXPECT_NEAR(tuned->before.loss, path.front().loss, kTuningTolerance);
    for (size_t i = 0; i < path.size(); i += 7) {
      const auto& [lambda, theta] = path[i].parameters;
      EXPECT_NEAR(path[i].loss, MeasuredLoss(draft, {"", own->capacity, theta, lambda}, ids), 1e-6)
          << "lambda " << lambda << ", theta " << theta;
    }
    EXPECT_EQ(tuned->after.cache->lambda, tuned->search.best.lambda);
    EXPECT_EQ(tuned->after.cache->theta, tuned->search.best.theta);
    EXPECT_EQ(tuned->after.cache->capacity, own->capacity);
    EXPECT_NEAR(tuned->after.loss, MeasuredLoss(draft, *tuned->after.cache, ids), 1e-12);
    EXPECT_LT(tuned->after.loss, tuned->before.loss - 0.01);
  }
}

// A start token acts like a first token of the text.
TEST(TuneCache, BehindAStartToken) {
  ModelDraft draft = TinyMicronet({.cache_capacity = 20});
  const std::vector<uint32_t> ids = BurstyIds(200);
  const auto expected = TuneCache(FileOf(BytesOf(draft)), ids, {});
  draft.description.start_token = ids[0];
  const std::span<const uint32_t> text = std::span(ids).subspan(1);
  const auto found = TuneCache(FileOf(BytesOf(draft)), text, {});
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_EQ(found->search.loss, expected->search.loss);
  EXPECT_EQ(found->after.loss, expected->after.loss);
  EXPECT_EQ(found->scored, text.size());
  EXPECT_EQ(expected->scored, text.size());
}

TEST(TuneCache, NothingElseOfTheFileChanges) {
  for (const TinyOptions& options : kVariants) {
    ModelDraft draft = TinyMicronet(options);
    draft.description.provenance.options = "bits 9";
    const std::vector<std::byte> bytes = BytesOf(draft);
    const auto tuned = TuneCache(FileOf(bytes), BurstyIds(200), {});
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    const auto file = FileOf(tuned->bytes);
    EXPECT_EQ(file->digest(), tuned->digest);
    ModelDraft undone = UnpackModel(*file);
    EXPECT_EQ(undone.description.provenance.options, "bits 9, cache tuned");
    undone.description.provenance.options = "bits 9";
    const NeuralCache* own = FindBlock<NeuralCache>(draft.description);
    ASSERT_TRUE(ChangeCache({.theta = own->theta, .lambda = own->lambda}, undone.description).ok());
    EXPECT_EQ(BytesOf(undone), bytes);
    // The options of a model that was tuned twice mention tuning once.
    const auto again = TuneCache(file, BurstyIds(200), {});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(FileOf(again->bytes)->description().provenance.options, "bits 9, cache tuned");
  }
}

TEST(TuneCache, ThreadsAndRepetitionChangeNoBit) {
  const auto file = FileOf(BytesOf(TinyMicronet({.quantised = true, .cache_capacity = 30})));
  const std::vector<uint32_t> ids = BurstyIds(900);
  const auto one = TuneCache(file, ids, {});
  ASSERT_TRUE(one.ok());
  for (const size_t threads : {1, 2, 5}) {
    const auto other = TuneCache(file, ids, WithThreads(threads));
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(other->bytes, one->bytes);
    ASSERT_EQ(other->search.path.size(), one->search.path.size());
    for (size_t i = 0; i < one->search.path.size(); ++i) {
      EXPECT_EQ(other->search.path[i].loss, one->search.path[i].loss);
    }
  }
}

TEST(TuneCache, AModelWithoutACacheGetsOne) {
  ModelDraft draft = TinyMicronet();
  draft.description.provenance.options = "";
  const auto file = FileOf(BytesOf(draft));
  const std::vector<uint32_t> ids = BurstyIds(300);
  EXPECT_EQ(TuneCache(file, ids, {}).status().code(), KINGLET_INVALID_ARGUMENT);
  const auto tuned = TuneCache(file, ids, WithCapacity(12));
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_FALSE(tuned->before.cache.has_value());
  EXPECT_EQ(tuned->search.path.front().parameters, kPublishedStart);
  EXPECT_EQ(tuned->after.cache->capacity, 12U);
  EXPECT_EQ(FileOf(tuned->bytes)->description().provenance.options, "cache tuned");
  EXPECT_LT(tuned->after.loss, tuned->before.loss);
}

// The searched loss is compared with the new model's to kTuningTolerance, so the search knows the
// start too.
TEST(TuneCache, ACacheOfARecurrentNetworkStartsAsOneThatConvertAdds) {
  const std::vector<uint32_t> ids = BurstyIds(300);
  for (const uint32_t own : {0U, 7U}) {
    const ModelDraft draft = TinyRecurrent({.cache_capacity = own});
    const auto tuned = TuneCache(FileOf(BytesOf(draft)), ids, WithCapacity(12));
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    ASSERT_EQ(tuned->after.cache->start, CacheStart::kPastCapacity);
    ModelDraft converted = TinyRecurrent();
    const NeuralCache& found = *tuned->after.cache;
    ASSERT_TRUE(
        ChangeCache({found.capacity, found.theta, found.lambda}, converted.description).ok());
    EXPECT_EQ(*ScoreText(FileOf(BytesOf(converted)), ids, {}), tuned->after.loss);
  }
}

TEST(TuneCache, AnotherCapacityStartsAtTheModelsOwnNumbers) {
  const ModelDraft draft = TinyMicronet({.cache_capacity = 3});
  const NeuralCache* own = FindBlock<NeuralCache>(draft.description);
  const auto tuned = TuneCache(FileOf(BytesOf(draft)), BurstyIds(100), WithCapacity(50));
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  EXPECT_EQ(tuned->before.cache->capacity, 3U);
  EXPECT_EQ(tuned->after.cache->capacity, 50U);
  EXPECT_EQ(tuned->search.path.front().parameters, (CacheParameters{own->lambda, own->theta}));
}

class TuneCacheGoldenTest : public testing::Test {
 protected:
  // A model whose first golden value is wrong by `error`.
  std::shared_ptr<const ModelFile> FileWithGolden(double error) {
    ModelDraft draft = TinyMicronet({.cache_capacity = 8});
    GoldenVector golden{BurstyIds(40), std::vector<double>(39), 1e-9};
    const auto file = FileOf(BytesOf(draft));
    golden = RecomputeGolden(file, golden).value();
    golden.log_probabilities[0] -= error;
    draft.description.golden = golden;
    return FileOf(BytesOf(draft));
  }
};

TEST_F(TuneCacheGoldenTest, TheAnswersAreThoseOfTheNewCache) {
  const auto old = FileWithGolden(0);
  const auto tuned = TuneCache(old, BurstyIds(300), {});
  ASSERT_TRUE(tuned.ok()) << tuned.status().message();
  const auto file = FileOf(tuned->bytes);
  const auto& golden = file->description().golden;
  ASSERT_TRUE(golden.has_value());
  EXPECT_EQ(golden->ids, old->description().golden->ids);
  EXPECT_EQ(golden->tolerance, 1e-9);
  EXPECT_NE(golden->log_probabilities, old->description().golden->log_probabilities);
  EXPECT_TRUE(ReplayGolden(file, AsGoldenFile(*golden), 1e-12).ok());
  // The new model does not give the old golden values.
  EXPECT_EQ(ReplayGolden(file, AsGoldenFile(*old->description().golden), 1e-9).status().code(),
            KINGLET_MISMATCH);
}

TEST_F(TuneCacheGoldenTest, AModelThatMissesItsAnswersIsNotTuned) {
  EXPECT_EQ(TuneCache(FileWithGolden(1e-6), BurstyIds(50), {}).status().code(), KINGLET_MISMATCH);
}

void ExpectRefused(const ModelDraft& draft, const std::vector<uint32_t>& ids,
                   const TuneCacheOptions& options, const std::string& message) {
  const auto tuned = TuneCache(FileOf(BytesOf(draft)), ids, options);
  EXPECT_FALSE(tuned.ok()) << message;
  EXPECT_EQ(tuned.status().message(), "tune-cache: " + message);
}

TEST(TuneCache, WhatCannotBeTuned) {
  const ModelDraft with = TinyMicronet({.cache_capacity = 4}), without = TinyMicronet();
  ExpectRefused(without, {1, 2, 3}, {},
                "cache: expected a model with a cache, or a capacity (--cache), found neither");
  ExpectRefused(with, {1, 2, 3}, WithCapacity(0), "cache: expected 1 to 1048576, found 0");
  ExpectRefused(with, {1, 2, 3}, WithCapacity(1048577),
                "cache: expected 1 to 1048576, found 1048577");
  ExpectRefused(with, {}, {}, "text: expected two tokens or more, found 0");
  ExpectRefused(with, {5}, {}, "text: expected two tokens or more, found 1");
  // 36 + 8 * 4 bytes for each token of a model of width 8, 2 GiB in all.
  ExpectRefused(with, std::vector<uint32_t>(31'580'642), {},
                "text: expected at most 31580641 tokens, whose hidden states take 2147483648 "
                "bytes, found 31580642");
}

TEST(TuneCache, TheSmallestTextsAndCaches) {
  const auto file = FileOf(BytesOf(TinyMicronet({.cache_capacity = 1})));
  for (const std::vector<uint32_t>& ids :
       {std::vector<uint32_t>{1, 2}, {4, 4}, {4, 4, 4}, {0, 22, 0, 22, 0}}) {
    const auto tuned = TuneCache(file, ids, {});
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_LE(tuned->after.loss, tuned->before.loss + 1e-6);
  }
}

TEST(TuneCache, ATokenThatNoCacheExplains) {
  ModelDraft draft = TinyMicronet({.cache_capacity = 4, .bins = 1});
  const auto* softmax = FindBlock<AdaptiveSoftmax>(draft.description);
  auto& bias = std::get<DenseF32>(draft.tensors[softmax->head_bias.value()].values).values;
  bias[0] = 3e38F;
  bias[1] = -3e38F;  // the difference of the two is minus infinity in float
  ExpectRefused(draft, {0, 0, 0, 1, 0}, {},
                "text: expected a text with a probability above 0 under some cache, found a token "
                "of probability 0");
}

TEST(TuneCache, ReportsProgress) {
  const auto file = FileOf(BytesOf(TinyMicronet({.cache_capacity = 4})));
  const std::vector<uint32_t> ids = BurstyIds(600);
  uint64_t last = 0;
  TuneCacheOptions options;
  options.progress = [&last](uint64_t done) {
    EXPECT_GT(done, last);
    last = done;
  };
  ASSERT_TRUE(TuneCache(file, ids, options).ok());
  EXPECT_GT(last, 2 * ids.size());
  EXPECT_LE(last, TuningTokens(ids.size()));
}

}  // namespace
}  // namespace kinglet::tune_cache_test
