// Models that keep a DeFINE unit, seen from outside: their vectors equal the converter's evaluation
// of the same unit in double precision, their streams equal each other, and their counts equal sums
// that are written out here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "converters/passes/define/define_table.h"
#include "format/encoding.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "runtime/accounting/traffic.h"
#include "runtime/embedder.h"
#include "tests/runtime/session_fixture.h"
#include "tests/support/define_builder.h"
#include "tests/support/define_units.h"

namespace kinglet::define_rows_test {
namespace {

const char* const kBackends[] = {"ref64", "ref", "cpu"};

// [words, width], by converters/passes/define.
std::vector<float> TableOf(const ModelDraft& draft) {
  const auto& embedding = *FindBlock<AdaptiveEmbedding>(draft.description);
  const auto values = [&](const std::optional<TensorId>& id) {
    return id ? DecodedValues(draft.tensors[*id]) : std::vector<float>();
  };
  DefineMap map;
  for (const EmbeddingBin& bin : embedding.bins) {
    map.push_back({bin.size, Cols(draft.tensors[bin.table].shape), bin.scale, values(bin.table),
                   values(bin.projection)});
  }
  std::vector<DefineWeights> weights;
  for (const DefineTensors& tensors : embedding.units[0].tensors) {
    weights.push_back({values(tensors.weight), values(tensors.bias), values(tensors.norm_gain),
                       values(tensors.norm_offset)});
  }
  const auto table = DefineTable(map, embedding.units[0].unit, weights, 1);
  EXPECT_TRUE(table.ok()) << table.status().message();
  return table.ok() ? *table : std::vector<float>();
}

std::vector<double> Vector(Embedder& embedder, uint32_t id) {
  std::vector<double> vector(embedder.width());
  EXPECT_TRUE(embedder.Vector(id, std::span(vector)).ok());
  return vector;
}

TEST(DefineRows, VectorsAreTheUnitsOutputScaled) {
  for (const NamedUnit& named : DefineUnits()) {
    for (const int bits : {0, 9}) {
      const ModelDraft draft =
          TinyDefine({.unit = named.unit, .cache_rows = 3, .decoder = false, .bits = bits});
      const std::vector<float> table = TableOf(draft);
      std::vector<std::vector<double>> of_ref;
      for (const std::string backend : kBackends) {
        const auto embedder = *Embedder::Create(Open(draft, backend));
        ASSERT_EQ(embedder->width(), OutputWidth(named.unit));
        // The text twice, with each word twice, so that rows come from the cache and are computed
        // again.
        for (uint32_t step = 0; step < 4 * 23; ++step) {
          const uint32_t word = step / 2 % 23;
          const std::vector<double> vector = Vector(*embedder, word);
          for (size_t i = 0; i < vector.size(); ++i) {
            const double expected = 1.5 * table[word * vector.size() + i];
            const double tolerance = backend == "ref64" ? 1e-6 : 2e-5;
            ASSERT_NEAR(vector[i], expected, tolerance * (1 + std::fabs(expected)))
                << named.name << " " << backend << " " << word;
          }
          if (backend == "ref") of_ref.push_back(vector);
          if (backend == "cpu") {
            ASSERT_EQ(vector, of_ref[step]) << named.name;
          }
        }
      }
    }
  }
}

TEST(DefineRows, StreamsDoNotDependOnTheCache) {
  const std::vector<uint32_t> ids = Tokens(60, 23);
  for (const std::string backend : kBackends) {
    std::vector<std::vector<double>> expected;
    for (const uint32_t rows : {1U, 2U, 9U, 23U, 1000U}) {
      const auto session = Start(Open(TinyDefine({.cache_rows = rows}), backend));
      for (size_t t = 0; t < ids.size(); ++t) {
        ASSERT_TRUE(session->StepToken(ids[t]).ok());
        if (rows == 1) expected.push_back(Full(*session));
        ASSERT_EQ(Full(*session), expected[t]) << backend << " " << rows << " " << t;
      }
    }
  }
}

TEST(DefineRows, StatesContainNoRows) {
  const auto small = Open(TinyDefine({.cache_rows = 1}), "cpu");
  const auto large = Open(TinyDefine({.cache_rows = 23}), "cpu");
  EXPECT_EQ(small->layout().state_bytes, large->layout().state_bytes);
  // Each lane has a cache of its own, which counts as its memory.
  const uint64_t width = FindBlock<AdaptiveEmbedding>(small->file().description())->width;
  EXPECT_GE(Session::BytesPerLane(*large),
            Session::BytesPerLane(*small) + 22 * (width * sizeof(float)));
}

TEST(DefineRows, AMemoryLimitCoversTheCache) {
  const auto bytes = *SerialiseModel(TinyDefine({.cache_rows = 1000, .vocabulary_size = 2000}));
  ModelOptions options;
  options.session_memory_limit = 20'000;
  const auto model = *Model::FromBytes(bytes, options);
  EXPECT_EQ(Session::Create(model).status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_EQ(Embedder::Create(model).status().code(), KINGLET_OUT_OF_MEMORY);
}

// A token that is cancelled at any of its nodes leaves the stream unchanged. The token's row may
// stay in the cache, which changes no result.
TEST(DefineRows, ACancelledTokenChangesNothing) {
  const auto model = Open(TinyDefine({.cache_rows = 2}), "cpu");
  const std::vector<uint32_t> ids = Tokens(12, 23);
  const auto plain = Start(model), cancelled = Start(model);
  for (const uint32_t id : ids) {
    for (size_t stop = 0; stop < model->plan().context.end; ++stop) {
      size_t nodes = 0;
      cancelled->set_observer([&](const Node&, std::span<const StreamFrame>) {
        if (nodes++ == stop) cancelled->Cancel();
      });
      const Status status = cancelled->StepToken((id + 7) % 23);
      cancelled->set_observer({});
      // After the last node nothing is left to cancel, and the flag stays set for the next call.
      if (status.ok()) {
        FAIL() << "node " << stop;
      }
      EXPECT_EQ(status.code(), KINGLET_CANCELLED);
      if (stop + 2 == model->plan().context.end) break;
    }
    ASSERT_TRUE(plain->StepToken(id).ok());
    ASSERT_TRUE(cancelled->StepToken(id).ok());
    ASSERT_EQ(Full(*cancelled), Full(*plain));
  }
}

TEST(DefineRows, ExecutedCountsARowWhereItIsMade) {
  // 12 features in, one layer of 4 groups to 20, ReLU.
  DefineUnit unit;
  unit.map_width = 12;
  unit.layers = {{.in = 12, .out = 20, .groups = 4, .activation = DefineLayer::Activation::kRelu}};
  const auto model = Open(TinyDefine({.unit = unit, .cache_rows = 23, .decoder = false}), "ref");
  const Plan& plan = model->plan();
  const auto count = [&](const std::vector<uint32_t>& ids) {
    return CountExecuted(plan, CountNonzeros(plan.weights), TraitsOf(model->backend()),
                         FullTrace(plan, ids));
  };
  // 4 x 5 x 3 products of the layer, 12 of Map's scale, 20 of the table's.
  const ExecutedCount first = count({3});
  EXPECT_EQ(first.operations.multiplications, 60 + 12 + 20);
  EXPECT_EQ(first.operations.additions, 40 + 20);
  EXPECT_EQ(first.operations.others, 20);
  // The second band is projected: 12 sums of 3 products more.
  EXPECT_EQ(count({15}).operations.multiplications, 60 + 12 + 20 + 36);
  // Four tokens, one row.
  EXPECT_EQ(count({3, 3, 3, 3}).operations.multiplications, (60 + 12 + 20) / 4.0);
  // Bin counts do not tell which words occur, so every row counts.
  const ExecutedCount steady =
      CountExecuted(plan, CountNonzeros(plan.weights), TraitsOf(model->backend()),
                    SteadyFullTrace(plan, std::vector<uint64_t>{3, 1}));
  EXPECT_EQ(steady.operations.multiplications, 60 + 12 + 20 + 36 / 4.0);
}

TEST(DefineRows, MicronetRulesRunTheUnitForEveryToken) {
  DefineUnit unit;
  unit.map_width = 12;
  unit.layers = {{.in = 12,
                  .out = 20,
                  .groups = 4,
                  .weights = DefineLayer::Weights::kShared,
                  .bias = DefineLayer::Bias::kShared,
                  .norm = DefineLayer::Norm::kWhole,
                  .activation = DefineLayer::Activation::kSwish}};
  const auto model = Open(TinyDefine({.unit = unit, .decoder = false}), "ref");
  const Plan& plan = model->plan();
  const auto count =
      CountMicronet2019(plan, CountNonzeros(plan.weights), std::vector<uint64_t>{1, 0});
  ASSERT_TRUE(count.ok()) << count.status().message();
  double unit_multiplications = 0, unit_additions = 0, unit_others = 0;
  for (const Component& component : count->components) {
    if (component.name.find(".unit.") == std::string::npos) continue;
    unit_multiplications += component.operations.multiplications;
    unit_additions += component.operations.additions;
    unit_others += component.operations.others;
  }
  // Four times a linear layer of 3 to 5 with a bias; 6 x 20 of the norm; swish of 20.
  EXPECT_EQ(unit_multiplications, 4 * 15 + 20);
  EXPECT_NEAR(unit_additions, 4 * (10 + 5), 1e-9);
  EXPECT_EQ(unit_others, 120 + 20);
  // Tables, projection, the one matrix and the one bias; no norm.
  EXPECT_EQ(count->storage.total, 10U * 12 + 13 * 3 + 12 * 3 + 15 + 5);
}

TEST(DefineRows, ACachedRowIsAllThatIsRead) {
  // The panels of `cpu` have padding.
  const auto model = Open(TinyDefine({.cache_rows = 23, .decoder = false}), "ref");
  const auto bytes = [&](bool cached, bool weights) {
    const auto traffic = TrafficOf(model->plan(), model->layout(), sizeof(float), model->kernels(),
                                   {0, 0, {}, cached});
    uint64_t sum = 0;
    if (weights) {
      for (const MemoryRange& range : traffic[0].weights) sum += range.size();
    } else {
      for (const FrameRange& range : traffic[0].read) sum += range.bytes;
    }
    return sum;
  };
  const auto& embedding = *FindBlock<AdaptiveEmbedding>(model->file().description());
  EXPECT_EQ(bytes(false, true), 4 * (ParameterCount(embedding.units[0].unit) + 12));
  EXPECT_EQ(bytes(true, true), 0U);
  EXPECT_EQ(bytes(true, false), 4U * embedding.width + 8);  // the row and its entry
  EXPECT_EQ(bytes(false, false), 8U);
}

}  // namespace
}  // namespace kinglet::define_rows_test
