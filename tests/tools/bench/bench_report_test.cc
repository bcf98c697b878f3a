#include "tools/bench/bench_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

namespace kinglet::bench_report_test {
namespace {

TEST(Summarise, NearestRank) {
  // The example of Wikipedia's article "Percentile": 15, 20, 35, 40, 50 have the 50th percentile 35
  // and the 100th 50.
  const LatencySummary five = Summarise({35, 20, 15, 50, 40});
  EXPECT_EQ(five.p50, 35);
  EXPECT_EQ(five.p90, 50);
  EXPECT_EQ(five.p99, 50);
  EXPECT_EQ(five.mean, 32);

  std::vector<double> hundred(100);
  std::iota(hundred.rbegin(), hundred.rend(), 1.0);
  EXPECT_EQ(Summarise(hundred).p50, 50);
  EXPECT_EQ(Summarise(hundred).p90, 90);
  EXPECT_EQ(Summarise(hundred).p99, 99);

  const LatencySummary one = Summarise({3.5});
  EXPECT_EQ(one.p50, 3.5);
  EXPECT_EQ(one.p99, 3.5);
  EXPECT_EQ(Summarise({1, 2}).p50, 1);
}

BenchResult Example() {
  BenchResult result;
  result.query.mode = BenchMode::kTopK;
  result.query.top = 7;
  result.lanes = 4;
  result.threads = 2;
  result.backend = "cpu";
  result.timed = 1234;
  result.us_per_token = {100, 150, 200, 125};
  result.roofline_us = 160;
  result.roofline_bytes = 1000.6;
  result.tails_opened = 0.25;
  result.peak_rss_bytes = 5000000;
  result.nodes = {{"embed", 25, 100, 10}, {"softmax.head", 60, 300.5, 20}};
  return result;
}

TEST(BenchReport, TheRemainderMakesTheNodesAddUp) {
  BenchResult result = Example();
  AddRemainder(result);
  ASSERT_EQ(result.nodes.size(), 3u);
  EXPECT_EQ(result.nodes[2].name, "other");
  EXPECT_EQ(result.nodes[2].us, 40);
  EXPECT_EQ(result.nodes[2].bytes, 0);
  result = Example();
  result.nodes[1].us = 110;  // an observed node is slower than the mean of unobserved ones
  AddRemainder(result);
  EXPECT_EQ(result.nodes[2].us, -10);
}

TEST(BenchReport, Ratios) {
  EXPECT_EQ(Example().TokensPerSecond(), 8000);
  EXPECT_EQ(Example().Ratio(), 2.5);  // 100 us a token, 4 tokens a step, roofline of a step 160 us
}

TEST(BenchReport, JsonHasTheContractsKeysInItsOrder) {
  BenchResult result = Example();
  const auto json = nlohmann::ordered_json::parse(BenchJson(result));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  ASSERT_GE(keys.size(), 10u);
  keys.resize(10);
  EXPECT_EQ(keys, (std::vector<std::string>{"mode", "lanes", "threads", "us_per_token",
                                            "tokens_per_s", "roofline_us", "roofline_bytes",
                                            "tails_opened", "peak_rss_bytes", "steps"}));
  EXPECT_EQ(json["us_per_token"].dump(), R"({"p50":100,"p90":150,"p99":200,"mean":125})");
  EXPECT_EQ(json["roofline_bytes"], 1001);
  EXPECT_EQ(json["steps"][1].dump(), R"({"name":"softmax.head","us":60,"bytes":300.5,"muls":20})");
  EXPECT_EQ(json["top"], 7);
  result.peak_rss_bytes.reset();
  result.query.mode = BenchMode::kFull;
  const auto other = nlohmann::ordered_json::parse(BenchJson(result));
  EXPECT_TRUE(other["peak_rss_bytes"].is_null());
  EXPECT_FALSE(other.contains("top"));
}

TEST(BenchReport, ADeviceHasNoRooflineButReportsItsWork) {
  BenchResult result = Example();
  result.device = BenchDevice{"a device", 4000, 300, 2.5, 64, 1024, {250000, 0}};
  result.nodes[0].memory_fraction = 0.25;
  const auto json = nlohmann::ordered_json::parse(BenchJson(result));
  for (const char* key : {"roofline_us", "roofline_bytes", "ratio"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_EQ(json["device"].dump(),
            R"({"name":"a device","weight_bytes":4000,"bytes_per_lane":300,"launches":2.5,)"
            R"("bytes_to_device":64,"bytes_to_host":1024,)"
            R"("peak_bytes_per_s":250000,"peak_byte_products_per_s":null})");
  EXPECT_EQ(json["steps"][0].dump(), R"({"name":"embed","us":25,"bytes":100,"muls":10,)"
                                     R"("memory_fraction":0.25,"tensor_fraction":null})");
  const std::string text = BenchText({result}, 1);
  for (const char* part : {"launches", "1024", "a device: 4,000 bytes of weights, 300"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(text.find("roofline"), std::string::npos) << text;
  const std::string steps = BenchText({result}, 5);
  const auto line = [&](const std::string& name) {
    const size_t begin = steps.find(name);
    return steps.substr(begin, steps.find('\n', begin) - begin);
  };
  EXPECT_NE(steps.find("muls   memory   tensor\n"), std::string::npos) << steps;
  EXPECT_NE(line("  embed").find("   25.00%        -"), std::string::npos) << steps;
  EXPECT_NE(line("  softmax.head").find("        -        -"), std::string::npos) << steps;
  EXPECT_EQ(BenchText({Example()}, 5).find("tensor"), std::string::npos);
}

TEST(BenchReport, TextHasEveryModeAndItsSlowestNodes) {
  BenchResult full = Example();
  full.query.mode = BenchMode::kFull;
  full.query.no_skip = true;
  BenchResult top = Example();
  top.nodes.push_back({"tail", 30, 1, 2});
  top.nodes.push_back({"norm", 10, 1, 2});
  const std::string text = BenchText({full, top}, 2);
  EXPECT_NE(text.find("cpu, 4 lanes on 2 threads, 1,234 steps"), std::string::npos) << text;
  EXPECT_NE(text.find("\nfull, all "), std::string::npos) << text;
  EXPECT_NE(text.find("\ntopk 7 "), std::string::npos) << text;
  const std::string steps = text.substr(text.rfind("topk 7"));
  EXPECT_LT(steps.find("softmax.head"), steps.find("tail"));
  // embed and norm are one line.
  EXPECT_EQ(steps.find("embed"), std::string::npos) << steps;
  ASSERT_NE(steps.find("2 more"), std::string::npos) << steps;
  EXPECT_EQ(std::stod(steps.substr(steps.find("2 more") + 6)), 35);
  EXPECT_EQ(BenchText({full, top}, 0).find("softmax.head"), std::string::npos);
  EXPECT_EQ(BenchText({full, top}, 0).find(" more"), std::string::npos);
  EXPECT_EQ(text.find("interrupted"), std::string::npos);
  full.interrupted = 3;
  top.interrupted = 4;
  EXPECT_NE(BenchText({full, top}, 2).find("interrupted 7 of 2,468 steps"), std::string::npos);
  EXPECT_EQ(BenchText({top}, 100).find(" more"), std::string::npos);
}

}  // namespace
}  // namespace kinglet::bench_report_test
