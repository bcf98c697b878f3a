// What `kinglet bench` prints, and the arithmetic between measurements and that. Pure functions.
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
// The p-th percentile of n values is the ceil(p n / 100)-th smallest: always one that was measured
// (the nearest-rank method). REQUIRES: values is not empty.
LatencySummary Summarise(std::vector<double> values);

// A step of the plan, or what it leaves out.
struct BenchStep {
  std::string name;
  double us = 0;     // per token, mean
  double bytes = 0;  // touched by one step of all lanes, mean
  double muls = 0;   // per token, mean
  // On a device, of its peaks, while the step ran; nothing where it is not known.
  std::optional<double> memory_fraction = {}, tensor_fraction = {};
};

// What comes before the steps of a translation.
struct BenchEncode {
  uint64_t source_length = 0;  // tokens
  uint64_t target_length = 0;  // the steps from the first token on
  LatencySummary us_per_source_token;
};

// What steps of all lanes on a device ask of it.
struct BenchDevice {
  std::string name;
  uint64_t weight_bytes = 0, bytes_per_lane = 0;  // of its memory
  // Of one step, query included, mean.
  double launches = 0, bytes_to_device = 0, bytes_to_host = 0;
  DevicePeaks peaks = {};
};

struct BenchResult {
  BenchQuery query;
  size_t lanes = 1, threads = 1;
  std::string backend;
  uint64_t timed = 0;                 // steps of all lanes
  uint64_t interrupted = 0;           // of them: the system had other work for the processor
  LatencySummary us_per_token;        // without the encoder
  std::optional<BenchEncode> encode;  // of a model with one
  std::optional<BenchDevice> device;  // of a backend with one, for which there is no floor
  double read_floor_us = 0;           // of one step of all lanes
  double read_floor_bytes = 0;
  double tails_opened = 0;                 // per token, mean
  std::optional<uint64_t> peak_rss_bytes;  // of the process, all modes
  std::vector<BenchStep> steps;            // their times add up to the mean

  double TokensPerSecond() const { return 1e6 / us_per_token.mean; }
  // How many times the floor the median step takes.
  double Ratio() const { return us_per_token.p50 * static_cast<double>(lanes) / read_floor_us; }
};

// Appends "other": what of the mean the steps do not have. Negative where observed steps were
// slower than unobserved ones.
void AddRemainder(BenchResult& result);

// One line of JSON.
std::string BenchJson(const BenchResult& result);
// A line for each mode, then the `steps` slowest steps of each.
std::string BenchText(const std::vector<BenchResult>& results, size_t steps);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_BENCH_BENCH_REPORT_H_
