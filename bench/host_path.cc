// What a step and a query of many lanes on a device cost the host: microseconds a lane, on a device
// that answers at once (tests/support/instant_device.h). No GPU is needed.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/median.h"
#include "format/writer.h"
#include "runtime/session.h"
#include "tests/support/instant_device.h"
#include "tests/support/model_builder.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

struct Options {
  uint32_t lanes = 4096, steps = 200, top = 10;
};

template <class Call>
double Microseconds(const Call& call, Status& status) {
  const auto begin = std::chrono::steady_clock::now();
  if (status.ok()) status = call();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

// The lanes' words, and what is asked about each.
class HostPath {
 public:
  HostPath(const Options& options, std::unique_ptr<Session> session)
      : options_(options),
        session_(std::move(session)),
        lanes_(options.lanes),
        ids_(options.lanes),
        best_(uint64_t{options.lanes} * options.top),
        of_best_(best_.size()),
        scores_(options.lanes) {
    std::iota(lanes_.begin(), lanes_.end(), 0);
  }
  Status Step() {
    const uint32_t words = session_->model().vocabulary_size();
    for (uint32_t& id : ids_) id = (id * 5 + 7) % words;
    return session_->StepLanes(lanes_, ids_);
  }
  Status Best(Computing computing) {
    return session_->TopKLanes(lanes_, options_.top, best_, of_best_, computing);
  }
  Status Score() { return session_->LogProbabilityLanes(lanes_, ids_, scores_); }

  // Prints the host's time for a step and this query.
  template <class Query>
  Status Measure(const char* name, const Query& query) {
    std::vector<double> steps, queries, both;
    Status status;
    for (uint32_t i = 0; i < options_.steps; ++i) {
      steps.push_back(Microseconds([&] { return Step(); }, status));
      queries.push_back(Microseconds(query, status));
      both.push_back(steps.back() + queries.back());
    }
    KINGLET_RETURN_IF_ERROR(status);
    std::printf("%-22s %.3f us a lane: %.3f step, %.3f query\n", name,
                Median(both) / options_.lanes, Median(steps) / options_.lanes,
                Median(queries) / options_.lanes);
    return Status();
  }

 private:
  Options options_;
  std::unique_ptr<Session> session_;
  std::vector<uint32_t> lanes_, ids_, best_;
  std::vector<double> of_best_, scores_;
};

Status Run(const Options& options) {
  InstantDevice device;
  device.tails = 2;  // the first tail
  const Backend backend = InstantBackend(device);
  TinyOptions tiny;
  tiny.quantised = true;
  tiny.cache_capacity = 4;
  tiny.vocabulary_size = 200;
  KINGLET_ASSIGN_OR_RETURN(const auto bytes, SerialiseModel(TinyMicronet(tiny)));
  ModelOptions on_device;
  on_device.own_backend = &backend;
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::FromBytes(bytes, on_device));
  KINGLET_ASSIGN_OR_RETURN(auto session, Session::Create(model, {.lanes = options.lanes}));
  HostPath path(options, std::move(session));
  KINGLET_RETURN_IF_ERROR(
      path.Measure("best, every tail", [&] { return path.Best(Computing::kAll); }));
  KINGLET_RETURN_IF_ERROR(
      path.Measure("best, tails as needed", [&] { return path.Best(Computing::kNeeded); }));
  return path.Measure("score", [&] { return path.Score(); });
}

int Main(int argc, char** argv) {
  Options options;
  ArgumentParser program("The host's time for lanes on a device", "host_path");
  program.Add("--lanes", options.lanes, "lanes").ShowDefault();
  program.Add("--steps", options.steps, "steps of all lanes").ShowDefault();
  program.Add("--top", options.top, "best words of each lane").ShowDefault();
  if (const auto exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Run(options);
  if (!status.ok()) std::fprintf(stderr, "host_path: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
