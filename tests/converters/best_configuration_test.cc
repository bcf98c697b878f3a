// The published best MicroNet configuration, whose weights are not to be had: random ones of its
// shapes and sparsities must not take more bytes than the rules of the 2019 challenge charge.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "converters/families/micronet_config.h"
#include "converters/families/neurips_micronet.h"
#include "converters/passes/pack.h"
#include "converters/passes/prune.h"
#include "converters/passes/quantise.h"
#include "format/model_file.h"
#include "format/writer.h"
#include "runtime/lower/lower.h"
#include "runtime/micronet.h"
#include "tests/support/model_builder.h"

namespace kinglet {
namespace {

using Json = nlohmann::json;

Json Published() {
  std::ifstream file(std::string(KINGLET_TEST_DATA) + "/micronet-best-shapes.json");
  return Json::parse(file);
}

MicronetConfig ConfigOf(const Json& json) {
  MicronetConfig config;
  config.vocabulary_size = json["n_vocab"];
  config.width = json["n_embed"];
  config.layers = json["n_layers"];
  config.heads = json["n_head"];
  config.key_size = json["n_k"];
  config.value_size = json["n_v"];
  config.inner = json["n_inner"];
  config.context = json["n_seq"];
  uint32_t first = 0;
  std::vector<uint32_t> ends = json["cutoffs"];
  ends.push_back(config.vocabulary_size);
  for (size_t i = 0; i < ends.size(); ++i) {
    config.bins.push_back({first, ends[i] - first, json["n_embeds"][i]});
    first = ends[i];
  }
  config.cache =
      MicronetCache{json["n_cache"], {false, json["cache_theta"]}, {false, json["cache_lambda"]}};
  return config;
}

// Magnitudes from 0.25 to 1, so that no entry rounds to zero: what is zero is what was pruned.
std::vector<float> RandomValues(uint64_t count, TestRandom& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    const float number = random.Signed();
    value = std::copysign(0.25F + 0.75F * std::fabs(number), number);
  }
  return values;
}

struct BestModel {
  ModelDraft draft;
  uint64_t nonzeros = 0, total = 0;  // of the tensors that the rules charge
};

// Pruned, quantised and packed. With `activations`, quantisers are where the published network has
// them.
BestModel MakeBestModel(const Json& published, bool activations) {
  const int bits = published["config"]["bits"];
  TestRandom random(1);
  SourceWeights weights;
  std::map<std::string, double> sparsity;
  const auto add = [&](const std::string& name, const std::vector<uint64_t>& shape) {
    uint64_t count = 1;
    for (const uint64_t size : shape) count *= size;
    weights.push_back({name, shape, [values = RandomValues(count, random)] {
                         return Result<std::vector<float>>(values);
                       }});
  };
  for (const Json& tensor : published["tensors"]) {
    std::string name = tensor["tensor"];
    if (name.starts_with("embed.layers.")) name.replace(0, 5, "loss");  // the name of the tied pair
    add(name, tensor["shape"]);
    sparsity[name] = tensor["final_sparsity"];
  }
  for (int i = 0; i < 8; ++i) {
    for (const char* norm : {"ln1.weight", "ln1.bias", "ln2.weight", "ln2.bias"}) {
      add("layers." + std::to_string(i) + "." + norm, {256});
    }
  }
  auto loaded = MicronetDraft(ConfigOf(published["config"]), weights);
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  BestModel model;
  ModelDraft& draft = loaded->draft;

  for (EncodedTensor& tensor : draft.tensors) {
    if (tensor.name.find(".ln") != std::string::npos) continue;  // the rules leave norms out
    PruneTensor(sparsity.at(tensor.name), tensor);
    model.nonzeros += CountNonzeros(tensor);
    model.total += Count(tensor.shape);
  }

  QuantiseTensors(bits, loaded->quantisable, draft);
  if (activations) {
    const ActivationQuantiser quantiser = {4.0F, 4.0F / 255};
    for (Block& block : draft.description.blocks) {
      if (auto* softmax = std::get_if<AdaptiveSoftmax>(&block)) {
        softmax->tail_input = TailInput::kFixedPoint15;
      }
      auto* decoder = std::get_if<MicronetDecoder>(&block);
      if (decoder == nullptr) continue;
      decoder->start = StreamStart::kZeros;
      decoder->output = quantiser;
      for (MicronetLayer& layer : decoder->layers) {
        layer.quantisers = {quantiser, quantiser, quantiser, quantiser,
                            quantiser, quantiser, quantiser};
      }
    }
  }
  PackTensors(draft);
  model.draft = std::move(draft);
  return model;
}

TEST(BestConfiguration, TakesNoMoreBytesThanTheRulesCharge) {
  const Json published = Published();
  const auto [draft, nonzeros, total] = MakeBestModel(published, false);
  // The 7,029,567.5 bytes that the rules charge: 32-bit words of parameters, masks and quantisers.
  const double charged = 4 * published["published"]["total_size"].get<double>();
  EXPECT_EQ(total, published["published"]["total"].get<uint64_t>());
  // The published network has a few zeros more, from rounding.
  EXPECT_NEAR(static_cast<double>(nonzeros), published["published"]["nonzero"].get<double>(),
              0.001 * static_cast<double>(total));

  const auto bytes = SerialiseModel(draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Ledger& ledger = (*file)->ledger();
  EXPECT_EQ(ledger.Total(), bytes->size());

  uint64_t packed = 0;
  std::map<LedgerPart, uint64_t> parts;
  for (const LedgerEntry& entry : ledger.entries) {
    parts[entry.part] += entry.bytes;
    if (entry.part == LedgerPart::kCodes) packed += entry.bytes;
  }
  for (size_t i = 0; i < draft.tensors.size(); ++i) {
    const TensorView& view = (*file)->tensors()[i];
    if (view.quantised() && view.mask) packed += view.mask->bytes.size();
  }
  EXPECT_LE(static_cast<double>(packed), charged);
  // Nothing is forgotten either: nine bits for each entry that is not zero, positions apart.
  const uint64_t positions = 8 * 24 * 97;
  EXPECT_GE(packed, (nonzeros - positions) * 9 / 8);
  uint64_t sum = 0;
  for (const auto& [part, size] : parts) {
    std::cout << LedgerPartName(part) << " " << size << "\n";
    sum += size;
  }
  std::cout << "codes and masks of quantised tensors " << packed << ", charged " << charged << "\n";
  EXPECT_EQ(sum, bytes->size());
}

// From the file's own weights to the numbers that the notebook printed, within 0.01 %: the
// sparsities are those that training aimed at. The file stays, for `kinglet count`.
TEST(BestConfiguration, CountsAsPublished) {
  const Json published = Published();
  const auto bytes = SerialiseModel(MakeBestModel(published, true).draft);
  ASSERT_TRUE(bytes.ok()) << bytes.status().message();
  ASSERT_TRUE(WriteFileAtomically(*bytes, "best_configuration.kgl").ok());
  const auto file = ModelFile::FromBytes(*bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto plan = Lower(**file);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const auto count = CountMicronet2019(*plan, CountNonzeros(plan->weights),
                                       published["test_bin_counts"].get<std::vector<uint64_t>>());
  ASSERT_TRUE(count.ok()) << count.status().message();
  const Json& printed = published["published"];
  EXPECT_EQ(count->storage.total, printed["total"].get<uint64_t>());
  EXPECT_EQ(count->storage.quantisation, printed["quantisation"].get<double>());
  EXPECT_EQ(count->operations.others, printed["others"].get<double>());
  EXPECT_NEAR(count->storage.TotalSize() / printed["total_size"].get<double>(), 1, 1e-4);
  EXPECT_NEAR(count->TotalOperations() / printed["total_ops"].get<double>(), 1, 1e-4);
  EXPECT_NEAR(count->Score() / printed["score"].get<double>(), 1, 1e-4);
}

}  // namespace
}  // namespace kinglet
