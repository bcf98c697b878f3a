#include "tools/bench/bench_measure.h"

#include <gtest/gtest.h>

#include <numeric>
#include <variant>

#include "runtime/accounting/traffic.h"
#include "tests/support/define_builder.h"
#include "tests/support/device_backends.h"
#include "tests/support/model_builder.h"

namespace kinglet::bench_measure_test {
namespace {

std::shared_ptr<const Model> OpenTiny(const std::string& backend) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 4;
  return *Model::FromBytes(*SerialiseModel(TinyMicronet(options)), {.backend = backend});
}

std::vector<BenchResult> MeasureTiny(const std::shared_ptr<const Model>& model,
                                     const std::vector<BenchQuery>& queries,
                                     const std::vector<uint32_t>& ids, size_t lanes = 1,
                                     size_t threads = 1) {
  BenchSetup setup{queries, lanes, threads, MakeSchedule(WarmUpTokens(model->plan()), 40)};
  uint64_t rounds = 0;
  auto results = Measure(model, setup, LaneIds(ids, lanes), [&](uint64_t done) { rounds = done; });
  EXPECT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ(rounds, setup.schedule.rounds);
  return *std::move(results);
}

const std::vector<BenchQuery> kAll = {
    {BenchMode::kFull}, {BenchMode::kScore}, {BenchMode::kTopK, 3}};

TEST(Measure, TimesAddUpAndPercentilesAscend) {
  std::vector<uint32_t> ids(23);
  std::iota(ids.begin(), ids.end(), 0U);
  for (const std::string backend : {"ref", "ref64", "cpu"}) {
    const auto model = OpenTiny(backend);
    for (const auto& [lanes, threads] : {std::pair(1, 1), std::pair(1, 3), std::pair(5, 2)}) {
      const auto results = MeasureTiny(model, kAll, ids, lanes, threads);
      ASSERT_EQ(results.size(), 3u);
      for (const BenchResult& result : results) {
        EXPECT_EQ(result.timed, 40u);
        EXPECT_LE(result.interrupted, 40u);
        EXPECT_EQ(result.threads, threads);
        EXPECT_GT(result.us_per_token.p50, 0);
        EXPECT_LE(result.us_per_token.p50, result.us_per_token.p90);
        EXPECT_LE(result.us_per_token.p90, result.us_per_token.p99);
        EXPECT_GT(result.roofline_us, 0);
        // Each node of the plan, the distribution's work, and everything else.
        ASSERT_EQ(result.nodes.size(), model->plan().nodes.size() + 2);
        double sum = 0;
        for (const BenchNode& node : result.nodes) sum += node.us;
        EXPECT_NEAR(sum, result.us_per_token.mean, 1e-9 * result.us_per_token.mean);
        for (const BenchNode& node : result.nodes) {
          EXPECT_EQ(node.us_p50.has_value(), &node != &result.nodes.back()) << node.name;
          EXPECT_GE(node.us_p50.value_or(0), 0) << node.name;
        }
      }
    }
  }
}

TEST(Measure, ADeviceReportsItsWorkInsteadOfARoofline) {
  PretendedDevice device;
  const Backend backend = PretendedBackend(device);
  TinyOptions tiny;
  tiny.cache_capacity = 4;
  const auto model =
      *Model::FromBytes(*SerialiseModel(TinyMicronet(tiny)), {.own_backend = &backend});
  const uint64_t free = device.memory_bytes;
  const auto results = MeasureTiny(model, {{BenchMode::kFull}}, std::vector<uint32_t>(200, 1), 3);
  const BenchResult& result = results[0];
  ASSERT_TRUE(result.device.has_value());
  EXPECT_EQ(result.device->name, "pretended device");
  EXPECT_EQ(result.device->bytes_per_lane, model->device()->BytesPerLane());
  // All lanes take each step together; the emulated device launches each step once.
  EXPECT_EQ(result.device->launches, static_cast<double>(model->plan().nodes.size()));
  EXPECT_GT(result.device->bytes_to_device, 0);
  // At least every word's logit of every lane.
  EXPECT_GE(result.device->bytes_to_host, 3 * 23 * 4);
  EXPECT_EQ(result.roofline_us, 0);
  EXPECT_EQ(device.memory_bytes, free);  // given back
  // Three modes of three lanes do not fit where eight lanes do.
  device.memory_bytes = 8 * model->device()->BytesPerLane();
  const BenchSetup setup{kAll, 3, 1, MakeSchedule(0, 40)};
  const auto refused = Measure(model, setup, LaneIds({1, 2, 3}, 3), [](uint64_t) {});
  EXPECT_EQ(refused.status().code(), KINGLET_OUT_OF_MEMORY);
  EXPECT_NE(refused.status().message().find("at most 2 lanes"), std::string::npos)
      << refused.status().message();
}

// A node's fraction of a peak, times the peak and the node's time, is the work that the node had to
// do.
TEST(Measure, ADevicesStepsSayHowNearTheyCameToItsPeaks) {
  cuda::Emulation emulation;
  emulation.peaks = {1e9, 4e9};
  TinyOptions tiny;
  tiny.quantised = true;
  for (const DevicePeaks& peaks : {DevicePeaks{1e9, 4e9}, DevicePeaks{0, 4e9}, DevicePeaks{}}) {
    emulation.peaks = peaks;
    const Backend backend = EmulatedCuda(emulation);
    const auto model =
        *Model::FromBytes(*SerialiseModel(TinyMicronet(tiny)), {.own_backend = &backend});
    const size_t sessions = peaks.bytes_per_second > 0 ? 2 : 1;  // of three lanes each
    const auto result = MeasureTiny(model, {{BenchMode::kFull}}, std::vector<uint32_t>(200, 1),
                                    3 * sessions, sessions)
                            .front();
    EXPECT_EQ(result.device->peaks.byte_products_per_second, peaks.byte_products_per_second);
    size_t products = 0;
    for (size_t i = 0; i < model->plan().nodes.size(); ++i) {
      const BenchNode& node = result.nodes[i];
      const auto* product = std::get_if<MatVec>(&model->plan().nodes[i].op);
      if (product == nullptr || model->plan().buffer(product->x).element != Element::kCode16) {
        continue;
      }
      ++products;
      ASSERT_GT(node.us, 0) << node.name;
      // For a step of all lanes.
      const double seconds = 3 * static_cast<double>(sessions) * node.us * 1e-6;
      EXPECT_EQ(node.memory_fraction.has_value(), peaks.bytes_per_second > 0);
      if (node.memory_fraction) {
        EXPECT_NEAR(*node.memory_fraction * seconds * 1e9, node.bytes, 1e-6 * node.bytes);
      }
      EXPECT_EQ(node.tensor_fraction.has_value(), peaks.byte_products_per_second > 0);
      if (node.tensor_fraction) {
        // Three lanes take two tiles of eight; 9 bits x 9 bits are four products.
        const auto& shape = model->plan().weights[product->weight].shape;
        const auto tiles = static_cast<double>((shape[0] + 15) / 16 * ((shape[1] + 31) / 32));
        const double expected = static_cast<double>(sessions) * tiles * 16 * 32 * 16 * 4;
        EXPECT_NEAR(*node.tensor_fraction * seconds * 4e9, expected, 1e-6 * expected) << node.name;
      }
    }
    EXPECT_GT(products, 4u);
    for (const size_t i : {result.nodes.size() - 2, result.nodes.size() - 1}) {
      EXPECT_FALSE(result.nodes[i].memory_fraction.has_value()) << result.nodes[i].name;
      EXPECT_FALSE(result.nodes[i].tensor_fraction.has_value()) << result.nodes[i].name;
    }
  }
}

// Few streams have all tails at once, where the device joins nodes.
TEST(Measure, ADeviceSkipsTailsUnlessItIsToldNotTo) {
  const Backend backend = EmulatedCuda({.is_node_by_node = true});
  TinyOptions tiny;
  tiny.quantised = true;
  tiny.cache_capacity = 4;
  const auto model =
      *Model::FromBytes(*SerialiseModel(TinyMicronet(tiny)), {.own_backend = &backend});
  std::vector<uint32_t> ids(23);
  std::iota(ids.begin(), ids.end(), 0U);
  const auto results = MeasureTiny(model,
                                   {{BenchMode::kTopK, 1},
                                    {BenchMode::kTopK, 1, true},
                                    {BenchMode::kScore},
                                    {BenchMode::kScore, 1, true}},
                                   ids, 5);
  EXPECT_GT(results[0].tails_opened, 0);
  EXPECT_LT(results[0].tails_opened, 2);
  EXPECT_EQ(results[1].tails_opened, 2);
  EXPECT_GT(results[2].tails_opened, 0);
  EXPECT_LT(results[2].tails_opened, 1);  // words of the head have none
  EXPECT_EQ(results[3].tails_opened, 2);
  const Backend joins = EmulatedCuda();
  const auto at_once =
      *Model::FromBytes(*SerialiseModel(TinyMicronet(tiny)), {.own_backend = &joins});
  const auto few = MeasureTiny(at_once, {{BenchMode::kTopK, 1}, {BenchMode::kScore}}, ids, 5);
  EXPECT_EQ(few[0].tails_opened, 2);
  EXPECT_EQ(few[1].tails_opened, results[2].tails_opened);
}

// Every word is new, and its row stays cached. Nodes are timed where rows are computed, as in the
// timed steps: the unit, which is nearly all of this model, has the time. Then every word is known.
TEST(Measure, RowsOfAUnitAreComputedInBothPasses) {
  DefineUnit unit;
  unit.map_width = 12;
  unit.layers = {{.in = 12, .out = 3000}, {.in = 3000, .out = 40}};
  const auto model = *Model::FromBytes(
      *SerialiseModel(TinyDefine({.unit = unit, .cache_rows = 2000, .vocabulary_size = 2000})),
      {.backend = "ref"});
  std::vector<uint32_t> ids(2000);
  std::iota(ids.begin(), ids.end(), 0U);
  const std::vector<BenchQuery> queries = {{BenchMode::kScore}, {BenchMode::kTopK}};
  const auto unit_us = [&](const BenchResult& result) {
    return result.nodes[EmbeddingNode(model->plan())].us;
  };
  for (const BenchResult& result : MeasureTiny(model, queries, ids)) {
    EXPECT_EQ(result.rows_computed, 1);
    EXPECT_GT(unit_us(result), 0.3 * result.us_per_token.mean);
  }
  for (const BenchResult& result : MeasureTiny(model, queries, {5, 5, 5})) {
    EXPECT_EQ(result.rows_computed, 0);
    EXPECT_LT(unit_us(result), 0.3 * result.us_per_token.mean);
  }
}

// Every token is word 1, so every step of the full distribution is of one kind.
TEST(Measure, TheRooflineIsThatOfTheBytesTouched) {
  for (const std::string backend : {"ref", "ref64", "cpu"}) {
    const auto model = OpenTiny(backend);
    const size_t real_bytes = model->backend().real_bytes;
    const TokenPath path{6, 0, {0, 1, 2}};  // window 6, cache 4
    auto traffic = TrafficOf(model->plan(), model->layout(), real_bytes, model->kernels(), path);
    traffic.push_back(QueryTraffic(model->plan(), model->layout(), real_bytes, model->kernels(),
                                   path, QueryTokens::kEvery));
    const std::vector<std::byte> memory(model->layout().scratch_bytes +
                                        model->layout().state_bytes);
    const StreamMemory stream{memory.data(), memory.data() + model->layout().scratch_bytes,
                              memory.data()};
    const uint64_t all = TotalBytes(DistinctMemory(traffic, {&stream, 1}));
    const uint64_t answers = 23 * real_bytes;

    const auto results = MeasureTiny(model, {{BenchMode::kFull}}, {1});
    EXPECT_EQ(results[0].roofline_bytes, static_cast<double>(all + answers)) << backend;
    EXPECT_EQ(results[0].tails_opened, 2);
    for (size_t i = 0; i + 1 < traffic.size(); ++i) {
      EXPECT_EQ(results[0].nodes[i].bytes,
                static_cast<double>(TotalBytes(DistinctMemory({&traffic[i], 1}, {&stream, 1}))))
          << results[0].nodes[i].name;
    }
    // Lanes have their own states, and one set of weights.
    uint64_t weights = 0;
    std::vector<MemoryRange> ranges;
    for (const NodeTraffic& step : traffic) {
      ranges.insert(ranges.end(), step.weights.begin(), step.weights.end());
    }
    weights = TotalBytes(Merged(ranges));
    const auto three = MeasureTiny(model, {{BenchMode::kFull}}, {1}, 3);
    EXPECT_EQ(three[0].roofline_bytes,
              static_cast<double>(weights + 3 * (all - weights) + answers));
    // Each of two threads has memory for answers.
    const auto two = MeasureTiny(model, {{BenchMode::kFull}}, {1}, 3, 2);
    EXPECT_EQ(two[0].roofline_bytes, three[0].roofline_bytes + static_cast<double>(answers));
  }
}

TEST(Measure, LazyQueriesTouchAndCountLess) {
  const auto model = OpenTiny("ref");
  const std::vector<BenchQuery> queries = {
      {BenchMode::kScore}, {BenchMode::kScore, 10, true}, {BenchMode::kFull}};
  const auto results = MeasureTiny(model, queries, {1});  // word 1 is in the head
  EXPECT_EQ(results[0].tails_opened, 0);
  EXPECT_EQ(results[1].tails_opened, 2);
  EXPECT_LT(results[0].roofline_bytes, results[1].roofline_bytes);
  EXPECT_EQ(results[1].roofline_bytes + 23 * 4, results[2].roofline_bytes);

  const auto path = [&](const ClusterSet& clusters) {
    return CountExecuted(model->plan(), CountNonzeros(model->plan().weights),
                         TraitsOf(model->backend()), {{{{6, 0, clusters}, 1}}, {}})
        .operations.multiplications;
  };
  const auto muls = [](const BenchResult& result) {
    double sum = 0;
    for (const BenchNode& node : result.nodes) {
      if (node.name != "distribution") sum += node.muls;
    }
    return sum;
  };
  EXPECT_EQ(muls(results[0]), path({0}));
  EXPECT_EQ(muls(results[1]), path({0, 1, 2}));
  EXPECT_EQ(muls(results[2]), path({0, 1, 2}));
}

TEST(Measure, AnErrorOfAStepIsTheMeasurements) {
  const auto model = OpenTiny("ref");
  BenchSetup setup{kAll, 1, 1, MakeSchedule(10, 40)};
  const auto results = Measure(model, setup, LaneIds({23}, 1), [](uint64_t) {});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.status().code(), KINGLET_ID_OUT_OF_RANGE);
}

}  // namespace
}  // namespace kinglet::bench_measure_test
