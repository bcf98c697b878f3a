#include "runtime/accounting/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <variant>

#include "format/writer.h"
#include "runtime/model.h"
#include "tests/support/model_builder.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/support/translation_builder.h"
#ifdef KINGLET_HAVE_CPU_BACKEND
#include "kernels/cpu/cpu.h"
#endif

namespace kinglet::traffic_test {
namespace {

// The head and two tails.
const ClusterSet kEvery = {0, 1, 2};

std::shared_ptr<const Model> Open(const TinyOptions& options, const std::string& backend) {
  return *Model::FromBytes(*SerialiseModel(TinyMicronet(options)), {.backend = backend});
}

std::vector<NodeTraffic> Traffic(const Model& model, const TokenPath& path) {
  return TrafficOf(model.plan(), model.layout(), model.backend().real_bytes, model.kernels(), path);
}

const NodeTraffic& Find(const Model& model, const std::vector<NodeTraffic>& traffic,
                        const std::string& name) {
  size_t i = 0;
  while (model.plan().nodes.at(i).name != name) ++i;
  return traffic[i];
}

// Addresses of a stream's memory, which nothing reads.
struct Blank {
  explicit Blank(const Model& model)
      : scratch(model.layout().scratch_bytes), state(model.layout().state_bytes) {}
  StreamMemory memory() const { return {scratch.data(), state.data(), scratch.data()}; }
  std::vector<std::byte> scratch, state;
};

uint64_t Distinct(const Model& model, const std::vector<NodeTraffic>& traffic, size_t lanes = 1) {
  const std::vector<Blank> streams(lanes, Blank(model));
  std::vector<StreamMemory> memory;
  for (const Blank& stream : streams) memory.push_back(stream.memory());
  return TotalBytes(DistinctMemory(traffic, memory));
}

// The network of examples/wikitext2 with fewer tokens: 6 layers of width 128, 4 heads of 32, inner
// 512, window 97, cache 2,000; bins of 100, 200 and 300 tokens with rows of 128, 64 and 32.
TinyOptions DemoShapes() {
  TinyOptions options;
  options.quantised = true;
  options.bits = 9;
  options.cache_capacity = 2000;
  options.vocabulary_size = 600;
  options.layers = 6;
  options.width = 128;
  options.heads = 4;
  options.key_size = 32;
  options.value_size = 32;
  options.inner = 512;
  options.window = 97;
  return options;
}

// Bytes of weights when rows are padded to a multiple of `pad`: codes of `code_bits` with a float32
// scale for each row, and float32 vectors.
struct WeightBytes {
  uint64_t pad, code_bits;
  uint64_t Padded(uint64_t rows) const { return (rows + pad - 1) / pad * pad; }
  uint64_t Matrix(uint64_t rows, uint64_t cols) const {
    return Padded(rows) * (cols * code_bits / 8 + 4);
  }
  uint64_t Vector(uint64_t rows) const { return Padded(rows) * 4; }

  // A token of the first bin, whose embedding row is a row of the head's matrix.
  uint64_t FullToken() const {
    const uint64_t layer = Matrix(384, 128) + Vector(384) +  // qkv
                           Padded(97) * 32 * 4 +             // positions, transposed
                           Matrix(128, 128) +                // out
                           4 * Vector(128) +                 // norms
                           Matrix(512, 128) + Vector(512) +  // fc0
                           Matrix(128, 512) + Vector(128);   // fc3
    const uint64_t head = Matrix(100, 128) + Vector(100) + Matrix(2, 128) + Vector(2);
    const uint64_t tails = Matrix(200, 64) + Vector(200) + Matrix(64, 128) +  //
                           Matrix(300, 32) + Vector(300) + Matrix(32, 128);
    return 6 * layer + head + tails;
  }
};

// With window and cache full, a token that computes every cluster touches all of a stream's memory.
uint64_t StreamBytes() {
  const uint64_t state_of_layer = 2 * 97 * 4 * 32 * 9 / 8;  // keys and values, 9-bit codes
  const uint64_t layer = 128 * 4 + 128 * 2 +                // norm1 and its codes
                         384 * 4 + 384 * 2 +                // qkv
                         4 * 97 * 4 +                       // attention weights
                         128 * 4 + 128 * 2 +                // attended
                         128 * 4 +                          // out
                         128 * 4 + 128 * 2 +                // norm2
                         512 * 4 + 512 * 2 +                // inner
                         128 * 4 + 128 * 2;                 // outer
  const uint64_t hidden = 128 * 4 + 128 * 2;
  // Keys in 9 bits, tokens, weights, total.
  const uint64_t cache = 2000 * 128 * 9 / 8 + 2000 * 4 + 2000 * 4 + 4;
  const uint64_t normaliser = 3 * 4 + 2 * 4;   // and two values of the only tile
  const uint64_t head = 102 * 4 + normaliser;  // with its logits
  const uint64_t tails = 64 * 4 + 200 * 4 + normaliser + 32 * 4 + 300 * 4 + normaliser;
  return 6 * (state_of_layer + layer) + hidden + cache + head + tails;
}

std::vector<NodeTraffic> FullTraffic(const Model& model, const TokenPath& path) {
  std::vector<NodeTraffic> traffic = Traffic(model, path);
  traffic.push_back(QueryTraffic(model.plan(), model.layout(), model.backend().real_bytes,
                                 model.kernels(), path, QueryTokens::kEvery));
  return traffic;
}

TEST(Traffic, ANodesOwnBytesAreThoseItReadsAndThoseItWrites) {
  const auto model = Open(DemoShapes(), "ref");
  const Plan& plan = model->plan();
  const TokenPath path{50, 0, kEvery};
  const std::vector<NodeTraffic> traffic = Traffic(*model, path);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    uint64_t bytes = 0;
    for (const FrameRange& range : traffic[i].read) bytes += range.bytes;
    for (const FrameRange& range : traffic[i].written) bytes += range.bytes;
    EXPECT_EQ(OwnBytes(plan, model->layout(), 4, i, path), bytes) << plan.nodes[i].name;
  }
  const auto* add = std::get_if<Add>(&plan.nodes[0].op);
  for (size_t i = 0; add == nullptr; ++i) add = std::get_if<Add>(&plan.nodes[i].op);
  const auto at = static_cast<size_t>(
      std::find_if(plan.nodes.begin(), plan.nodes.end(),
                   [&](const Node& node) { return std::get_if<Add>(&node.op) == add; }) -
      plan.nodes.begin());
  // y += x, of 128 elements: two are read, one written.
  const uint64_t x_bytes = plan.buffer(add->x).element == Element::kReal ? 4 : 2;
  EXPECT_EQ(OwnBytes(plan, model->layout(), 4, at, path), 128 * (x_bytes + 8));
}

TEST(TrafficOf, AFullTokenOfTheReferenceTouchesTheBytesOfTheShapes) {
  const auto model = Open(DemoShapes(), "ref");
  // The reference reads the embedding row of a bin without projection as floats, in addition to the
  // codes that the head reads.
  const WeightBytes weights{1, 16};
  const uint64_t expected = weights.FullToken() + 128 * 4 + StreamBytes();
  EXPECT_EQ(Distinct(*model, FullTraffic(*model, {2000, 0, kEvery})), expected);
  // A row of the second bin is among the codes of its tail, but its projection is read in addition.
  EXPECT_EQ(Distinct(*model, FullTraffic(*model, {2000, 1, kEvery})),
            expected - 128 * 4 + weights.Matrix(128, 64));
}

TEST(TrafficOf, AFullTokenOfTheVectorKernelsTouchesTheBytesOfTheShapes) {
#ifdef KINGLET_HAVE_CPU_BACKEND
  if (cpu::SupportedTargets().front() == cpu::Target::kScalar) {
    GTEST_SKIP() << "this machine has no vector target";
  }
  const auto model = Open(DemoShapes(), "cpu");
  const WeightBytes weights{16, 9};
  const uint64_t expected = weights.FullToken() + StreamBytes();
  EXPECT_EQ(Distinct(*model, FullTraffic(*model, {2000, 0, kEvery})), expected);
  EXPECT_EQ(Distinct(*model, FullTraffic(*model, {2000, 2, kEvery})),
            expected + weights.Matrix(128, 32));
#else
  GTEST_SKIP() << "this build has no vector kernels";
#endif
}

TEST(TrafficOf, LanesShareTheWeightsAndNothingElse) {
  const auto model = Open(DemoShapes(), "ref");
  const auto traffic = FullTraffic(*model, {2000, 0, kEvery});
  EXPECT_EQ(Distinct(*model, traffic, 3), Distinct(*model, traffic) + 2 * StreamBytes());
}

// Layers of 8 and 9 units with 6 inputs, worked out by hand: both products and the kept cell are
// read, the cell and the output written.
TEST(TrafficOf, RecurrentNodesReadBothProductsAndTheCell) {
  using Cell = RecurrentCell;
  const auto bytes = [](const std::vector<Cell>& cells, const std::string& node, bool read) {
    const auto model =
        *Model::FromBytes(*SerialiseModel(TinyRecurrent({.cells = cells})), {.backend = "ref"});
    const auto traffic = Traffic(*model, {5, 0, kEvery});
    const NodeTraffic& found = Find(*model, traffic, node);
    uint64_t total = 0;
    for (const FrameRange& range : read ? found.read : found.written) total += range.bytes;
    return total;
  };
  EXPECT_EQ(bytes({Cell::kLstm, Cell::kGru}, "layers.0.gates", true), 4u * (32 + 32 + 8));
  EXPECT_EQ(bytes({Cell::kLstm, Cell::kGru}, "layers.0.gates", false), 4u * (8 + 8));
  EXPECT_EQ(bytes({Cell::kLstm, Cell::kGru}, "layers.1.gates", true), 4u * (27 + 27 + 9));
  EXPECT_EQ(bytes({Cell::kLstm, Cell::kGru}, "layers.1.gates", false), 4u * 9);
  EXPECT_EQ(bytes({Cell::kTanh, Cell::kRelu}, "layers.1.gates", true), 4u * (9 + 9));
  EXPECT_EQ(bytes({Cell::kQrnn, Cell::kQrnn}, "layers.0.gates", true), 4u * (24 + 24 + 8));
  EXPECT_EQ(bytes({Cell::kQrnn, Cell::kQrnn}, "layers.1.gates", true), 4u * (27 + 9));
  EXPECT_EQ(bytes({Cell::kQrnn, Cell::kQrnn}, "layers.1.gates", false), 4u * (9 + 9));
}

TEST(TrafficOf, OnlyTheFilledPartOfWindowAndCacheIsRead) {
  TinyOptions options;  // float32, width 8, 2 heads, keys of 3, values of 5, window 6
  options.cache_capacity = 4;
  const auto model = Open(options, "ref");
  const auto bytes = [&](const TokenPath& path, const std::string& node, bool read) {
    const auto traffic = Traffic(*model, path);
    const NodeTraffic& found = Find(*model, traffic, node);
    uint64_t total = 0;
    for (const FrameRange& range : read ? found.read : found.written) total += range.bytes;
    return total;
  };
  // qkv has 2 * 11 elements; a slot 2 * 3 keys and 2 * 5 values. The output has 2 * 5 elements, the
  // softmax 2 * 6.
  EXPECT_EQ(bytes({0, 0, kEvery}, "layers.0.attention", true), 4u * (22 + 6 + 10));
  EXPECT_EQ(bytes({2, 0, kEvery}, "layers.0.attention", true), 4u * (22 + 3 * 16));
  EXPECT_EQ(bytes({99, 0, kEvery}, "layers.0.attention", true), 4u * (22 + 6 * 16));
  EXPECT_EQ(bytes({99, 0, kEvery}, "layers.0.attention", false), 4u * (16 + 12 + 10));
  EXPECT_EQ(bytes({0, 0, kEvery}, "cache.append", false), 0u);
  EXPECT_EQ(bytes({1, 0, kEvery}, "cache.append", false), 4u * (8 + 1));
  EXPECT_EQ(bytes({0, 0, kEvery}, "cache.weights", true), 4u * 8);
  EXPECT_EQ(bytes({3, 0, kEvery}, "cache.weights", true), 4u * (8 + 3 * 8));
  EXPECT_EQ(bytes({50, 0, kEvery}, "cache.weights", true), 4u * (8 + 4 * 8));
  EXPECT_EQ(bytes({50, 0, kEvery}, "cache.weights", false), 4u * (4 + 1));

  // In models trained with zeros before the stream's start, these zeros count.
  options.quantised = true;
  const auto zeros = Open(options, "ref");
  const auto traffic = Traffic(*zeros, {0, 0, kEvery});
  EXPECT_EQ(Find(*zeros, traffic, "layers.0.attention").read[1].bytes, 2u * 6 * 6);
}

TEST(TrafficOf, AClusterThatStaysClosedTouchesNothing) {
  const auto model = Open({}, "ref");
  const auto traffic = Traffic(*model, {6, 0, {0, 2}});
  for (const std::string name : {"softmax.tail.1", "softmax.tail.1.projection"}) {
    const NodeTraffic& node = Find(*model, traffic, name);
    EXPECT_TRUE(node.weights.empty() && node.read.empty() && node.written.empty()) << name;
  }
  EXPECT_FALSE(Find(*model, traffic, "softmax.tail.2").weights.empty());
  const auto query = [&](QueryTokens tokens) {
    const TokenPath path = {6, 0, {0, 2}};
    uint64_t bytes = 0;
    for (const FrameRange& range :
         QueryTraffic(model->plan(), model->layout(), sizeof(float), model->kernels(), path, tokens)
             .read) {
      bytes += range.bytes;
    }
    return bytes;
  };
  uint64_t logits = 0;
  for (const size_t index : {0, 2}) {
    logits += model->plan().buffer(model->plan().clusters[index].logits).count;
  }
  EXPECT_EQ(query(QueryTokens::kNamed), 2 * 3 * sizeof(float));         // normalisers
  EXPECT_EQ(query(QueryTokens::kLikely), (2 * 3 + 2) * sizeof(float));  // and a tile of each
  EXPECT_EQ(query(QueryTokens::kEvery), (2 * 3 + logits) * sizeof(float));
}

TEST(Merged, JoinsWhatTouchesAndDropsWhatIsEmpty) {
  const std::array<std::byte, 100> memory{};
  const auto range = [&](size_t first, size_t end) {
    return MemoryRange(memory).subspan(first, end - first);
  };
  const auto merged = Merged({range(50, 60), range(10, 20), range(20, 25), range(30, 30),
                              range(12, 14), range(55, 80), range(90, 91), range(10, 20)});
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[0].data(), memory.data() + 10);
  EXPECT_EQ(merged[0].size(), 15u);
  EXPECT_EQ(merged[1].data(), memory.data() + 50);
  EXPECT_EQ(merged[1].size(), 30u);
  EXPECT_EQ(merged[2].size(), 1u);
  EXPECT_EQ(TotalBytes(merged), 46u);
  EXPECT_TRUE(Merged({}).empty());
}

// Streams of a session share the memory of queries (runtime/queries/query_frames.h), so queries
// must not read scratch that a token has written.
TEST(QueryMemory, OnlyQueriesTouchItAndTheyTouchNothingElseButState) {
  TinyOptions quantised;
  quantised.quantised = true;
  TinyRecurrentOptions whole;
  whole.tails = 0;
  TinyRecurrentOptions coded;
  coded.head_coding = TinyCoding{3, {4, 1, 6}};
  for (const ModelDraft& draft :
       {TinyMicronet({}), TinyMicronet(quantised), TinyRecurrent({}), TinyRecurrent(whole),
        TinyRecurrent(coded), TinyTransformer({}), TinyTranslation({})}) {
    const auto model = *Model::FromBytes(*SerialiseModel(draft), {.backend = "ref"});
    const Plan& plan = model->plan();
    std::vector<bool> asks(plan.nodes.size());
    TokenPath path = {6, 0, ClusterSet::First(plan.clusters.size())};
    if (plan.encoder) path.source_length = 2;
    const auto mark = [&](const NodeRange& range) {
      for (size_t i = range.begin; i < range.end; ++i) asks[i] = true;
    };
    for (const ClusterPlan& cluster : plan.clusters) mark(cluster.nodes);
    if (plan.cache) mark(plan.cache->nodes);
    const std::vector<NodeTraffic> traffic = Traffic(*model, path);
    for (size_t i = 0; i < traffic.size(); ++i) {
      for (const std::vector<FrameRange>* ranges : {&traffic[i].read, &traffic[i].written}) {
        for (const FrameRange& range : *ranges) {
          EXPECT_TRUE(range.of_queries ? asks[i] : range.state || !asks[i]) << plan.nodes[i].name;
          if (!range.state && range.bytes > 0) {
            EXPECT_EQ(range.of_queries, range.offset >= model->layout().token_scratch_bytes);
          }
        }
      }
    }
  }
}

// Logits that a kernel can make again are written only where every token is looked at.
// A query of few tokens does not store them; that of all tokens of one stream stores them in its
// answer, unless they might not be finite.
TEST(TrafficOf, LogitsOfALargeClusterAreNotInTheStream) {
#ifndef KINGLET_HAVE_CPU_BACKEND
  GTEST_SKIP() << "the build has no vector kernels";
#else
  TinyOptions options;
  options.bits = 9;
  options.bins = 1;
  options.vocabulary_size = 65700;
  options.quantised = true;
  const auto model = Open(options, "cpu");
  const TokenPath path{0, 0, ClusterSet{0}};
  std::vector<Kernel> kernels(model->kernels().begin(), model->kernels().end());
  const auto bytes = [&](QueryTokens tokens) {
    auto traffic = TrafficOf(model->plan(), model->layout(), sizeof(float), kernels, path, tokens);
    traffic.push_back(
        QueryTraffic(model->plan(), model->layout(), sizeof(float), kernels, path, tokens));
    return Distinct(*model, traffic);
  };
  const uint64_t of_all = bytes(QueryTokens::kAnswer);
  EXPECT_EQ(of_all, bytes(QueryTokens::kNamed));
  EXPECT_EQ(of_all, bytes(QueryTokens::kLikely));
  EXPECT_EQ(bytes(QueryTokens::kEvery), of_all + 65700 * sizeof(float));
  EXPECT_EQ(ClusterMadeInAnswer(model->plan(), kernels), 0u);
  for (Kernel& kernel : kernels) kernel.logits.are_finite = {};
  EXPECT_EQ(ClusterMadeInAnswer(model->plan(), kernels), std::nullopt);
  EXPECT_EQ(bytes(QueryTokens::kAnswer), of_all + 65700 * sizeof(float));
  EXPECT_EQ(bytes(QueryTokens::kNamed), of_all);
#endif
}

}  // namespace
}  // namespace kinglet::traffic_test
