#include "tools/bench/path_roofline.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/execute.h"
#include "tools/bench/roofline.h"
#include "tools/thread_team.h"

namespace kinglet {
namespace {

constexpr size_t kRooflineReads = 20;

}  // namespace

Status MeasurePathRoofline(const Model& model, const TokenPath& path,
                           const std::optional<QueryTokens>& query, size_t threads,
                           BenchResult& result) {
  const BufferLayout& layout = model.layout();
  std::vector<AlignedMemory> owned;
  for (const uint64_t bytes : {layout.scratch_bytes, layout.state_bytes}) {
    owned.push_back(AllocateZeroed(bytes));
    if (owned.back() == nullptr) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, "bench", "roofline",
                             "memory as large as a lane's", "none left");
    }
    // Untouched pages all map to one page of zeros, which reads far too fast.
    std::memset(owned.back().get(), 1, bytes);
  }
  const StreamMemory memory = {owned[0].get(), owned[1].get(), owned[0].get()};
  const size_t real_bytes = model.backend().real_bytes;
  std::vector<NodeTraffic> traffic = TrafficOf(model.plan(), layout, real_bytes, model.kernels(),
                                               path, query.value_or(QueryTokens::kEvery));
  if (query) {
    traffic.push_back(
        QueryTraffic(model.plan(), layout, real_bytes, model.kernels(), path, *query));
  }
  std::vector<MemoryRange> all;
  for (size_t i = 0; i < traffic.size(); ++i) {
    const std::vector<MemoryRange> node = DistinctMemory({&traffic[i], 1}, {&memory, 1});
    if (i < result.nodes.size()) result.nodes[i].bytes = static_cast<double>(TotalBytes(node));
    all.insert(all.end(), node.begin(), node.end());
  }
  all = Merged(std::move(all));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> readers, ThreadTeam::Create(threads));
  result.roofline_us = 1e6 * FastestRead(all, *readers, kRooflineReads);
  result.roofline_bytes = static_cast<double>(TotalBytes(all));
  return {};
}

}  // namespace kinglet
