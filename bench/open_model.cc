// Measures the time until the first distribution: reading and verifying the file, laying out the
// weights, creating a session, feeding one token and computing all its log-probabilities. Each
// round opens the model again. The first round, which brings the file into the system's cache, does
// not count.
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "bench/median.h"
#include "format/model_file.h"
#include "runtime/model.h"
#include "runtime/session.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

// Milliseconds, one value per round. `model` includes `file`.
struct Times {
  std::vector<double> file, model, session, token, all;
};

class Clock {
 public:
  double Lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::milli> taken = now - last_;
    last_ = now;
    return taken.count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Status Round(const std::string& path, Times& times) {
  Clock clock;
  KINGLET_RETURN_IF_ERROR(ModelFile::Open(path).status());
  times.file.push_back(clock.Lap());
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(path, ModelOptions()));
  times.model.push_back(clock.Lap());
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model));
  times.session.push_back(clock.Lap());
  std::vector<float> distribution(model->vocabulary_size());
  KINGLET_RETURN_IF_ERROR(session->StepToken(model->file().description().start_token.value_or(0)));
  KINGLET_RETURN_IF_ERROR(session->LogProbabilities(distribution));
  times.token.push_back(clock.Lap());
  times.all.push_back(times.model.back() + times.session.back() + times.token.back());
  return Status();
}

Status Measure(const std::string& path, int rounds) {
  Times times;
  for (int round = 0; round <= rounds; ++round) {
    KINGLET_RETURN_IF_ERROR(Round(path, times));
    if (round == 0) times = {};
  }
  const auto print = [](const char* what, std::vector<double>& values) {
    std::printf("%-42s %8.2f ms\n", what, Median(values));
  };
  print("open the model", times.model);
  print("  read and verify the file (part of it)", times.file);
  print("create a session", times.session);
  print("first token, all log-probabilities", times.token);
  print("total", times.all);
  std::printf("medians of %d rounds\n", rounds);
  return Status();
}

int Main(int argc, char** argv) {
  std::string path;
  int rounds = 15;
  ArgumentParser program("Measure the time from opening a cached file to the first answer",
                         "open_model");
  program.Add("M.kgl", path, "model file").Required().Placeholder("");
  program.Add("--rounds", rounds, "number of rounds").Between(1, 10000).ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Status status = Measure(path, rounds);
  if (!status.ok()) std::fprintf(stderr, "open_model: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
