#include "tools/bench/bench_text.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "runtime/session.h"
#include "runtime/text_block.h"
#include "tools/bench/node_clock.h"
#include "tools/bench/path_roofline.h"
#include "tools/bench/process_use.h"

namespace kinglet {

Result<BenchResult> MeasureText(const std::shared_ptr<const Model>& model, const TextSetup& setup,
                                const std::function<void(uint64_t)>& progress) {
  const Plan& plan = model->plan();
  const BenchSchedule& schedule = setup.schedule;
  SessionOptions options;
  options.threads = static_cast<uint32_t>(setup.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model, options));
  const Computing computing = setup.no_skip ? Computing::kAll : Computing::kNeeded;
  std::vector<double> log_probabilities(setup.ids.size());
  const auto read = [&](uint64_t first, uint64_t count) {
    uint64_t processed = 0;
    return session->StepMany(std::span(setup.ids).subspan(first, count),
                             std::span(log_probabilities).subspan(first, count), processed, 0,
                             computing);
  };
  BenchResult result;
  result.query = {BenchMode::kText, 0, setup.no_skip};
  result.threads = setup.threads;
  result.backend = model->backend().name;
  result.timed = schedule.rounds;
  result.text_length = schedule.timed;
  KINGLET_RETURN_IF_ERROR(read(0, schedule.warm_up));
  NodeClock clock(plan);
  std::vector<double> us;
  uint64_t at = schedule.warm_up;
  for (uint64_t round = 0; round < schedule.rounds; ++round) {
    KINGLET_RETURN_IF_ERROR(read(at, schedule.settle));
    at += schedule.settle;
    KINGLET_ASSIGN_OR_RETURN(const State start, session->Save());
    const long before = Interruptions();
    const auto begin = std::chrono::steady_clock::now();
    KINGLET_RETURN_IF_ERROR(read(at, schedule.timed));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    result.interrupted += Interruptions() != before;
    us.push_back(1e6 * time.count() / static_cast<double>(schedule.timed));
    KINGLET_RETURN_IF_ERROR(session->Restore(start));
    clock.Attach(*session);
    const Status observed = read(at, schedule.timed);
    NodeClock::Detach(*session);
    KINGLET_RETURN_IF_ERROR(observed);
    at += schedule.timed;
    progress(round + 1);
  }
  result.us_per_token = Summarise(std::move(us));
  const auto tokens = static_cast<double>(schedule.Timed());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    result.nodes.push_back({plan.nodes[i].name, 1e6 * clock.Seconds(i) / tokens});
  }
  ClusterSet every;
  for (size_t i = 0; i < plan.clusters.size(); ++i) every.Insert(i);
  const TokenPath path = PathOf(plan, SteadyPosition(plan), setup.ids.front(), every);
  KINGLET_RETURN_IF_ERROR(
      MeasurePathRoofline(*model, path, QueryTokens::kNamed, setup.threads, result));
  // Tokens that the network reads together share one read of the memory.
  const uint64_t tokens_per_read = TextBlock::TokensTogether(*model);
  const uint64_t reads = (schedule.timed + tokens_per_read - 1) / tokens_per_read;
  result.roofline_us *= static_cast<double>(reads);
  result.tails_opened = static_cast<double>(plan.clusters.size()) - 1;
  AddRemainder(result);
  result.peak_rss_bytes = PeakResidentBytes();
  return result;
}

}  // namespace kinglet
