#include "runtime/accounting/meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/runtime/lower/lowering.h"
#include "tests/support/recurrent_builder.h"
#include "tests/support/softmax_builder.h"
#include "tests/support/transformer_builder.h"
#include "tests/synthesis/synthetic_plan.h"

namespace kinglet::meter_test {
namespace {

const BackendTraits kReference = {};

OperationTally Find(const ExecutedCount& count, const std::string& name) {
  for (const Component& component : count.components) {
    if (component.name == name) return component.operations;
  }
  ADD_FAILURE() << "no component " << name;
  return {};
}

void ExpectTally(const OperationTally& found, const OperationTally& expected) {
  EXPECT_EQ(found.multiplications, expected.multiplications);
  EXPECT_EQ(found.additions, expected.additions);
  EXPECT_EQ(found.others, expected.others);
}

// The head and two tails.
const ClusterSet kEvery = {0, 1, 2};

const std::vector<uint32_t> kIds = {3, 1, 22, 1, 5, 9, 2, 6, 15, 3, 5, 8};

TEST(Meter, NonzerosAreThoseOfTheDraft) {
  for (const int bits : {0, 9}) {
    TinyOptions options;
    options.bits = bits;
    options.pruned = true;
    const ModelDraft draft = TinyMicronet(options);
    const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
    const std::vector<uint64_t> counts = CountNonzeros(file->tensors());
    ASSERT_EQ(counts.size(), draft.tensors.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      EXPECT_EQ(counts[i], CountNonzeros(draft.tensors[i])) << draft.tensors[i].name;
    }
  }
}

TEST(Meter, BinsOfIds) {
  const auto file = TinyFile({});
  const Plan plan = *Lower(*file);
  const EmbedRow& embedding = EmbeddingOf(plan);
  ASSERT_EQ(embedding.bins.size(), 3u);
  const std::vector<uint32_t> ids = {0, embedding.bins[1].first - 1, embedding.bins[1].first,
                                     embedding.bins[2].first, 22};
  EXPECT_EQ(BinCounts(plan, ids), (std::vector<uint64_t>{2, 1, 2}));
  EXPECT_EQ(BinCounts(plan, {}), (std::vector<uint64_t>{0, 0, 0}));
}

// The paths have the clusters that a session really computes.
TEST(Meter, TheFullDistributionOpensEveryCluster) {
  TinyOptions options;
  options.cache_capacity = 5;
  const auto bytes = *SerialiseModel(TinyMicronet(options));
  const auto model = *Model::FromBytes(bytes, {.backend = "ref"});
  const auto session = *Session::Create(model);
  std::vector<float> all(model->vocabulary_size());
  const Trace trace = FullTrace(model->plan(), std::span(kIds).first(1));
  ASSERT_EQ(trace.paths.size(), 1u);
  ASSERT_TRUE(session->StepToken(kIds[0]).ok());
  ASSERT_TRUE(session->LogProbabilities(std::span<float>(all)).ok());
  EXPECT_EQ(session->clusters_opened(), trace.paths.begin()->first.clusters);
}

// Only computed clusters count, those beyond the 64th too.
TEST(Meter, OneTokenOfManyClasses) {
  const std::vector<uint32_t> sizes(200, 3);
  const auto bytes = *SerialiseModel(TinyMicronetWith({.head_size = 0, .tails = sizes}));
  const auto model = *Model::FromBytes(bytes, {.backend = "ref"});
  const auto session = *Session::Create(model);
  ASSERT_TRUE(session->StepToken(0).ok());
  ASSERT_TRUE(session->LogProbability(450).ok());  // of class 150, cluster 151
  const QueryWork& work = session->last_work();
  EXPECT_EQ(work.clusters.Count(), 2u);
  EXPECT_TRUE(work.clusters.Contains(151));
  // 200 cluster rows of 8 with biases and their normaliser, 3 tokens without one and with theirs.
  OperationTally expected = {200 * 8, 200 * 8 + 199, 400};
  expected += OperationTally{3 * 8, 3 * 7 + 2, 6};
  expected += work.arithmetic;
  ExpectTally(QueryOperations(model->plan(), kReference, 0, work), expected);
  Trace trace;
  ++trace.paths[PathOf(model->plan(), 0, 0, work.clusters)];
  const auto count =
      CountExecuted(model->plan(), CountNonzeros(model->plan().weights), kReference, trace);
  ExpectTally(Find(count, "softmax.tail.150"), {});
  ExpectTally(Find(count, "softmax.tail.151"), {24, 21, 0});
}

TEST(Meter, ClassLogitsAreAdditions) {
  const auto file = *ModelFile::FromBytes(
      *SerialiseModel(TinyMicronetWith({.tails = {7, 9}, .normalisation = Normalisation::kWhole})));
  const Plan plan = *Lower(*file);
  const auto count =
      CountExecuted(plan, CountNonzeros(plan.weights), kReference, FullTrace(plan, kIds));
  ExpectTally(Find(count, "softmax.tail.1.cluster"), {0, 7, 0});
  ExpectTally(Find(count, "softmax.tail.2.cluster"), {0, 9, 0});
  ExpectTally(Find(count, "softmax.head.normaliser"), {0, 20, 2 * 21});
}

TEST(Meter, PathsOfAText) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  uint64_t tokens = 0;
  for (const auto& [path, count] : FullTrace(plan, kIds).paths) {
    EXPECT_LE(path.position, 6u);  // from here on the window of 6 and the cache are full
    EXPECT_EQ(path.clusters, kEvery);
    tokens += count;
  }
  EXPECT_EQ(tokens, kIds.size());
  EXPECT_TRUE(FullTrace(plan, {}).paths.empty());
  const Trace steady = SteadyFullTrace(plan, std::vector<uint64_t>{5, 0, 2});
  EXPECT_EQ(steady.paths,
            (std::map<TokenPath, uint64_t>{{{6, 0, kEvery}, 5}, {{6, 2, kEvery}, 2}}));
  EXPECT_EQ(steady.tokens(), 7u);
  EXPECT_EQ(PathOf(plan, 100, kIds[0], ClusterSet::First(2)).position, 6u);
  EXPECT_EQ(PathOf(plan, 2, 0, ClusterSet::First(2)), (TokenPath{2, 0, ClusterSet::First(2)}));
}

// Compares the work that sessions report with the formula for the full distribution and with the
// plan.
TEST(Meter, SessionsCountWhatTheyDo) {
  for (const uint32_t capacity : {0u, 4u}) {
    TinyOptions options;
    options.cache_capacity = capacity;
    const auto model =
        *Model::FromBytes(*SerialiseModel(TinyMicronet(options)), {.backend = "ref"});
    const Plan& plan = model->plan();
    const auto full = *Session::Create(model), lazy = *Session::Create(model);
    std::vector<float> all(model->vocabulary_size());
    for (size_t t = 0; t < kIds.size(); ++t) {
      ASSERT_TRUE(full->StepToken(kIds[t]).ok());
      ASSERT_TRUE(lazy->StepToken(kIds[t]).ok());
      ASSERT_TRUE(full->LogProbabilities(std::span<float>(all)).ok());
      // The tokens of the cache: those of the last `capacity` tokens but the first.
      const size_t stored = std::min<size_t>(t, capacity);
      const std::set<uint32_t> cached(kIds.begin() + static_cast<ptrdiff_t>(t - stored + 1),
                                      kIds.begin() + static_cast<ptrdiff_t>(t + 1));
      const Trace trace = FullTrace(plan, std::span(kIds).subspan(0, t + 1));
      const Trace before = FullTrace(plan, std::span(kIds).subspan(0, t));
      OperationTally expected = trace.distribution;
      expected += before.distribution * -1;
      expected += OperationTally{2, 4, 4} * static_cast<double>(cached.size());
      ExpectTally(full->last_work().arithmetic, expected);

      // The nodes of all clusters and the cache, and that arithmetic: a token without its context
      // nodes.
      const OperationTally query = QueryOperations(plan, kReference, t, full->last_work());
      Trace one;
      ++one.paths[PathOf(plan, t, kIds[t], kEvery)];
      const ExecutedCount token = CountExecuted(plan, CountNonzeros(plan.weights), kReference, one);
      OperationTally nodes;
      for (const Component& component : token.components) {
        if (component.name.starts_with("softmax.") || component.name.starts_with("cache.")) {
          nodes += component.operations;
        }
      }
      nodes += full->last_work().arithmetic;
      ExpectTally(query, nodes);

      // One token of the last tail: log p of its cluster, of itself, and the cache's pairs.
      const uint32_t last = model->vocabulary_size() - 1;
      ASSERT_TRUE(lazy->LogProbability(last).ok());
      EXPECT_EQ(lazy->last_work().clusters, (ClusterSet{0, 2}));
      const double pairs = static_cast<double>(stored);
      const OperationTally mixed =
          cached.contains(last) ? OperationTally{2, 2 + 4, 4} : OperationTally{0, 2 + 3, 1};
      OperationTally one_token = {0, pairs, pairs};
      one_token += mixed;
      if (capacity > 0 && !cached.contains(last)) one_token += {0, 1, 0};
      ExpectTally(lazy->last_work().arithmetic, one_token);
    }
  }
}

// Expected values: the formulas of docs/ACCOUNTING.md, worked out by hand for the tiny model
// (width 8, 2 heads, keys of 3, values of 5, inner 12, window 6).
TEST(Meter, FloatComponentsWithAFullWindow) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const ExecutedCount count = CountExecuted(plan, nonzeros, kReference,
                                            SteadyFullTrace(plan, std::vector<uint64_t>{1, 1, 0}));
  ExpectTally(Find(count, "layers.0.norm1"), {16, 39, 11});
  ExpectTally(Find(count, "layers.0.qkv"), {22 * 8, 22 * 7 + 22, 0});
  ExpectTally(Find(count, "layers.0.attention.query_keys"), {36, 24, 0});
  ExpectTally(Find(count, "layers.0.attention.query_positions"), {36, 24 + 12, 0});
  ExpectTally(Find(count, "layers.0.attention.scale"), {12, 0, 0});
  ExpectTally(Find(count, "layers.0.attention.softmax"), {0, 2 * 11, 2 * 17});
  ExpectTally(Find(count, "layers.0.attention.values"), {60, 50, 0});
  ExpectTally(Find(count, "layers.0.out"), {80, 72, 0});
  ExpectTally(Find(count, "layers.0.fc0.relu"), {0, 0, 12});
  ExpectTally(Find(count, "layers.1.residual2"), {0, 8, 0});
  // Half of the tokens are in bin 1, whose rows have 4 columns, none in bin 2.
  ExpectTally(Find(count, "embed.projection.1"), {16, 12, 0});
  ExpectTally(Find(count, "embed.projection.2"), {0, 0, 0});
  ExpectTally(Find(count, "cache.weights"), {32, 28, 0});
  ExpectTally(Find(count, "cache.weights.rescale"), {4, 0, 0});
  ExpectTally(Find(count, "cache.weights.softmax"), {0, 7, 7});
  // 23 tokens, 4 additions each with a cache; 2 tails; 4 pairs.
  ExpectTally(Find(count, "distribution"), {0, 23 * 4 + 4 + 4, 23 + 4});
  OperationTally sum;
  for (const Component& component : count.components) sum += component.operations;
  ExpectTally(count.operations, sum);
}

// Expected values: the formula of docs/ACCOUNTING.md for V = 5 visible tokens, 3 heads, keys of 4.
TEST(Meter, RelativePositionsCountEachDistanceThatDiffers) {
  const auto positions = [](std::optional<uint32_t> clamp) {
    const ModelDraft draft = TinyTransformer({.clamp = clamp});
    const auto file = *ModelFile::FromBytes(*SerialiseModel(draft));
    const Plan plan = *Lower(*file);
    const Trace full = SteadyFullTrace(plan, std::vector<uint64_t>{1});
    return Find(CountExecuted(plan, CountNonzeros(plan.weights), kReference, full),
                "layers.0.attention.query_positions");
  };
  ExpectTally(positions(std::nullopt), {5 * 12, 5 * 9 + (5 + 5) * 3, 0});
  ExpectTally(positions(2), {3 * 12, 3 * 9 + (3 + 5) * 3, 0});
}

// Expected values: the operations of kernels/op.h counted by hand for layers of 8 and 9 units with
// 6 inputs.
TEST(Meter, RecurrentComponents) {
  using Cell = RecurrentCell;
  const auto count = [](const std::vector<Cell>& cells) {
    const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyRecurrent({.cells = cells})));
    const Plan plan = *Lower(*file);
    return CountExecuted(plan, CountNonzeros(plan.weights), kReference,
                         SteadyFullTrace(plan, std::vector<uint64_t>{1}));
  };
  const ExecutedCount lstm = count({Cell::kLstm, Cell::kGru});
  ExpectTally(Find(lstm, "layers.0.input"), {32 * 6, 32 * 5 + 32, 0});
  ExpectTally(Find(lstm, "layers.0.recurrent"), {32 * 8, 32 * 7 + 32, 0});
  ExpectTally(Find(lstm, "layers.0.gates"), {3 * 8, 5 * 8, 5 * 8});
  ExpectTally(Find(lstm, "layers.1.gates"), {3 * 9, 5 * 9, 3 * 9});
  const ExecutedCount qrnn = count({Cell::kQrnn, Cell::kQrnn});
  ExpectTally(Find(qrnn, "layers.0.recurrent"), {24 * 6, 24 * 5, 0});
  ExpectTally(Find(qrnn, "layers.0.gates"), {3 * 8, 5 * 8, 3 * 8});
  ExpectTally(Find(qrnn, "layers.1.gates"), {3 * 9, 2 * 9, 3 * 9});
  ExpectTally(Find(count({Cell::kTanh, Cell::kRelu}), "layers.1.gates"), {0, 9, 9});
}

TEST(Meter, ACachePastItsCapacityCostsNothingBefore) {
  const auto file = *ModelFile::FromBytes(*SerialiseModel(TinyRecurrent({.cache_capacity = 4})));
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const ExecutedCount full =
      CountExecuted(plan, nonzeros, kReference, FullTrace(plan, std::span(kIds).first(5)));
  ExpectTally(Find(full, "cache.weights"), {0, 0, 0});
  const ExecutedCount steady =
      CountExecuted(plan, nonzeros, kReference, SteadyFullTrace(plan, std::vector<uint64_t>{1}));
  ExpectTally(Find(steady, "cache.weights"), {4 * 9, 4 * 8, 0});
}

TEST(Meter, TheFirstTokenSeesItselfOnly) {
  TinyOptions options;
  options.cache_capacity = 4;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const Trace first = FullTrace(plan, std::vector<uint32_t>{0});
  const ExecutedCount reference = CountExecuted(plan, nonzeros, kReference, first);
  ExpectTally(Find(reference, "layers.0.attention.query_keys"), {6, 4, 0});
  ExpectTally(Find(reference, "layers.0.attention.softmax"), {0, 2, 4});
  ExpectTally(Find(reference, "cache.weights"), {0, 0, 0});
  ExpectTally(Find(reference, "cache.weights.softmax"), {0, 0, 0});
  BackendTraits cpu;
  cpu.scores_masked_slots = true;
  const ExecutedCount masked = CountExecuted(plan, nonzeros, cpu, first);
  ExpectTally(Find(masked, "layers.0.attention.query_keys"), {36, 24, 0});
  ExpectTally(Find(masked, "layers.0.attention.softmax"), {0, 2, 4});
}

TEST(Meter, TheMeanOverTokens) {
  TinyOptions options;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  // 1, 2, ..., 6 slots and then 6 more tokens with a full window.
  const ExecutedCount count = CountExecuted(plan, nonzeros, kReference, FullTrace(plan, kIds));
  EXPECT_DOUBLE_EQ(Find(count, "layers.1.attention.query_keys").multiplications,
                   6.0 * (1 + 2 + 3 + 4 + 5 + 7 * 6) / 12);
}

TEST(Meter, AClusterThatStaysClosedCostsNothing) {
  const auto file = TinyFile({});
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const ExecutedCount all = CountExecuted(plan, nonzeros, kReference, {{{{6, 0, kEvery}, 1}}, {}});
  const ExecutedCount head = CountExecuted(plan, nonzeros, kReference, {{{{6, 0, {0}}, 1}}, {}});
  ASSERT_EQ(all.components.size(), head.components.size());
  EXPECT_GT(Find(all, "softmax.tail.2").multiplications, 0);
  ExpectTally(Find(head, "softmax.tail.2"), {});
  ExpectTally(Find(head, "softmax.tail.1.normaliser"), {});
  ExpectTally(Find(head, "softmax.head"), Find(all, "softmax.head"));
}

TEST(Meter, QuantisedNodesRescaleAndRound) {
  TinyOptions options;
  options.quantised = true;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const Trace steady = SteadyFullTrace(plan, std::vector<uint64_t>{0, 1, 0});
  const ExecutedCount count = CountExecuted(plan, nonzeros, kReference, steady);
  ExpectTally(Find(count, "layers.0.norm1.quantise"), {0, 0, 32});
  ExpectTally(Find(count, "layers.0.qkv.rescale"), {44, 0, 0});
  ExpectTally(Find(count, "layers.0.residual2.dequantise"), {8, 0, 0});
  ExpectTally(Find(count, "layers.0.attention.quantise_weights"), {0, 0, 48});
  ExpectTally(Find(count, "layers.0.attention.rescale"), {2 * (12 + 10), 0, 0});
  ExpectTally(Find(count, "embed.rescale"), {16, 0, 0});
  ExpectTally(Find(count, "softmax.tail.1.fixed_point"), {0, 0, 4 + 1 + 16});
  // ref64 does not round the projected hidden state.
  const ExecutedCount real64 =
      CountExecuted(plan, nonzeros, TraitsOf(**FindBackend("ref64")), steady);
  for (const Component& component : real64.components) {
    EXPECT_EQ(component.name.find("fixed_point"), std::string::npos);
  }
}

TEST(Meter, IntegerWeightsWithRealInputsAreDecodedWhereTheyAreUsed) {
  TinyOptions options;
  options.bits = 9;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  const auto nonzeros = CountNonzeros(plan.weights);
  const Trace steady = SteadyFullTrace(plan, std::vector<uint64_t>{1, 0, 0});
  const ExecutedCount cpu = CountExecuted(plan, nonzeros, TraitsOf(**FindBackend("cpu")), steady);
  ExpectTally(Find(cpu, "layers.0.qkv.decode"), {22 * 8, 0, 0});
  const ExecutedCount ref = CountExecuted(plan, nonzeros, TraitsOf(**FindBackend("ref")), steady);
  for (const Component& component : ref.components) {
    EXPECT_EQ(component.name.find("decode"), std::string::npos) << component.name;
  }
}

// Dense planes multiply zeros too: the products stay the same, the useful ones are one fewer.
TEST(Meter, OneWeightLess) {
  SyntheticConfig config;
  config.bits = 9;
  SyntheticPlan model(config);
  const Trace steady = SteadyFullTrace(model.plan(), std::vector<uint64_t>{198232, 35479, 11858});
  const ExecutedCount before = CountExecuted(model.plan(), model.nonzeros, kReference, steady);
  --model.nonzeros.at(model.Find("layers.3.qkv.weight"));
  const ExecutedCount after = CountExecuted(model.plan(), model.nonzeros, kReference, steady);
  ExpectTally(after.operations, before.operations);
  EXPECT_NEAR(before.useful_multiplications - after.useful_multiplications, 1, 1e-6);
}

// The published network: what the notebook omits is counted (7 of 8 heads' query-position products
// in 8 layers).
TEST(Meter, EveryHeadMultipliesThePositions) {
  const SyntheticPlan model{SyntheticConfig()};
  const ExecutedCount count =
      CountExecuted(model.plan(), model.nonzeros, kReference,
                    SteadyFullTrace(model.plan(), std::vector<uint64_t>{198232, 35479, 11858}));
  double products = 0;
  for (int i = 0; i < 8; ++i) {
    products +=
        Find(count, "layers." + std::to_string(i) + ".attention.query_positions").multiplications;
  }
  EXPECT_EQ(products - 8 * 2328, 130368);
}

TEST(Meter, NodesHaveTheOperationsOfTheirParts) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 4;
  const auto file = TinyFile(options);
  const Plan plan = *Lower(*file);
  // One of four tokens computes no tail.
  const Trace paths = {{{{6, 1, kEvery}, 3}, {{6, 1, {0}}, 1}}, {}};
  const ExecutedCount count = CountExecuted(plan, CountNonzeros(plan.weights), kReference, paths);
  const std::vector<OperationTally> nodes = CountNodes(plan, kReference, paths);
  ASSERT_EQ(nodes.size(), plan.nodes.size());
  const auto node = [&](const std::string& name) {
    size_t i = 0;
    while (plan.nodes.at(i).name != name) ++i;
    return nodes[i];
  };
  // Products and rescaling; query x keys, x positions, scale, rescaling, dequantised query, values.
  EXPECT_EQ(node("layers.0.qkv").multiplications, 22 * 8 + 44);
  EXPECT_EQ(node("layers.0.attention").multiplications, 36 + 36 + 12 + 44 + 6 + 60);
  // 7 tokens with rows of 4, three times in four.
  EXPECT_EQ(node("softmax.tail.1").multiplications, (28 + 14) * 0.75);
  EXPECT_EQ(node("softmax.head").multiplications, 3 * 8 + 6);
  OperationTally sum = Find(count, "distribution");
  for (const OperationTally& tally : nodes) sum += tally;
  ExpectTally(sum, count.operations);
}

// Slim Embedding's output layer (Li et al. 2018, section 3.2): M H / K products, whatever the
// number of tokens, then K - 1 sums for each of them and its bias.
TEST(Meter, CodedOutputsMultiplyEachSubVectorOnce) {
  CodedSynthesisSpec spec;
  spec.vocabulary_size = 30;
  spec.width = 12;
  spec.input = {4, {7}};
  spec.units = {8};
  spec.output = {4, {5, 4, 4, 4}};
  spec.output_bias = true;
  SyntheticPlan model(spec);
  const auto count = [&model] {
    return CountExecuted(model.plan(), model.nonzeros, kReference,
                         SteadyFullTrace(model.plan(), std::vector<uint64_t>{1}));
  };
  const ExecutedCount all = count();
  ExpectTally(Find(all, "softmax.head.partial"), {17 * 8 / 4, 17 * (2 - 1), 0});
  ExpectTally(Find(all, "softmax.head"), {0, 30 * (4 - 1) + 30, 0});
  for (const Component& component : all.components) EXPECT_NE(component.name, "embed.combine.0");

  --model.nonzeros.at(model.Find("softmax.table.codebook"));
  const ExecutedCount less = count();
  EXPECT_EQ(all.operations.Total(), less.operations.Total());
  EXPECT_NEAR(all.useful_multiplications - less.useful_multiplications, 1, 1e-9);
  --model.nonzeros.at(model.Find("embed.table.codebook"));
  EXPECT_EQ(count().useful_multiplications, less.useful_multiplications);

  spec.output->pools = {17};  // every position multiplies its part of h with the complete pool
  ExpectTally(
      Find(CountExecuted(SyntheticPlan(spec).plan(), {}, kReference,
                         SteadyFullTrace(SyntheticPlan(spec).plan(), std::vector<uint64_t>{1})),
           "softmax.head.partial"),
      {17 * 8, 4 * 17 * (2 - 1), 0});

  // 30 tokens of 4 positions need 120 products of two entries, fewer than the pool's 4 x 31.
  spec.output->pools = {31};
  const SyntheticPlan by_row(spec);
  const ExecutedCount rows = CountExecuted(
      by_row.plan(), {}, kReference, SteadyFullTrace(by_row.plan(), std::vector<uint64_t>{1}));
  ExpectTally(Find(rows, "softmax.head"), {120 * 2, 120 * (2 - 1), 0});
  ExpectTally(Find(rows, "softmax.head.sums"), {0, 30 * (4 - 1) + 30, 0});
}

}  // namespace
}  // namespace kinglet::meter_test
