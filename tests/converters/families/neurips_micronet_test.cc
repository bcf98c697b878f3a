#include "converters/families/neurips_micronet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "converters/families/name_match.h"
#include "tests/converters/synthetic.h"
#include "tests/converters/with_values.h"

namespace kinglet::neurips_micronet_test {
namespace {

Result<LoadedModel> Load(const SyntheticMicronet& model) {
  KINGLET_ASSIGN_OR_RETURN(const MicronetConfig config, model.Config());
  return WithValues(MicronetDraft(config, model.Weights()));
}

LoadedModel Loaded(const SyntheticMicronet& model) {
  Result<LoadedModel> loaded = Load(model);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded.ok() ? std::move(loaded).value() : LoadedModel{};
}

std::string Refusal(const SyntheticMicronet& model) {
  const Status status = Load(model).status();
  EXPECT_EQ(status.code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  return status.message();
}

template <class T>
T BlockOf(const LoadedModel& model) {
  const T* block = FindBlock<T>(model.draft.description);
  EXPECT_NE(block, nullptr);
  return block != nullptr ? *block : T{};
}

const EncodedTensor& TensorOf(const LoadedModel& model, TensorId id) {
  return model.draft.tensors.at(id);
}

std::vector<std::string> Names(const LoadedModel& model, std::span<const TensorId> ids) {
  std::vector<std::string> names;
  for (const TensorId id : ids) names.push_back(TensorOf(model, id).name);
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Micronet, WhatTheFrameworkQuantisesAndPrunes) {
  const LoadedModel loaded = Loaded(SyntheticMicronet());
  std::vector<std::string> pruned = {"loss.layers.0.weight",      "loss.layers.1.weight",
                                     "loss.layers.2.weight",      "embed.projections.0.weight",
                                     "loss.projections.0.weight", "loss.layers.1.bias",
                                     "loss.layers.2.bias"};
  std::vector<std::string> quantised = {"embed.projections.1.weight", "loss.projections.1.weight",
                                        "loss.clusters.weight", "loss.clusters.bias",
                                        "loss.layers.0.bias"};
  for (const std::string layer : {"layers.0.", "layers.1."}) {
    for (const char* name : {"qkv.weight", "out.weight", "fc.0.weight", "fc.3.weight"}) {
      pruned.push_back(layer + name);
    }
    for (const char* name : {"qkv.bias", "fc.0.bias", "fc.3.bias"}) {
      quantised.push_back(layer + name);
    }
  }
  quantised.insert(quantised.end(), pruned.begin(), pruned.end());
  std::sort(pruned.begin(), pruned.end());
  std::sort(quantised.begin(), quantised.end());
  EXPECT_EQ(Names(loaded, loaded.prunable), pruned);
  EXPECT_EQ(Names(loaded, loaded.quantisable), quantised);
}

TEST(Micronet, LongListsOfFaultsAreTruncated) {
  SyntheticMicronet model;
  for (int i = 0; i < 5000; ++i) model.tensors.push_back({"x" + std::to_string(i), {1}, {1}});
  const std::string message = Refusal(model);
  EXPECT_NE(message.find(" and 4000 more"), std::string::npos);
  EXPECT_LT(message.size(), 20000U);
}

TEST(Micronet, ValuesThatAreNotFiniteAreNamed) {
  for (const char* name : {"layers.1.ln1.bias", "embed.layers.1.weight", "loss.layers.1.weight"}) {
    SyntheticMicronet model;
    model.Get(name).values[5] = NAN;
    EXPECT_EQ(Refusal(model), "checkpoint: tensor " + std::string(name) +
                                  ", entry 5: expected a finite number, found NaN");
  }
  SyntheticMicronet quantised({.bits = 9});
  quantised.Get("quant.inv_scale").values[0] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      Refusal(quantised),
      "checkpoint: tensor quant.inv_scale, entry 0: expected a finite number, found infinity");
}

TEST(Micronet, QuantisersAboveZero) {
  SyntheticMicronet model({.bits = 9});
  model.Get("layers.0.quant_attn.max_abs").values[0] = 0;
  EXPECT_EQ(Refusal(model),
            "checkpoint: tensor layers.0.quant_attn.max_abs: expected a number above 0, found 0");
}

TEST(Micronet, ConfigurationAndFileAgreeAboutQuantisation) {
  SyntheticMicronet without({.bits = 9});
  std::erase_if(without.config, [](const std::string& line) {
    return line.starts_with("bits") || line.starts_with("model");
  });
  EXPECT_EQ(Refusal(without),
            "checkpoint: state dict: expected no activation quantisers, as the configuration has "
            "no bits, found tensors named *.max_abs");
  SyntheticMicronet only_config;
  only_config.config.emplace_back("bits: 9");
  EXPECT_EQ(Refusal(only_config),
            "checkpoint: state dict: expected activation quantisers, as the configuration has "
            "bits 9, found none");
}

TEST(Micronet, TheOutputTableWins) {
  SyntheticMicronet model;
  model.Get("embed.layers.1.weight").values[3] += 0.5F;
  const LoadedModel loaded = Loaded(model);
  const auto& embedding = BlockOf<AdaptiveEmbedding>(loaded);
  const EncodedTensor& used = TensorOf(loaded, embedding.bins[1].table);
  EXPECT_EQ(used.name, "loss.layers.1.weight");
  EXPECT_EQ(DecodedValues(used), model.Get("loss.layers.1.weight").values);
  ASSERT_EQ(loaded.notes.size(), 1U);
  EXPECT_EQ(loaded.notes[0],
            "embed.layers.1.weight differs from loss.layers.1.weight by up to 0.5; the latter is "
            "used for input and output");
}

TEST(Micronet, OneTableOfThePairIsEnough) {
  SyntheticMicronet model;
  model.Remove("embed.layers.0.weight");
  model.Remove("loss.layers.1.weight");
  const LoadedModel loaded = Loaded(model);
  const auto& embedding = BlockOf<AdaptiveEmbedding>(loaded);
  const auto& softmax = BlockOf<AdaptiveSoftmax>(loaded);
  EXPECT_EQ(TensorOf(loaded, embedding.bins[0].table).name, "loss.layers.0.weight");
  EXPECT_EQ(TensorOf(loaded, softmax.tails[0].table).name, "embed.layers.1.weight");
  EXPECT_EQ(DecodedValues(TensorOf(loaded, embedding.bins[1].table)),
            model.Get("embed.layers.1.weight").values);
  EXPECT_EQ(loaded.notes, std::vector<std::string>{"loss.layers.1.weight is not in the checkpoint; "
                                                   "embed.layers.1.weight is used"});
  model.Remove("embed.layers.1.weight");
  EXPECT_NE(Refusal(model).find("missing loss.layers.1.weight"), std::string::npos);
}

TEST(Micronet, AMisshapedTableIsNotReplacedByItsCounterpart) {
  SyntheticMicronet model;
  model.Get("loss.layers.2.weight").shape = {2, 9};
  EXPECT_NE(Refusal(model).find("; found "), 0U);
  EXPECT_NE(Refusal(model).find("shape loss.layers.2.weight: expected [9, 2], found [2, 9]"),
            std::string::npos);
}

TEST(Micronet, NoCutoffsIsAFullSoftmax) {
  SyntheticMicronet model({.cutoffs = {}});
  ASSERT_EQ(model.Get("loss.clusters.weight").shape, (std::vector<uint64_t>{0, 8}));
  for (int round = 0; round < 2; ++round) {
    const LoadedModel loaded = Loaded(model);
    const auto& softmax = BlockOf<AdaptiveSoftmax>(loaded);
    EXPECT_EQ(softmax.head_size, 23U);
    EXPECT_TRUE(softmax.tails.empty());
    EXPECT_FALSE(softmax.cluster_weight.has_value());
    EXPECT_TRUE(SerialiseModel(loaded.draft).ok());
    if (round == 0) {  // the empty matrix is not needed either
      model.Remove("loss.clusters.weight");
      model.Remove("loss.clusters.bias");
    }
  }
}

TEST(Micronet, TrainedCacheParametersAreActivated) {
  const SyntheticMicronet model({.trained_cache = true});
  const auto& cache = BlockOf<NeuralCache>(Loaded(model));
  EXPECT_NEAR(cache.theta, std::log(1 + std::exp(-4.5)), 1e-15);
  EXPECT_NEAR(cache.lambda, std::exp(-1.5) / (1 + std::exp(-1.5)), 1e-15);
}

TEST(Micronet, PrecedenceOfCacheNumbers) {
  SyntheticMicronet model({.trained_cache = true});
  const CheckpointTensors weights = model.Weights();
  MicronetConfig config = model.Config().value();
  // A trained value replaces a fixed one.
  config.cache->theta.fixed = 5.0;
  EXPECT_NE(BlockOf<NeuralCache>(MicronetDraft(config, weights).value()).theta, 5.0);
  // The values of a search file are fixed. The parameters are not used, which a note reports.
  config.cache->theta = {false, 5.0};
  config.cache->lambda = {false, 0.5};
  const LoadedModel searched = MicronetDraft(config, weights).value();
  EXPECT_EQ(BlockOf<NeuralCache>(searched).theta, 5.0);
  EXPECT_EQ(BlockOf<NeuralCache>(searched).lambda, 0.5);
  EXPECT_EQ(searched.notes.size(), 2U);
  // Without a cache.
  config.cache.reset();
  const LoadedModel none = MicronetDraft(config, weights).value();
  EXPECT_EQ(FindBlock<NeuralCache>(none.draft.description), nullptr);
  // Without starting values in the configuration, the parameters are unused tensors.
  config.trains_cache = false;
  EXPECT_NE(MicronetDraft(config, weights).status().message().find("loss.cache_theta_inv_softplus"),
            std::string::npos);
}

TEST(Micronet, TrainedCacheParametersMissing) {
  SyntheticMicronet model({.trained_cache = true});
  model.Remove("loss.cache_lambda_inv_sigmoid");
  EXPECT_NE(Refusal(model).find("missing loss.cache_lambda_inv_sigmoid"), std::string::npos);
  model.config.emplace_back("cache_lambda: 0.375");
  EXPECT_EQ(BlockOf<NeuralCache>(Loaded(model)).lambda, 0.375);
}

TEST(Micronet, CacheNumbersInRange) {
  SyntheticMicronet model({.trained_cache = true});
  model.Get("loss.cache_theta_inv_softplus").values[0] = -1e9F;
  EXPECT_EQ(Refusal(model), "checkpoint: cache theta: expected a number above 0, found 0");
  model.Get("loss.cache_theta_inv_softplus").values[0] = 100;
  EXPECT_EQ(BlockOf<NeuralCache>(Loaded(model)).theta, 100.0);
  model.Get("loss.cache_lambda_inv_sigmoid").values[0] = 1e9F;
  EXPECT_EQ(Refusal(model), "checkpoint: cache lambda: expected a number between 0 and 1, found 1");
}

TEST(Micronet, LooksLikeMicronetNeedsATableAndALayer) {
  SyntheticMicronet model;
  EXPECT_TRUE(Recognises(kMicronet, model.Weights()));
  EXPECT_TRUE(Recognises(kMicronet, SyntheticMicronet({.bits = 8}).Weights()));
  model.Remove("embed.layers.0.weight");
  EXPECT_TRUE(Recognises(kMicronet, model.Weights()));
  model.Remove("loss.layers.0.weight");
  EXPECT_FALSE(Recognises(kMicronet, model.Weights()));
  EXPECT_FALSE(Recognises(kMicronet, {}));
}

}  // namespace
}  // namespace kinglet::neurips_micronet_test
