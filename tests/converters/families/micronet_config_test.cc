#include "converters/families/micronet_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/limits.h"
#include "tests/converters/synthetic.h"

namespace kinglet::micronet_config_test {
namespace {

// A configuration with the line of one key replaced; an empty value removes it.
SyntheticMicronet With(const std::vector<std::string>& lines,
                       const SyntheticOptions& options = {}) {
  SyntheticMicronet model(options);
  for (const std::string& line : lines) {
    const std::string key = line.substr(0, line.find(':') + 1);
    std::erase_if(model.config, [&](const std::string& old) { return old.starts_with(key); });
    if (line != key) model.config.push_back(line);
  }
  return model;
}

MicronetConfig Read(const SyntheticMicronet& model) {
  Result<MicronetConfig> config = model.Config();
  EXPECT_TRUE(config.ok()) << config.status().message();
  return config.ok() ? *config : MicronetConfig{};
}

void ExpectRefused(const std::vector<std::string>& lines, const std::string& part) {
  const Result<MicronetConfig> config = With(lines).Config();
  ASSERT_FALSE(config.ok()) << lines[0];
  EXPECT_EQ(config.status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_NE(config.status().message().find(part), std::string::npos) << config.status().message();
}

TEST(MicronetConfig, ReadsTheOriginalsFiles) {
  const auto file =
      ConfigFile::Read(std::string(KINGLET_TEST_DATA) + "/micronet-small-9bit-pruned/config.yaml");
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto config = ReadMicronetConfig(*file, 1);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->vocabulary_size, 3914U);
  EXPECT_EQ(config->width, 96U);
  EXPECT_EQ(config->layers, 4U);
  EXPECT_EQ(config->heads, 4U);
  EXPECT_EQ(config->key_size, 24U);
  EXPECT_EQ(config->value_size, 24U);
  EXPECT_EQ(config->inner, 256U);
  EXPECT_EQ(config->context, 96U);
  EXPECT_EQ(config->bits, 9);
  ASSERT_EQ(config->bins.size(), 3U);
  EXPECT_EQ(config->bins[1].first, 800U);
  EXPECT_EQ(config->bins[1].size, 1400U);
  EXPECT_EQ(config->bins[2].first, 2200U);
  EXPECT_EQ(config->bins[2].size, 1714U);
  EXPECT_EQ(config->bins[2].width, 8U);
  ASSERT_TRUE(config->cache.has_value());
  EXPECT_EQ(config->cache->capacity, 500U);
  EXPECT_EQ(config->cache->theta.fixed, 0.02);
  EXPECT_EQ(config->cache->lambda.fixed, 0.13);
  EXPECT_FALSE(config->trains_cache);
}

TEST(MicronetConfig, TrainedCache) {
  const MicronetConfig config = Read(With({}, {.trained_cache = true}));
  ASSERT_TRUE(config.cache.has_value());
  EXPECT_TRUE(config.trains_cache);
  EXPECT_TRUE(config.cache->theta.trained);
  EXPECT_FALSE(config.cache->theta.fixed.has_value());
}

TEST(MicronetConfig, NoCache) {
  EXPECT_FALSE(Read(With({"use_cache: false"})).cache.has_value());
  EXPECT_FALSE(Read(With({"use_cache:", "n_cache:"})).cache.has_value());
  EXPECT_FALSE(Read(With({"n_cache: 0", "cache_theta:"})).cache.has_value());
}

TEST(MicronetConfig, BinWidthsFromTheRatio) {
  // Bin i has n_embed // ratio ** i.
  const MicronetConfig config =
      Read(With({"n_embeds:", "adaptive_ratio: 3", "n_embed: 28", "cutoffs: [3, 6, 10]"}));
  ASSERT_EQ(config.bins.size(), 4U);
  EXPECT_EQ(config.bins[0].width, 28U);
  EXPECT_EQ(config.bins[1].width, 9U);
  EXPECT_EQ(config.bins[2].width, 3U);
  EXPECT_EQ(config.bins[3].width, 1U);
  EXPECT_EQ(Read(With({"n_embeds:"})).bins[2].width, 8U);  // a ratio of 1
}

TEST(MicronetConfig, NoCutoffs) {
  for (const char* line : {"cutoffs:", "cutoffs: []"}) {
    const MicronetConfig config = Read(With({line, "n_embeds: [8]"}));
    ASSERT_EQ(config.bins.size(), 1U);
    EXPECT_EQ(config.bins[0].size, 23U);
  }
}

TEST(MicronetConfig, RefusesSizesThatCannotBe) {
  for (const char* key :
       {"n_vocab", "n_embed", "n_layers", "n_head", "n_k", "n_v", "n_inner", "n_seq"}) {
    ExpectRefused({std::string(key) + ": 0"}, key);
    ExpectRefused({std::string(key) + ": -3"}, "found -3");
    ExpectRefused({std::string(key) + ": 2147483648"}, "found 2147483648");
    ExpectRefused({std::string(key) + ": 1.5"}, key);
    ExpectRefused({std::string(key) + ":"}, key);
  }
  ExpectRefused({"n_layers: 5000"}, "n_layers: expected at most 4096, found 5000");
  for (const char* line : {"pos_emb: sinusoid", "model: prune.Transformer", "run_mode: distiller",
                           "residual: true", "pos_emb: null"}) {
    const Result<MicronetConfig> config = With({line}).Config();
    EXPECT_EQ(config.status().code(), KINGLET_UNSUPPORTED) << line;
  }
  ExpectRefused({"bits: 17"}, "found 17");
  ExpectRefused({"bits: 1"}, "found 1");
  ExpectRefused({"model: quantize.Transformer"}, "bits");
  ExpectRefused({"n_cache: 1048577"}, "found 1048577");
  ExpectRefused({"n_cache: -1"}, "found -1");
  ExpectRefused({"cache_theta:"}, "cache_theta");
  ExpectRefused({"adaptive_ratio: 100", "n_embeds:"}, "width of bin 1");
}

TEST(MicronetConfig, RefusesBinsThatCannotBe) {
  ExpectRefused({"cutoffs: [6, 6]"}, "found 6 at index 1");
  ExpectRefused({"cutoffs: [14, 6]"}, "found 6 at index 1");
  ExpectRefused({"cutoffs: [0, 6]"}, "found 0 at index 0");
  ExpectRefused({"cutoffs: [-1, 6]"}, "found -1 at index 0");
  ExpectRefused({"cutoffs: [6, 23]"}, "found 23 at index 1");
  ExpectRefused({"cutoffs: [6, 24]"}, "found 24 at index 1");
  ExpectRefused({"n_embeds: [8, 4]"}, "expected 3 numbers");
  ExpectRefused({"n_embeds: [4, 4, 2]"}, "expected n_embed, 8, at index 0, found 4");
  ExpectRefused({"n_embeds: [8, 0, 2]"}, "width of bin 1");
  std::string many = "cutoffs: [1";
  for (uint64_t i = 2; i <= kMaxBins; ++i) many += ", " + std::to_string(i);
  ExpectRefused({many + "]", "n_vocab: 10000"},
                "at most " + std::to_string(kMaxBins - 1) + " numbers");
}

class SearchedCache : public testing::Test {
 protected:
  Result<MicronetConfig> Read(std::optional<int64_t> step, bool trained = true) {
    const SyntheticMicronet model({.trained_cache = trained});
    const auto file = ConfigFile::Read(folder_.Write("config.yaml", model.ConfigText()));
    EXPECT_TRUE(file.ok());
    return ReadMicronetConfig(*file, step);
  }
  TemporaryFolder folder_;
};

TEST_F(SearchedCache, ReplacesEverythingForItsStepAndCapacity) {
  folder_.Write("cache_step7_n4.yaml",
                "cache_lambda: 0.15391452339546033\ncache_theta: 0.02021162425847724\n"
                "n_cache: 4\nuse_cache: true\n");
  for (const bool trained : {false, true}) {
    const auto config = Read(7, trained);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->cache->theta.fixed, 0.02021162425847724);
    EXPECT_EQ(config->cache->lambda.fixed, 0.15391452339546033);
    EXPECT_FALSE(config->cache->theta.trained);
    EXPECT_EQ(config->trains_cache, trained);
  }
  EXPECT_TRUE(Read(8)->cache->theta.trained);
  EXPECT_TRUE(Read(std::nullopt)->cache->theta.trained);
}

TEST_F(SearchedCache, IsRefusedWhenItContradictsItsNameOrLacksNumbers) {
  folder_.Write("cache_step7_n4.yaml", "cache_lambda: 0.1\ncache_theta: 0.2\nn_cache: 5\n");
  EXPECT_NE(Read(7).status().message().find("n_cache: expected 4 as in the file's name, found 5"),
            std::string::npos);
  folder_.Write("cache_step7_n4.yaml", "cache_lambda: 0.1\n");
  EXPECT_FALSE(Read(7).ok());
}

}  // namespace
}  // namespace kinglet::micronet_config_test
