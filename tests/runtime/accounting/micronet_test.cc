// Every expected number is published, in the paper (Yan et al. 2020) or printed by the notebooks of
// mit-han-lab/neurips-micronet. The dense components are the notebook's formulas worked out by
// hand.
#include "runtime/accounting/micronet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "converters/passes/quantise.h"
#include "runtime/lower/lower.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/translation_builder.h"
#include "tests/synthesis/presets.h"
#include "tests/synthesis/published_totals.h"
#include "tests/synthesis/synthetic_plan.h"

namespace kinglet::micronet_test {
namespace {

using Json = nlohmann::json;

// Tokens of WikiText-103's test text by bin.
const std::vector<uint64_t> kTestBins = {198232, 35479, 11858};

MicronetCount CountOf(const SyntheticPlan& model) {
  const auto count = CountMicronet2019(model.plan(), model.nonzeros, kTestBins);
  EXPECT_TRUE(count.ok()) << count.status().message();
  return count.ok() ? *count : MicronetCount();
}

#define EXPECT_RELATIVE(found, expected) \
  EXPECT_NEAR((found) / (expected), 1.0, 1e-9) << #found << " = " << (found)

TEST(Micronet2019, DenseTotals) {
  for (const DenseTotal& published : kDenseTotals) {
    const auto preset = FindPreset(published.preset);
    ASSERT_TRUE(preset) << published.preset;
    const SyntheticPlan model(preset->spec);
    const auto count = CountMicronet2019(model.plan(), model.nonzeros, preset->spec.bin_counts);
    ASSERT_TRUE(count.ok()) << count.status().message();
    EXPECT_RELATIVE(count->operations.WeightedTotal(), published.operations) << published.preset;
  }
}

TEST(Micronet2019, DenseSumsAreKeptApart) {
  SyntheticConfig config;
  const MicronetCount without = CountOf(SyntheticPlan(config));
  EXPECT_RELATIVE(without.operations.multiplications, 8298476.553);
  EXPECT_RELATIVE(without.operations.additions, 8292663.205);
  EXPECT_EQ(without.operations.others, 836247);  // the softmax over no cache entries takes -1
  config.cache = 3000;
  const MicronetCount with = CountOf(SyntheticPlan(config));
  EXPECT_RELATIVE(with.operations.multiplications, 9066476.553);
  EXPECT_RELATIVE(with.operations.additions, 9057663.205);
  EXPECT_EQ(with.operations.others, 845247);
}

// One softmax over all tokens, and no projections whose bins' frequencies matter.
TEST(Micronet2019, TheNetworkWithoutBins) {
  const SyntheticPlan model(FindPreset("74M")->spec);
  EXPECT_FALSE(NeedsBinCounts(model.plan()));
  const auto count = CountMicronet2019(model.plan(), model.nonzeros, {});
  ASSERT_TRUE(count.ok()) << count.status().message();
  EXPECT_EQ(count->operations.multiplications, 74097600);
}

TEST(Micronet2019, DenseComponents) {
  SyntheticConfig config;
  config.cache = 3000;
  std::map<std::string, OperationTally> found;
  for (const Component& component : CountOf(SyntheticPlan(config)).components) {
    EXPECT_TRUE(found.emplace(component.name, component.operations).second) << component.name;
    EXPECT_EQ(component.density, 1);
  }
  const std::map<std::string, OperationTally> expected = {
      {"embed.projection.1", {2367.11, 2330.12, 0}},
      {"embed.projection.2", {49.45, 37.09, 0}},
      {"layers.7.norm1", {0, 0, 1536}},
      {"layers.7.norm2", {0, 0, 1536}},
      {"layers.7.qkv", {147456, 147456, 0}},
      {"layers.7.attention.query_keys", {18624, 17848, 0}},
      {"layers.7.attention.query_positions", {2328, 2328, 0}},
      {"layers.7.attention.softmax", {0, 0, 290}},
      {"layers.7.attention.values", {18624, 18432, 0}},
      {"layers.7.out", {49152, 48896, 0}},
      {"layers.7.residual1", {0, 256, 0}},
      {"layers.7.residual2", {0, 256, 0}},
      {"layers.7.fc0", {196608, 196608, 0}},
      {"layers.7.fc0.relu", {0, 0, 768}},
      {"layers.7.fc3", {196608, 196096 + 256 + 256, 0}},
      {"softmax.clusters", {512, 512, 0}},
      {"softmax.head", {896000, 896000, 0}},
      {"softmax.tail.1", {1376000, 1376000, 0}},
      {"softmax.tail.2", {970940, 970940, 0}},
      {"softmax.tail.1.projection", {16384, 16320, 0}},
      {"softmax.tail.2.projection", {1024, 1020, 0}},
      {"softmax.head.normaliser", {0, 0, 10505}},
      {"softmax.tail.1.normaliser", {0, 0, 64499}},
      {"softmax.tail.2.normaliser", {0, 0, 728204}},
      {"cache.weights", {768000, 765000, 0}},
      {"cache.weights.softmax", {0, 0, 8999}}};
  EXPECT_EQ(found.size(), 5 + 2 * 3 + 2 + 2 - 2 + 8 * 13u);
  for (const auto& [name, tally] : expected) {
    ASSERT_TRUE(found.count(name)) << name;
    EXPECT_NEAR(found[name].multiplications, tally.multiplications, 0.005) << name;
    EXPECT_NEAR(found[name].additions, tally.additions, 0.005) << name;
    EXPECT_EQ(found[name].others, tally.others) << name;
  }
}

Json Published() {
  std::ifstream file(std::string(KINGLET_TEST_DATA) + "/micronet-best-shapes.json");
  return Json::parse(file);
}

// The published network's weights are not available. With the sparsities that its training aimed
// at, the counts are within 0.01 % of what the notebook printed.
TEST(Micronet2019, TheBestConfiguration) {
  const Json json = Published();
  const SyntheticPlan model(FindPreset("best")->spec);
  const auto bins = json["test_bin_counts"].get<std::vector<uint64_t>>();
  const auto count = CountMicronet2019(model.plan(), model.nonzeros, bins);
  ASSERT_TRUE(count.ok()) << count.status().message();
  const Json& published = json["published"];
  const auto near = [&](double found, const char* key, double relative) {
    EXPECT_NEAR(found / published[key].get<double>(), 1, relative) << key << " " << found;
  };
  EXPECT_EQ(count->bits, std::vector<int>{9});
  EXPECT_EQ(count->storage.total, published["total"].get<uint64_t>());
  EXPECT_EQ(count->storage.mask, published["mask"].get<double>());
  EXPECT_EQ(count->storage.quantisation, published["quantisation"].get<double>());
  EXPECT_EQ(count->operations.others, published["others"].get<double>());
  near(static_cast<double>(count->storage.nonzero), "nonzero", 1e-4);
  near(count->storage.size, "param_size", 1e-4);
  near(count->storage.TotalSize(), "total_size", 1e-4);
  near(count->operations.multiplications, "muls", 1e-4);
  near(count->operations.weighted_multiplications, "muls_weighted", 1e-4);
  near(count->operations.additions, "adds", 1e-4);
  near(count->operations.WeightedTotal(), "total_ops", 1e-4);
  near(count->Score(), "score", 1e-4);
}

// With 5,326,376 non-zero parameters the size is the printed one to the last digit.
TEST(Micronet2019, SizesToTheDigit) {
  SyntheticConfig config;
  config.cache = 3000;
  config.bits = 9;
  SyntheticPlan model(config);
  uint64_t& table = model.nonzeros.at(model.Find("embed.layers.1.weight"));
  uint64_t& bias = model.nonzeros.at(model.Find("loss.layers.2.bias"));
  uint64_t& head = model.nonzeros.at(model.Find("embed.layers.0.weight"));
  const uint64_t pruned = 8296021 - 5326376;
  table = bias = 0;
  head -= pruned - 21500 * 64 - 242735;
  ASSERT_EQ(head, 896000 - pruned + 1376000 + 242735);
  const MicronetCount found = CountOf(model);
  EXPECT_EQ(found.storage.nonzero, 5326376u);
  EXPECT_EQ(found.storage.size, 1498043.25);
  EXPECT_EQ(found.storage.TotalSize(), 1757391.875);
}

TEST(Micronet2019, OneWeightLess) {
  SyntheticConfig config;
  config.bits = 8;
  SyntheticPlan model(config);
  const MicronetCount before = CountOf(model);
  --model.nonzeros.at(model.Find("layers.3.qkv.weight"));
  const MicronetCount weight = CountOf(model);
  EXPECT_EQ(before.storage.nonzero - weight.storage.nonzero, 1u);
  EXPECT_EQ(before.storage.size - weight.storage.size, 0.25);
  EXPECT_NEAR(before.operations.multiplications - weight.operations.multiplications, 1, 1e-6);
  EXPECT_NEAR(before.operations.additions - weight.operations.additions, 255.0 / 256, 1e-6);
  // A table shared by embedding and softmax is kept once, and only the softmax multiplies with it.
  --model.nonzeros.at(model.Find("embed.layers.1.weight"));
  const MicronetCount table = CountOf(model);
  EXPECT_EQ(weight.storage.nonzero - table.storage.nonzero, 1u);
  EXPECT_NEAR(weight.operations.multiplications - table.operations.multiplications, 1, 1e-6);
  // A projection of the input runs for its bin's tokens only.
  --model.nonzeros.at(model.Find("embed.projections.0.weight"));
  const MicronetCount projection = CountOf(model);
  EXPECT_NEAR(table.operations.multiplications - projection.operations.multiplications,
              35479.0 / 245569, 1e-6);
  // A bias costs an addition; norms cost nothing.
  --model.nonzeros.at(model.Find("loss.layers.2.bias"));
  --model.nonzeros.at(model.Find("layers.0.ln1.weight"));
  const MicronetCount bias = CountOf(model);
  EXPECT_EQ(projection.storage.nonzero - bias.storage.nonzero, 1u);
  EXPECT_NEAR(projection.operations.additions - bias.operations.additions, 1, 1e-6);
}

TEST(Micronet2019, QuantisersAreChargedByTheirBits) {
  SyntheticConfig config;
  EXPECT_EQ(CountOf(SyntheticPlan(config)).storage.quantisation, 0);
  config.bits = 9;
  EXPECT_EQ(CountOf(SyntheticPlan(config)).storage.quantisation, 97.96875);
  config.bits = 8;
  EXPECT_EQ(CountOf(SyntheticPlan(config)).storage.quantisation, 99.75);
}

TEST(Micronet2019, ATruncatedScaleTakesNoFurtherBit) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyMicronet({.quantised = true})));
  Plan plan = *Lower(*file);
  // 1 / 32767 without its last 16 bits, so that 1 has the code 32768.
  for (BufferSpec& buffer : plan.buffers) {
    if (buffer.quantiser) buffer.quantiser = ActivationQuantiser{1, 0x1p-15F};
  }
  const auto count =
      CountMicronet2019(plan, CountNonzeros(plan.weights), std::vector<uint64_t>{5, 3, 2});
  // In each layer 6 quantisers of 16 bits, and one of 9 for the weights of attention.
  EXPECT_EQ(count->storage.quantisation, (2 * 6 + 1) * 1.5 + 2 * (1 + 23.0 / 32));
}

TEST(Micronet2019, RefusesBinFrequenciesThatDoNotFit) {
  const SyntheticPlan model{SyntheticConfig()};
  EXPECT_TRUE(NeedsBinCounts(model.plan()));
  for (const std::vector<uint64_t>& bins : {std::vector<uint64_t>{},
                                            {1},
                                            {1, 2},
                                            {1, 2, 3, 4},
                                            {0, 0, 0},
                                            {~uint64_t{0}, ~uint64_t{0}, 1}}) {
    const auto count = CountMicronet2019(model.plan(), model.nonzeros, bins);
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.status().code(), KINGLET_INVALID_ARGUMENT);
    EXPECT_NE(count.status().message().find("3 bins"), std::string::npos);
  }
}

// A MicroNet model whose tensors have different widths: float32, float16, and integers of 2 to 16
// bits. Norms are free, and positions stay floats.
ModelDraft OfManyWidths(bool quantised) {
  ModelDraft draft = TinyMicronet({.quantised = quantised, .cache_capacity = 4});
  const int widths[] = {2, 32, 4, 16, 7, 9, 12, 0};  // 0: 16 bits as a float
  size_t next = 0;
  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name.find(".ln") != std::string::npos) continue;
    if (tensor.name.ends_with("pos_emb")) continue;
    const int bits = widths[next++ % std::size(widths)];
    tensor.values = DenseF32{DecodedValues(tensor)};
    if (bits == 0) {
      DenseF16 halves;
      for (const float value : DecodedValues(tensor)) halves.bits.push_back(FloatToHalf(value));
      tensor.values = std::move(halves);
    } else if (bits < 32) {
      QuantiseTensor(bits, tensor);
    }
  }
  return draft;
}

// The challenge's rules: a parameter counts with its own bits, a multiplication with those of its
// wider operand. Activations have 32 bits, or 9 where they are quantised; the notebook counts
// positions and the inputs of tails as if they were quantised with the others.
TEST(Micronet2019, EveryParameterAndProductCountsWithItsOwnBits) {
  for (const bool quantised : {false, true}) {
    const ModelDraft draft = OfManyWidths(quantised);
    const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
    const Plan plan = *Lower(*file);
    const std::vector<uint64_t> bins = {5, 3, 2};
    const auto count = CountMicronet2019(plan, CountNonzeros(plan.weights), bins);
    ASSERT_TRUE(count.ok()) << count.status().message();
    const int activation = quantised ? 9 : 32;
    std::map<std::string, double> nonzeros;
    std::map<std::string, int> bits;
    double tokens = 0, entries = 0;
    for (const EncodedTensor& tensor : draft.tensors) {
      if (tensor.name.find(".ln") != std::string::npos) continue;
      const auto* const integers = std::get_if<Quantised>(&tensor.values);
      const bool half = std::holds_alternative<DenseF16>(tensor.values);
      int& width = bits[tensor.name];
      width = integers != nullptr ? integers->bits : half ? 16 : 32;
      if (tensor.name.ends_with("pos_emb")) width = activation;
      double& used = nonzeros[tensor.name];
      for (const float value : DecodedValues(tensor)) used += value != 0;
      tokens += used * width / 32;
      entries += static_cast<double>(Count(tensor.shape));
    }
    EXPECT_EQ(count->storage.size, tokens);
    EXPECT_EQ(count->storage.mask, entries / 32);
    EXPECT_EQ(count->storage.quantisation, quantised ? (2 * 7 + 1) * (1 + 23.0 / 32) : 0);

    double products = 0, weighted = 0;
    const auto multiply = [&](double number, int one, int other) {
      products += number;
      weighted += number * std::max(one, other) / 32;
    };
    const auto linear = [&](const std::string& name, int input, double share = 1) {
      multiply(nonzeros.at(name + ".weight") * share, bits.at(name + ".weight"), input);
    };
    linear("embed.projections.0", bits.at("loss.layers.1.weight"), 0.3);
    linear("embed.projections.1", bits.at("loss.layers.2.weight"), 0.2);
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      for (const char* const part : {"qkv", "out", "fc.0", "fc.3"}) {
        linear(layer + part, activation);
      }
      multiply(3 * 6 * 2 + 3 * 6 + 6 * 2 * 5, activation, activation);
    }
    for (const char* const part :
         {"layers.0", "layers.1", "layers.2", "clusters", "projections.0", "projections.1"}) {
      linear(std::string("loss.") + part, activation);
    }
    multiply(8 * 4, activation, activation);
    EXPECT_NEAR(count->operations.multiplications, products, 1e-9);
    EXPECT_NEAR(count->operations.weighted_multiplications, weighted, 1e-9);
  }
}

// A quantised bias reduces the size by its own values, and no other count.
TEST(Micronet2019, OneQuantisedBias) {
  ModelDraft draft = TinyMicronet();
  const auto count_of = [](const ModelDraft& of) {
    const auto file = *ModelFile::FromBytes(*SerialiseModel(of));
    const Plan plan = *Lower(*file);
    return *CountMicronet2019(plan, CountNonzeros(plan.weights), std::vector<uint64_t>{1, 1, 1});
  };
  const MicronetCount before = count_of(draft);
  EncodedTensor& bias = *std::find_if(
      draft.tensors.begin(), draft.tensors.end(),
      [](const EncodedTensor& tensor) { return tensor.name == "layers.0.fc.0.bias"; });
  QuantiseTensor(2, bias);
  double left = 0;
  for (const float value : DecodedValues(bias)) left += value != 0;
  const MicronetCount after = count_of(draft);
  EXPECT_EQ(before.storage.size - after.storage.size, 12 - left * 2 / 32);
  EXPECT_EQ(before.operations.weighted_multiplications, after.operations.weighted_multiplications);
  EXPECT_EQ(before.operations.additions - after.operations.additions, 12 - left);
  EXPECT_EQ(after.bits, (std::vector<int>{2, 32}));
}

// The notebook's formulas worked out by hand for a recurrent network: linear layers, and for each
// gate's products, sums and functions one operation.
TEST(Micronet2019, RecurrentCellsFollowTheSameFormulas) {
  const auto file = *ModelFile::FromBytes(
      *SerialiseModel(TinyRecurrent({.cells = {RecurrentCell::kLstm}, .tails = 0})));
  const Plan plan = *Lower(*file);
  const auto count = CountMicronet2019(plan, CountNonzeros(plan.weights), {});
  ASSERT_TRUE(count.ok()) << count.status().message();
  // 8 units of 6 inputs, 23 tokens; no entry is zero. Bias terms are additions.
  const double weights = 32 * 6 + 32 * 8 + 23 * 8;
  EXPECT_DOUBLE_EQ(count->operations.multiplications, weights + 3 * 8);
  EXPECT_DOUBLE_EQ(count->operations.additions, 32 * 5 + 32 * 7 + 23 * 7 + 32 + 32 + 23 + 5 * 8);
  EXPECT_DOUBLE_EQ(count->operations.others, 5 * 8 + (3 * 23 - 1) - 1);
  EXPECT_EQ(count->storage.total, 23 * 6 + weights + 32 + 32 + 23);
}

// 30 tokens; rows of 4 sub-vectors of 3 and 2 elements; one LSTM layer of 8 units.
CodedSynthesisSpec SmallCoded(std::vector<uint32_t> output_pools) {
  CodedSynthesisSpec spec;
  spec.vocabulary_size = 30;
  spec.width = 12;
  spec.input = {4, {7}};
  spec.units = {8};
  spec.output = {4, std::move(output_pools)};
  spec.output_bias = true;
  return spec;
}

MicronetCount CodedCountOf(const SyntheticPlan& model) {
  return *CountMicronet2019(model.plan(), model.nonzeros, {});
}

// Li et al. 2018, section 3.2: M H / K products once, then K - 1 sums for each token. Looking up
// the input is free; a code counts with its bits.
TEST(Micronet2019, CodedTables) {
  const SyntheticPlan model(SmallCoded({5, 4, 4, 4}));
  const MicronetCount count = CodedCountOf(model);
  EXPECT_DOUBLE_EQ(count.operations.multiplications, 32 * 12 + 32 * 8 + 3 * 8 + 17 * 8 / 4);
  EXPECT_DOUBLE_EQ(count.operations.additions,
                   32 * 11 + 32 + 32 * 7 + 5 * 8 + 17 * (2 - 1) + 30 * (4 - 1) + 30);
  EXPECT_DOUBLE_EQ(count.operations.others, 5 * 8 + (3 * 30 - 1) - 1);
  EXPECT_EQ(count.storage.total, 7u * 3 + 32 * 12 + 32 * 8 + 32 + 17 * 2 + 30);
  EXPECT_DOUBLE_EQ(count.storage.codes, (30.0 * 4 * 3 + 30.0 * 4 * 3) / 32);
  EXPECT_DOUBLE_EQ(count.storage.TotalSize(),
                   static_cast<double>(count.storage.total) * 33 / 32 + count.storage.codes);
}

TEST(Micronet2019, PositionsThatShareAPoolMultiplyWithItEach) {
  SyntheticPlan model(SmallCoded({17}));
  const MicronetCount before = CodedCountOf(model);
  EXPECT_DOUBLE_EQ(before.operations.multiplications, 32 * 12 + 32 * 8 + 3 * 8 + 17 * 8);
  EXPECT_DOUBLE_EQ(before.storage.codes, (30.0 * 4 * 3 + 30.0 * 4 * 5) / 32);
  --model.nonzeros.at(model.Find("softmax.table.codebook"));
  const MicronetCount after = CodedCountOf(model);
  EXPECT_DOUBLE_EQ(before.operations.multiplications - after.operations.multiplications, 4);
  EXPECT_DOUBLE_EQ(before.operations.additions - after.operations.additions, 4 * 1.0 / 2);
}

TEST(Micronet2019, OneWeightOfACodebookLess) {
  SyntheticPlan model(SmallCoded({5, 4, 4, 4}));
  const MicronetCount before = CodedCountOf(model);
  --model.nonzeros.at(model.Find("softmax.table.codebook"));
  const MicronetCount output = CodedCountOf(model);
  EXPECT_DOUBLE_EQ(before.operations.multiplications - output.operations.multiplications, 1);
  EXPECT_DOUBLE_EQ(before.operations.additions - output.operations.additions, 1.0 / 2);
  EXPECT_EQ(before.storage.nonzero - output.storage.nonzero, 1u);
  EXPECT_DOUBLE_EQ(before.storage.TotalSize() - output.storage.TotalSize(), 1);
  --model.nonzeros.at(model.Find("embed.table.codebook"));
  const MicronetCount input = CodedCountOf(model);
  EXPECT_DOUBLE_EQ(output.operations.WeightedTotal(), input.operations.WeightedTotal());
  EXPECT_EQ(output.storage.nonzero - input.storage.nonzero, 1u);
}

// A translation by the notebook's formulas. The number of tokens seen is a mean; the count is
// linear in it.
TEST(MicronetRules, TranslationsByWhatTheirTokensSee) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyTranslation()));
  const Plan plan = *Lower(*file);
  Trace encoder = EncoderTrace(plan, std::vector<uint32_t>{1, 12, 0});
  encoder += EncoderTrace(plan, std::vector<uint32_t>{7});
  Trace decoder = FullTrace(plan, std::vector<uint32_t>{2, 5, 16}, 3);
  decoder += FullTrace(plan, std::vector<uint32_t>{2, 4}, 1);
  const TranslationMeans means = MeansOf(plan, encoder, decoder);
  EXPECT_DOUBLE_EQ(means.sources_of_source, (3 * 3 + 1) / 4.0);
  EXPECT_DOUBLE_EQ(means.sources_seen, (3 * 3 + 2 * 1) / 5.0);
  EXPECT_DOUBLE_EQ(means.targets_seen, (1 + 2 + 3 + 1 + 2) / 5.0);
  EXPECT_EQ(means.source_bin_counts, (std::vector<uint64_t>{4}));
  const std::vector<uint64_t> nonzeros = CountNonzeros(plan.weights);
  const auto count = CountMicronet2019(plan, nonzeros, {}, &means);
  ASSERT_TRUE(count.ok()) << count.status().message();

  const auto matrix = [](double rows, double cols) {
    return OperationTally{rows * cols, rows * cols, 0};
  };
  const auto attention = [](double heads, double seen) {  // keys of 4, values of 5
    return OperationTally{heads * seen * 9, heads * (seen * 3 + (seen - 1) * 5),
                          heads * (3 * seen - 1)};
  };
  OperationTally source = {0, 10, 0};  // positions
  for (int layer = 0; layer < 2; ++layer) {
    source += OperationTally{0, 20, 2 * 60 + 10};  // residuals, norms, ReLU
    source += matrix(39, 10);
    source += attention(3, 2.5);
    source += matrix(10, 15);
    source += matrix(10, 10) * 2;
  }
  source += OperationTally{0, 0, 60};
  source += matrix(18, 10) * 2;
  EXPECT_DOUBLE_EQ(count->encoder_operations.multiplications, source.multiplications);
  EXPECT_DOUBLE_EQ(count->encoder_operations.additions, source.additions);
  EXPECT_DOUBLE_EQ(count->encoder_operations.others, source.others);

  OperationTally target = {0, 8, 0};
  for (int layer = 0; layer < 2; ++layer) {
    target += OperationTally{0, 24, 3 * 48 + 10};
    target += matrix(26, 8);
    target += attention(2, 1.8);
    target += matrix(8, 10) * 2;
    target += matrix(8, 8);
    target += attention(2, 2.2);
    target += matrix(10, 8);
    target += matrix(8, 10);
  }
  target += OperationTally{0, 0, 48 + 3 * 17 - 1};  // final norm, normaliser
  target += matrix(17, 8);
  EXPECT_DOUBLE_EQ(count->operations.multiplications, target.multiplications);
  EXPECT_DOUBLE_EQ(count->operations.additions, target.additions);
  EXPECT_DOUBLE_EQ(count->operations.others, target.others);
}

}  // namespace
}  // namespace kinglet::micronet_test
