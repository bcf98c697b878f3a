// Checks that a session of many lanes on one backend gives the bits that sessions of one lane give
// on `cpu`: the ten best words after every token, and the states at the end. bench/gpu_check runs
// it on the device, where other kernels work for more than 8, 31 and 128 lanes.
#include "tests/support/lane_check.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Options {
  std::string model, backend = "cuda";
  uint32_t lanes = 0;  // 0: all of kLanes
  LaneCheck check;
};
constexpr uint32_t kLanes[] = {8, 9, 31, 32, 63, 64, 128, 1344, 4096};

Status Run(const Options& options, bool& same) {
  ModelOptions on_backend;
  on_backend.backend = options.backend;
  KINGLET_ASSIGN_OR_RETURN(const auto found, Model::Open(options.model, on_backend));
  KINGLET_ASSIGN_OR_RETURN(const auto expected, Model::Open(options.model, ModelOptions()));
  std::vector<uint32_t> counts = {options.lanes};
  if (options.lanes == 0) counts.assign(std::begin(kLanes), std::end(kLanes));
  for (const uint32_t lanes : counts) {
    LaneCheck check = options.check;
    check.lanes = lanes;
    KINGLET_ASSIGN_OR_RETURN(const std::string difference, CompareLanes(found, expected, check));
    same &= difference.empty();
    std::printf("%5u lanes, %u tokens, %u lanes compared: %s\n", lanes, check.tokens,
                std::min(check.sampled, lanes),
                difference.empty() ? "no bit differs" : difference.c_str());
    std::fflush(stdout);
  }
  return Status();
}

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("Compare many lanes on a backend with single lanes on cpu", "lane_check");
  program.Add("M.kgl", options.model, "model file").Required().Called("");
  program.Add("--backend", options.backend, "what runs the lanes").ShowDefault();
  program.Add("--lanes", options.lanes, "lanes (default: 8, 9, 31, .. 4096, one after the other)");
  program.Add("--tokens", options.check.tokens, "tokens of each lane").ShowDefault();
  program.Add("--sampled", options.check.sampled, "lanes that are compared").ShowDefault();
  if (const auto exit = program.ParseAndPrint(argc, argv)) return *exit;
  bool same = true;
  const Status status = Run(options, same);
  if (!status.ok()) std::fprintf(stderr, "lane_check: %s\n", status.message().c_str());
  return status.ok() && same ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
