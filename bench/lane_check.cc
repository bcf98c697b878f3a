// Checks that a session of many lanes on one backend gives the bits of sessions of one lane on
// `cpu`: the ten best words after every token, and the states at the end. bench/gpu_check runs
// the program on the device, where other kernels work for more than 8, 31 and 128 lanes.
#include "tests/support/lane_check.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tests/support/device_backends.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Options {
  std::string model, backend = "cuda";
  uint32_t lanes = 0;  // 0 means all of kLanes
  bool launches = false;
  LaneCheck check;
};
constexpr uint32_t kLanes[] = {8, 9, 31, 32, 63, 64, 128, 1344, 4096};
constexpr uint32_t kLanesOfLaunches[] = {1, 8, 9, 31, 32, 64};

std::vector<uint32_t> LaneCounts(const Options& options) {
  if (options.lanes != 0) return {options.lanes};
  if (options.launches) return {std::begin(kLanesOfLaunches), std::end(kLanesOfLaunches)};
  return {std::begin(kLanes), std::end(kLanes)};
}

Status Compare(const Options& options, const std::shared_ptr<const Model>& found, bool& all_equal) {
  KINGLET_ASSIGN_OR_RETURN(const auto expected, Model::Open(options.model, ModelOptions()));
  for (const uint32_t lanes : LaneCounts(options)) {
    LaneCheck check = options.check;
    check.lanes = lanes;
    KINGLET_ASSIGN_OR_RETURN(const std::string difference, CompareLanes(found, expected, check));
    all_equal &= difference.empty();
    std::printf("%5u lanes, %u tokens, %u lanes compared: %s\n", lanes, check.tokens,
                std::min(check.sampled, lanes),
                difference.empty() ? "no bit differs" : difference.c_str());
    std::fflush(stdout);
  }
  return Status();
}

// Every lane steps, then a query takes its ten best words.
Status CountLaunches(const Options& options, const std::shared_ptr<const Model>& model) {
  for (const uint32_t count : LaneCounts(options)) {
    KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model, {.lanes = count}));
    std::vector<uint32_t> lanes(count), ids(count);
    std::iota(lanes.begin(), lanes.end(), 0);
    uint64_t before = 0;
    for (uint32_t token = 0; token < options.check.tokens; ++token) {
      for (uint32_t& id : ids) id = (id + token * 7 + 1) % model->vocabulary_size();
      before = session->device_work().launches;
      KINGLET_RETURN_IF_ERROR(session->StepLanes(lanes, ids));
      KINGLET_RETURN_IF_ERROR(session->TopKLanes(lanes, 10).status());
    }
    std::printf("%3u lanes: %llu launches of the last token\n", count,
                static_cast<unsigned long long>(session->device_work().launches - before));
  }
  return Status();
}

Status Run(const Options& options, bool& all_equal) {
  const Backend emulated = EmulatedCuda();
  ModelOptions on_backend;
  on_backend.backend = options.backend;
  if (options.backend == "emulated") on_backend.own_backend = &emulated;
  KINGLET_ASSIGN_OR_RETURN(const auto found, Model::Open(options.model, on_backend));
  return options.launches ? CountLaunches(options, found) : Compare(options, found, all_equal);
}

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("Compare many lanes on a backend with single lanes on cpu", "lane_check");
  program.Add("M.kgl", options.model, "model file").Required().Placeholder("");
  program.Add("--backend", options.backend, "what runs the lanes")
      .OneOf({"cuda", "emulated", "cpu", "ref"})
      .ShowDefault();
  program.Add("--lanes", options.lanes, "lanes (default: 8, 9, 31, .. 4096, one after the other)");
  program.AddFlag("--launches", options.launches, "count launches instead");
  program.Add("--tokens", options.check.tokens, "tokens of each lane").ShowDefault();
  program.Add("--sampled", options.check.sampled, "lanes that are compared").ShowDefault();
  if (const auto exit = program.ParseAndPrint(argc, argv)) return *exit;
  bool all_equal = true;
  const Status status = Run(options, all_equal);
  if (!status.ok()) std::fprintf(stderr, "lane_check: %s\n", status.message().c_str());
  return status.ok() && all_equal ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
