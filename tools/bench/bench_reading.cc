#include "tools/bench/bench_reading.h"

#include <chrono>
#include <utility>

#include "runtime/accounting/meter.h"
#include "runtime/session.h"
#include "tools/bench/node_clock.h"
#include "tools/bench/path_roofline.h"
#include "tools/bench/process_use.h"

namespace kinglet {
namespace {

Status ReadOnAllLanes(const ReadingSetup& setup, Session& session) {
  for (uint32_t lane = 0; lane < setup.lanes; ++lane) {
    KINGLET_RETURN_IF_ERROR(session.Encode(setup.ids, {}, lane));
  }
  return {};
}

}  // namespace

Result<BenchResult> MeasureReading(const std::shared_ptr<const Model>& model,
                                   const ReadingSetup& setup,
                                   const std::function<void(uint64_t)>& progress) {
  const Plan& plan = model->plan();
  SessionOptions options;
  options.lanes = static_cast<uint32_t>(setup.lanes);
  options.threads = static_cast<uint32_t>(setup.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model, options));
  BenchResult result;
  result.query.mode = BenchMode::kRead;
  result.lanes = setup.lanes;
  result.threads = setup.threads;
  result.backend = model->backend().name;
  result.timed = setup.texts;
  result.text_length = setup.ids.size();
  const double tokens = static_cast<double>(setup.lanes * setup.ids.size());
  KINGLET_RETURN_IF_ERROR(ReadOnAllLanes(setup, *session));
  NodeClock clock(plan);
  std::vector<double> us;
  for (uint64_t i = 0; i < setup.texts; ++i) {
    const long before = Interruptions();
    const auto start = std::chrono::steady_clock::now();
    KINGLET_RETURN_IF_ERROR(ReadOnAllLanes(setup, *session));
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    result.interrupted += Interruptions() != before;
    us.push_back(1e6 * time.count() / tokens);
    clock.Attach(*session);
    const Status observed = ReadOnAllLanes(setup, *session);
    NodeClock::Detach(*session);
    KINGLET_RETURN_IF_ERROR(observed);
    progress(i + 1);
  }
  result.us_per_token = Summarise(std::move(us));
  const Trace trace = EncoderTrace(plan, setup.ids);
  const std::vector<OperationTally> operations =
      CountNodes(plan, TraitsOf(model->backend()), trace);
  const double all_tokens = tokens * static_cast<double>(setup.texts);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    result.nodes.push_back({plan.nodes[i].name, 1e6 * clock.Seconds(i) / all_tokens, 0,
                            operations[i].multiplications});
  }
  const size_t encoder = plan.encoder->sweeps.front().begin;
  KINGLET_RETURN_IF_ERROR(
      MeasurePathRoofline(*model, trace.paths.begin()->first, {}, setup.threads, result));
  // The other nodes answer queries.
  result.nodes.erase(result.nodes.begin(), result.nodes.begin() + static_cast<ptrdiff_t>(encoder));
  AddRemainder(result);
  result.peak_rss_bytes = PeakResidentBytes();
  return result;
}

}  // namespace kinglet
