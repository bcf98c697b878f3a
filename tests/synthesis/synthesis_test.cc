#include "tests/synthesis/synthesis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <variant>

#include "converters/passes/calibrate.h"
#include "converters/splitmix.h"
#include "format/digest.h"
#include "runtime/session.h"
#include "tests/converters/opened.h"
#include "tests/synthesis/presets.h"

namespace kinglet::synthesis_test {
namespace {

// A few thousand parameters.
SynthesisSpec Small() {
  SynthesisSpec spec;
  spec.vocabulary_size = 400;
  spec.cutoffs = {60, 150};
  spec.widths = {32, 16, 4};
  spec.layers = 2;
  spec.heads = 4;
  spec.key_size = 6;
  spec.value_size = 5;
  spec.inner = 48;
  spec.window = 9;
  spec.cache = 20;
  return spec;
}

const EncodedTensor& Find(const ModelDraft& draft, const std::string& name) {
  for (const EncodedTensor& tensor : draft.tensors) {
    if (tensor.name == name) return tensor;
  }
  ADD_FAILURE() << "no tensor " << name;
  return draft.tensors.front();
}

std::vector<std::byte> BytesOf(const SynthesisSpec& spec) {
  const auto draft = Synthesise(spec);
  EXPECT_TRUE(draft.ok()) << draft.status().message();
  const auto bytes = SerialiseModel(*draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  return *bytes;
}

// Ids whose bins are as frequent as in WikiText-103's test text.
std::vector<uint32_t> RandomIds(size_t count, const SynthesisSpec& spec) {
  SplitMix64 random(5);
  std::vector<uint32_t> ids;
  while (ids.size() < count) {
    const uint32_t die = random.Below(245569);
    const uint32_t first = die < 198232 ? 0 : die < 233711 ? spec.cutoffs[0] : spec.cutoffs[1];
    const uint32_t end = die < 198232   ? spec.cutoffs[0]
                         : die < 233711 ? spec.cutoffs[1]
                                        : spec.vocabulary_size;
    ids.push_back(first + random.Below(end - first));
  }
  return ids;
}

// After each token the probabilities sum to 1, and no word has nearly all of the mass.
void ExpectPlausible(const SynthesisSpec& spec, size_t tokens, double largest) {
  const auto model = Model::FromBytes(BytesOf(spec), {});
  ASSERT_TRUE(model.ok()) << model.status().message();
  const auto session = *Session::Create(*model, {EmptyCache::kNormalised});
  std::vector<double> log_probabilities((*model)->vocabulary_size());
  for (const uint32_t id : RandomIds(tokens, spec)) {
    ASSERT_TRUE(session->StepToken(id).ok());
    ASSERT_TRUE(session->LogProbabilities(std::span<double>(log_probabilities)).ok());
    double sum = 0, most = 0;
    for (const double log_probability : log_probabilities) {
      const double probability = std::exp(log_probability);
      sum += probability;
      most = std::max(most, probability);
    }
    EXPECT_NEAR(sum, 1, 1e-4);  // infinities and NaN fail here too
    EXPECT_LT(most, largest);
    EXPECT_GT(most, 1.0 / spec.vocabulary_size);
  }
}

TEST(Synthesis, SameSeedSameBytes) {
  SynthesisSpec spec = Small();
  spec.bits = 9;
  spec.other_sparsity = 0.4;
  EXPECT_EQ(BytesOf(spec), BytesOf(spec));
  SynthesisSpec other = spec;
  other.seed = 2;
  EXPECT_NE(BytesOf(spec), BytesOf(other));
}

// A digest of every value, kept from an earlier run. A machine that computes otherwise, or a
// change of the generator, would change it.
TEST(Synthesis, TheSameValuesOnEveryMachine) {
  SynthesisSpec spec = Small();
  spec.bin_counts = {50, 20, 3};
  std::vector<float> all;
  for (const int bits : {0, 9}) {
    spec.bits = bits;
    const ModelDraft draft = *Synthesise(spec);
    for (const EncodedTensor& tensor : draft.tensors) {
      const std::vector<float> values = DecodedValues(tensor);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  EXPECT_EQ(HexText(DigestOf(std::as_bytes(std::span(all)))), "f4c575d62093146e2f31ae919da74d82");
}

TEST(Synthesis, TensorsDoNotDependOnTheRestOfTheNetwork) {
  const ModelDraft one = *Synthesise(Small());
  SynthesisSpec spec = Small();
  spec.layers = 3;
  spec.window = 12;
  spec.cache = 0;
  const ModelDraft other = *Synthesise(spec);
  for (const char* name : {"loss.layers.2.weight", "layers.1.qkv.weight", "layers.0.fc.3.bias"}) {
    EXPECT_EQ(DecodedValues(Find(one, name)), DecodedValues(Find(other, name))) << name;
  }
  EXPECT_NE(DecodedValues(Find(other, "layers.1.qkv.weight")),
            DecodedValues(Find(other, "layers.2.qkv.weight")));
}

TEST(Synthesis, ZerosAreThoseAskedForWhateverTheBits) {
  SynthesisSpec spec = Small();
  spec.sparsities = {{"layers.1.qkv.weight", 0.25}, {"embed.layers.1.weight", 0.501},
                     {"loss.layers.2.bias", 1.0},   {"layers.0.fc.0.bias", 0.03},
                     {"loss.layers.0.weight", 0.0}, {"layers.0.ln1.bias", 0.5}};
  spec.other_sparsity = 0.1;
  for (const int bits : {0, 3, 9, 16}) {
    spec.bits = bits;
    const ModelDraft draft = *Synthesise(spec);
    const auto zeros = [&](const char* name) {
      const EncodedTensor& tensor = Find(draft, name);
      return Count(tensor.shape) - CountNonzeros(tensor);
    };
    EXPECT_EQ(zeros("layers.1.qkv.weight"), 68 * 32 / 4) << bits;  // of [68, 32]
    EXPECT_EQ(zeros("loss.layers.1.weight"), 721u);                // of [90, 16], 721.44
    EXPECT_EQ(zeros("loss.layers.2.bias"), 250u);                  // all
    EXPECT_EQ(zeros("layers.0.fc.0.bias"), 1u);                    // of 48, 1.44
    EXPECT_EQ(zeros("layers.0.ln1.bias"), 16u);
    EXPECT_EQ(zeros("layers.0.qkv.weight"), 218u);  // another, of 2,176: 217.6
    EXPECT_EQ(zeros("loss.layers.0.weight"), 0u);   // named as dense
    EXPECT_EQ(zeros("layers.0.pos_emb"), 0u);       // the framework does not prune it
    EXPECT_EQ(zeros("layers.0.qkv.bias"), 0u);
  }
}

TEST(Synthesis, AnOutlineHasTheShapesEncodingsAndZerosOfTheModel) {
  for (const int bits : {0, 3, 9}) {
    SynthesisSpec spec = Small();
    spec.bits = bits;
    spec.other_sparsity = 0.3;
    spec.sparsities = {{"embed.layers.1.weight", 0.21}, {"loss.layers.2.bias", 1}};
    const ModelDraft model = *Synthesise(spec);
    const SynthesisOutline outline = *OutlineMicronet(spec);
    ASSERT_EQ(outline.draft.tensors.size(), model.tensors.size());
    for (size_t i = 0; i < model.tensors.size(); ++i) {
      const EncodedTensor &made = model.tensors[i], &found = outline.draft.tensors[i];
      EXPECT_EQ(found.name, made.name);
      EXPECT_EQ(found.shape, made.shape);
      EXPECT_EQ(found.derived, made.derived);
      ASSERT_EQ(found.values.index(), made.values.index()) << made.name;
      EXPECT_EQ(outline.nonzeros[i], CountNonzeros(made)) << made.name << ", " << bits << " bits";
      const auto* quantised = std::get_if<Quantised>(&made.values);
      if (quantised == nullptr) continue;
      EXPECT_EQ(std::get<Quantised>(found.values).bits, bits);
      EXPECT_EQ(std::get<Quantised>(found.values).rule, quantised->rule) << made.name;
    }
  }
}

TEST(Synthesis, OutputsAreProbabilities) {
  for (const int bits : {0, 2, 8, 9, 10, 16}) {
    SynthesisSpec spec = Small();
    spec.bits = bits;
    spec.other_sparsity = bits == 9 ? 0.5 : 0;
    ExpectPlausible(spec, 40, 0.9);
  }
  SynthesisSpec least = Small();
  least.window = least.layers = least.heads = least.key_size = least.value_size = 1;
  least.cache = 1;
  ExpectPlausible(least, 10, 0.95);
}

TEST(Synthesis, ThePublishedNetworksOutputsAreProbabilities) {
  ExpectPlausible(FindPreset("best")->spec, 6, 0.5);
  ExpectPlausible(FindPreset("8.3M")->spec, 6, 0.5);
}

// With bin counts a cluster gets about its bin's probability.
TEST(Synthesis, ClustersAreAsProbableAsTheirBins) {
  const SynthesisSpec spec = FindPreset("best")->spec;
  const auto session = *Session::Create(*Model::FromBytes(BytesOf(spec), {}));
  std::vector<double> log_probabilities(spec.vocabulary_size);
  double shares[3] = {};
  const auto ids = RandomIds(12, spec);
  for (const uint32_t id : ids) {
    ASSERT_TRUE(session->StepToken(id).ok());
    ASSERT_TRUE(session->LogProbabilities(std::span<double>(log_probabilities)).ok());
    for (uint32_t word = 0; word < spec.vocabulary_size; ++word) {
      const size_t bin = word < 3500 ? 0 : word < 25000 ? 1 : 2;
      shares[bin] += std::exp(log_probabilities[word]) / static_cast<double>(ids.size());
    }
  }
  EXPECT_NEAR(shares[0], 198232.0 / 245569, 0.15);
  EXPECT_NEAR(shares[1], 35479.0 / 245569, 0.1);
  EXPECT_NEAR(shares[2], 11858.0 / 245569, 0.04);
}

TEST(Synthesis, FilesSayHowOftenTheWordsOfEachBinOccur) {
  SynthesisSpec spec = Small();
  const auto tokens = [&spec] {
    std::vector<uint64_t> counts;
    const ModelDraft draft = *Synthesise(spec);
    for (const EmbeddingBin& bin : FindBlock<AdaptiveEmbedding>(draft.description)->bins) {
      counts.push_back(bin.tokens);
    }
    return counts;
  };
  spec.bin_counts = {50, 20, 3};
  EXPECT_EQ(tokens(), spec.bin_counts);
  spec.bin_counts = {};
  EXPECT_EQ(tokens(), (std::vector<uint64_t>{0, 0, 0}));
}

// The quantisers' ranges fit the activations of the same network in floats: nothing is clipped, and
// few codes are unused.
TEST(Synthesis, QuantisersHaveTheRangesTheNetworkReaches) {
  SynthesisSpec spec = FindPreset("best")->spec;
  const ModelDraft quantised = *Synthesise(spec);
  const auto* decoder = FindBlock<TransformerDecoder>(quantised.description);
  spec.bits = 0;
  const ModelDraft floats = *Synthesise(spec);
  const auto reached = Calibrated(Opened(floats), {.tokens = RandomIds(40, spec)}, {});
  ASSERT_TRUE(reached.ok()) << reached.status().message();
  TransformerLayerQuantisers most{};
  const auto widen = [](ActivationQuantiser& range, const ActivationQuantiser& found) {
    range.max_abs = std::max(range.max_abs, found.max_abs);
  };
  for (const TransformerLayer& layer : FindBlock<TransformerDecoder>(*reached)->layers) {
    widen(most.attention_input, layer.quantisers->attention_input);
    widen(most.qkv, layer.quantisers->qkv);
    widen(most.weights, layer.quantisers->weights);
    widen(most.attended, layer.quantisers->attended);
    widen(most.inner_input, layer.quantisers->inner_input);
    widen(most.inner, layer.quantisers->inner);
    widen(most.outer, layer.quantisers->outer);
  }
  for (const TransformerLayer& layer : decoder->layers) {
    ASSERT_TRUE(layer.quantisers);
    const auto fits = [](const ActivationQuantiser& quantiser, const ActivationQuantiser& widest) {
      EXPECT_LE(widest.max_abs, quantiser.max_abs);
      EXPECT_GE(widest.max_abs, quantiser.max_abs / 2);
      EXPECT_NEAR(quantiser.max_abs / quantiser.scale, 255, 0.1);
    };
    fits(layer.quantisers->attention_input, most.attention_input);
    fits(layer.quantisers->qkv, most.qkv);
    fits(layer.quantisers->weights, most.weights);
    fits(layer.quantisers->attended, most.attended);
    fits(layer.quantisers->inner_input, most.inner_input);
    fits(layer.quantisers->inner, most.inner);
    fits(layer.quantisers->outer, most.outer);
  }
  ASSERT_TRUE(decoder->output);
  const float output = FindBlock<TransformerDecoder>(*reached)->output->max_abs;
  EXPECT_LE(output, decoder->output->max_abs);
  EXPECT_GE(output, decoder->output->max_abs / 3);
  EXPECT_EQ(FindBlock<AdaptiveSoftmax>(quantised.description)->tail_input,
            TailInput::kFixedPoint15);
  EXPECT_EQ(decoder->start, StreamStart::kZeros);
}

TEST(Synthesis, RefusesWhatNoNetworkHas) {
  const auto refused = [](void (*change)(SynthesisSpec&), const char* where) {
    SynthesisSpec spec = Small();
    change(spec);
    const auto draft = Synthesise(spec);
    ASSERT_FALSE(draft.ok()) << where;
    EXPECT_EQ(draft.status().code(), KINGLET_INVALID_ARGUMENT) << where;
    EXPECT_NE(draft.status().message().find(std::string("synthesis: ") + where), std::string::npos)
        << draft.status().message();
  };
  refused([](SynthesisSpec& spec) { spec.widths = {}; }, "number of widths");
  refused([](SynthesisSpec& spec) { spec.widths[1] = 0; }, "width");
  refused([](SynthesisSpec& spec) { spec.cutoffs = {60}; }, "number of cutoffs");
  refused([](SynthesisSpec& spec) { spec.cutoffs = {60, 60}; }, "cutoff");
  refused([](SynthesisSpec& spec) { spec.cutoffs = {0, 60}; }, "cutoff");
  refused([](SynthesisSpec& spec) { spec.vocabulary_size = 150; }, "vocabulary size");
  refused([](SynthesisSpec& spec) { spec.layers = 0; }, "layers");
  refused([](SynthesisSpec& spec) { spec.heads = 0; }, "heads");
  refused([](SynthesisSpec& spec) { spec.key_size = ~0u; }, "key size");
  refused([](SynthesisSpec& spec) { spec.value_size = 0; }, "value size");
  refused([](SynthesisSpec& spec) { spec.inner = 0; }, "inner width");
  refused([](SynthesisSpec& spec) { spec.window = 0; }, "window");
  refused([](SynthesisSpec& spec) { spec.cache = ~0u; }, "cache");
  refused([](SynthesisSpec& spec) { spec.cache_theta = 0; }, "cache theta");
  refused([](SynthesisSpec& spec) { spec.cache_lambda = 1; }, "cache lambda");
  refused([](SynthesisSpec& spec) { spec.bits = 1; }, "bits");
  refused([](SynthesisSpec& spec) { spec.bits = 17; }, "bits");
  refused([](SynthesisSpec& spec) { spec.bits = -9; }, "bits");
  refused([](SynthesisSpec& spec) { spec.other_sparsity = 1.5; }, "sparsity");
  refused([](SynthesisSpec& spec) { spec.other_sparsity = std::nan(""); }, "sparsity");
  refused(
      [](SynthesisSpec& spec) {
        spec.sparsities = {{"layers.0.qkv.weight", -0.1}};
      },
      "sparsity of \"layers.0.qkv.weight\"");
  refused(
      [](SynthesisSpec& spec) {
        spec.sparsities = {{"layers.9.qkv.weight", 0.1}};
      },
      "sparsities: expected names of the network's tensors, found \"layers.9.qkv.weight\"");
  refused([](SynthesisSpec& spec) { spec.bin_counts = {1, 2}; }, "number of bin counts");
  refused([](SynthesisSpec& spec) { spec.bin_counts = {1, 0, 2}; }, "bin count");
  // More memory than today's machines have.
  refused([](SynthesisSpec& spec) { spec.inner = spec.heads = 1 << 20; }, "entries of all tensors");
}

}  // namespace
}  // namespace kinglet::synthesis_test
