// A session with a long life (tests/support/long_life.h), with as many tokens as time allows.
#include "tests/support/long_life.h"

#include <cstdio>
#include <string>

#include "format/writer.h"
#include "runtime/model.h"
#include "tests/support/model_builder.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

using Count = unsigned long long;

void Print(const LongLifeReport& report) {
  std::printf(
      "%llu tokens, %llu resets, %llu forks, %llu saves, %llu restores, %llu cancelled; "
      "%llu comparisons; resident %.2f MB at a tenth, at most %.2f MB later\n",
      Count{report.tokens}, Count{report.resets}, Count{report.forks}, Count{report.saves},
      Count{report.restores}, Count{report.cancelled}, Count{report.compared},
      static_cast<double>(report.resident_early) / 1e6,
      static_cast<double>(report.resident_most) / 1e6);
  std::fflush(stdout);
}

Status Run(const std::string& backend, const LongLife& life, bool& unchanged) {
  TinyOptions options;
  options.quantised = true;
  options.cache_capacity = 4;
  KINGLET_ASSIGN_OR_RETURN(const auto bytes, SerialiseModel(TinyMicronet(options)));
  ModelOptions on_backend;
  on_backend.backend = backend;
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::FromBytes(bytes, on_backend));
  KINGLET_ASSIGN_OR_RETURN(const LongLifeReport report, LiveLong(model, life, Print));
  Print(report);
  unchanged = report.difference.empty();
  std::printf("a stream of %llu tokens never reset: %s\n", Count{report.longest},
              unchanged ? "no bit differs" : report.difference.c_str());
  return Status();
}

int Main(int argc, char** argv) {
  LongLife life{.tokens = 100'000'000};
  std::string backend = "cpu";
  ArgumentParser program("Many tokens through one session, compared with fresh ones", "long_life");
  program.Add("--tokens", life.tokens, "tokens of all lanes").ShowDefault();
  program.Add("--checkpoints", life.checkpoints, "comparisons").ShowDefault();
  program.Add("--seed", life.seed, "of everything random").ShowDefault();
  program.Add("--backend", backend, "what computes").OneOf({"cpu", "ref"}).ShowDefault();
  if (const auto exit = program.ParseAndPrint(argc, argv)) return *exit;
  bool unchanged = true;
  const Status status = Run(backend, life, unchanged);
  if (!status.ok()) std::fprintf(stderr, "long_life: %s\n", status.message().c_str());
  return status.ok() && unchanged ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
