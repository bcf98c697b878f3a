// The results of `kinglet bench`: derived numbers, JSON and text. Pure functions.
#ifndef KINGLET_TOOLS_BENCH_BENCH_REPORT_H_
#define KINGLET_TOOLS_BENCH_BENCH_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device_peaks.h"
#include "tools/bench/bench_streams.h"

namespace kinglet {

struct LatencySummary {
  double p50 = 0, p90 = 0, p99 = 0, mean = 0;
};
// The p-th percentile of n values is the ceil(p n / 100)-th smallest (the nearest-rank method), so
// it is always a measured value. REQUIRES: values is not empty.
LatencySummary Summarise(std::vector<double> values);

// A node of the plan, or the remaining time ("other").
struct BenchNode {
  std::string name;
  double us = 0;     // per token, mean
  double bytes = 0;  // touched by one step of all lanes, mean
  double muls = 0;   // per token, mean
  // On a device: fractions of its peaks while the node ran; nullopt if unknown.
  std::optional<double> memory_fraction = {}, tensor_fraction = {};
  // Per token, median over the steps: where steps were timed one by one, and not of "other".
  std::optional<double> us_p50 = {};
};

// Encoding the source of a translation, before its target steps.
struct BenchEncode {
  uint64_t source_length = 0;  // tokens
  uint64_t target_length = 0;  // tokens: the number of target steps
  LatencySummary us_per_source_token;
};

// A device: memory, launches and transfers.
struct BenchDevice {
  std::string name;
  uint64_t weight_bytes = 0, bytes_per_lane = 0;  // in its memory
  // Means of one step of all lanes, including the query.
  double launches = 0, bytes_to_device = 0, bytes_to_host = 0;
  DevicePeaks peaks = {};
};

struct BenchResult {
  BenchQuery query;
  size_t lanes = 1, threads = 1;
  std::string backend;
  uint64_t timed = 0;                   // steps of all lanes
  uint64_t interrupted = 0;             // timed steps that the system interrupted
  LatencySummary us_per_token;          // without the encoder
  std::optional<BenchEncode> encode;    // for a model with an encoder
  std::optional<uint64_t> text_length;  // of a text that is read at once: its tokens
  std::optional<BenchDevice> device;    // for a device backend, which has no roofline
  double roofline_us = 0;               // for one step of all lanes, or for a complete text
  double roofline_bytes = 0;
  double tails_opened = 0;                 // per token, mean
  std::optional<double> rows_computed;     // by DeFINE units, per token; nullopt without a unit
  std::optional<uint64_t> peak_rss_bytes;  // of the process, all modes
  std::vector<BenchNode> nodes;            // their times add up to the mean

  double TokensPerSecond() const { return 1e6 / us_per_token.mean; }
  // Time of the median step divided by the roofline.
  double Ratio() const {
    const auto tokens = static_cast<double>(lanes * text_length.value_or(1));
    return us_per_token.p50 * tokens / roofline_us;
  }
};

// Appends the node "other": the mean time per token minus the times of all nodes. The time is
// negative if nodes ran slower while they were timed one by one.
void AddRemainder(BenchResult& result);

// A sentence about timed steps that the system interrupted; empty if there are none.
std::string InterruptionsText(const std::vector<BenchResult>& results);
// One line of JSON.
std::string BenchJson(const BenchResult& result);
// A table with a line for each mode, then the `nodes` slowest nodes of each mode.
std::string BenchText(const std::vector<BenchResult>& results, size_t nodes);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_REPORT_H_
