// How often words are drawn after a text, against their exact probabilities: chi-square for plain
// sampling, for a temperature, for the best words and for a nucleus.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "converters/texts/token_file.h"
#include "runtime/session.h"
#include "tools/arguments.h"

namespace kinglet {
namespace {

constexpr double kLeastExpected = 20;  // draws of a bin; rarer words are counted in one bin

struct FrequencyArguments {
  std::string model, ids, backend = "cpu";
  uint64_t draws = 100'000;
};

struct DrawKind {
  const char* name;
  DrawOptions options;
};

// The expected fraction of the draws for each word, by id.
Result<std::vector<double>> SharesOf(Session& session, const std::vector<double>& all,
                                     const DrawOptions& options) {
  std::vector<uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return all[a] != all[b] ? all[a] > all[b] : a < b; });
  if (options.top_k > 0) order.resize(std::min<size_t>(order.size(), options.top_k));
  if (options.top_p < 1 && options.top_k == 0 && options.temperature == 1) {
    KINGLET_ASSIGN_OR_RETURN(const auto nucleus, session.TopP(options.top_p));
    order.resize(nucleus.size());
  }
  std::vector<double> shares(all.size());
  double sum = 0;
  for (const uint32_t id : order) sum += shares[id] = std::exp(all[id] / options.temperature);
  for (double& share : shares) share /= sum;
  return shares;
}

struct ChiSquare {
  double value = 0;
  size_t bins = 0;
  uint64_t impossible = 0;  // draws of excluded words
  // How far above its mean, in standard deviations of the normal distribution (Wilson and Hilferty
  // 1931).
  double deviations() const {
    const double n = static_cast<double>(bins) - 1, part = 2 / (9 * n);
    return (std::cbrt(value / n) - (1 - part)) / std::sqrt(part);
  }
};

ChiSquare Compare(const std::vector<double>& shares, const std::vector<uint64_t>& drawn,
                  uint64_t draws) {
  std::vector<uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
  });
  ChiSquare result;
  double expected = 0, rest = 1;
  uint64_t found = 0;
  for (const uint32_t id : order) {
    if (!(shares[id] > 0)) {
      result.impossible += drawn[id];
      continue;
    }
    expected += static_cast<double>(draws) * shares[id];
    found += drawn[id];
    rest -= shares[id];
    // Words that would not fill a bin of their own go into the last bin.
    if (expected < kLeastExpected || static_cast<double>(draws) * rest < kLeastExpected) continue;
    const double off = static_cast<double>(found) - expected;
    result.value += off * off / expected;
    ++result.bins;
    expected = 0;
    found = 0;
  }
  if (expected > 0) {
    const double off = static_cast<double>(found) - expected;
    result.value += off * off / expected;
    ++result.bins;
  }
  return result;
}

Result<bool> DrawAndPrint(const FrequencyArguments& arguments) {
  ModelOptions opening;
  opening.backend = arguments.backend;
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::Open(arguments.model, opening));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, ReadIds(arguments.ids));
  KINGLET_ASSIGN_OR_RETURN(const auto session, Session::Create(model));
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(session->StepToken(id));
  std::vector<double> all(model->vocabulary_size());
  KINGLET_RETURN_IF_ERROR(session->LogProbabilities(std::span<double>(all)));
  const std::vector<DrawKind> kinds = {{"sampling", {}},
                                       {"temperature 0.7", {.temperature = 0.7}},
                                       {"temperature 1.5", {.temperature = 1.5}},
                                       {"top-k 50", {.top_k = 50}},
                                       {"top-p 0.5", {.top_p = 0.5}},
                                       {"top-p 0.9", {.top_p = 0.9}}};
  bool passed = true;
  for (const DrawKind& kind : kinds) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<double> shares,
                             SharesOf(*session, all, kind.options));
    std::vector<uint64_t> drawn(all.size());
    for (uint64_t seed = 0; seed < arguments.draws; ++seed) {
      KINGLET_ASSIGN_OR_RETURN(const uint32_t id, session->Draw(seed, kind.options));
      ++drawn[id];
    }
    const ChiSquare found = Compare(shares, drawn, arguments.draws);
    const auto words = std::count_if(shares.begin(), shares.end(), [](double p) { return p > 0; });
    constexpr double kOnceIn30000 = 4;
    const bool fits =
        found.impossible == 0 && (found.bins < 2 || found.deviations() < kOnceIn30000);
    passed = passed && fits;
    std::printf(
        "%-16s %llu draws of %lld words: chi-square %.1f with %zu degrees of freedom, %+.2f "
        "deviations; %llu draws of other words: %s\n",
        kind.name, static_cast<unsigned long long>(arguments.draws), static_cast<long long>(words),
        found.value, found.bins - 1, found.bins < 2 ? 0 : found.deviations(),
        static_cast<unsigned long long>(found.impossible), fits ? "passed" : "FAILED");
    std::fflush(stdout);
  }
  return passed;
}

int Main(int argc, char** argv) {
  FrequencyArguments arguments;
  ArgumentParser program("Compare how often words are drawn with their probabilities",
                         "draw_frequencies");
  program.Add("M.kgl", arguments.model, "model file").Required().Placeholder("");
  program.Add("IDS", arguments.ids, "file of token ids: words are drawn after the last")
      .Required()
      .Placeholder("");
  program.Add("--draws", arguments.draws, "of each kind, with the seeds from 0 on").ShowDefault();
  program.Add("--backend", arguments.backend, "what computes").ShowDefault();
  if (const std::optional<int> exit = program.ParseAndPrint(argc, argv)) return *exit;
  const Result<bool> passed = DrawAndPrint(arguments);
  if (!passed.ok()) {
    std::fprintf(stderr, "draw_frequencies: %s\n", passed.status().message().c_str());
  }
  return passed.ok() && *passed ? 0 : 1;
}

}  // namespace
}  // namespace kinglet

int main(int argc, char** argv) { return kinglet::Main(argc, argv); }
