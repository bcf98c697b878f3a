// The memory that one token makes the steps of a plan touch: weights as the backend laid them out,
// and the stream's own state and scratch as far as the token's path uses them. A pure function of
// plan, layout, kernels and path, so that a time can be compared with reading exactly that memory.
//
// Left out: the code, what a kernel keeps in registers and on the stack, the table in which a query
// looks up a word's weight, and what keeps a half-run token undoable.
#ifndef KINGLET_RUNTIME_ACCOUNTING_TRAFFIC_H_
#define KINGLET_RUNTIME_ACCOUNTING_TRAFFIC_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "runtime/accounting/meter.h"

namespace kinglet {

// Part of a stream's state or scratch, in bytes.
struct FrameRange {
  bool state, of_queries;  // of_queries: as BufferSpec's
  uint64_t offset, bytes;
};

struct StepTraffic {
  std::vector<MemoryRange> weights;  // read; owned by the kernels
  std::vector<FrameRange> read, written;
};

// By plan step; a step that the path does not run touches nothing. REQUIRES: kernels and layout are
// the plan's, for reals of `real_bytes`. The token is the first of the path's bin: all words of a
// bin touch the same amount.
std::vector<StepTraffic> TrafficOf(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                   std::span<const Kernel> kernels, const TokenPath& path);

// What one step reads of a stream's own state and scratch and what it writes there, in bytes, for a
// token of this path, which runs it.
uint64_t OwnBytes(const Plan& plan, const BufferLayout& layout, size_t real_bytes, size_t step,
                  const TokenPath& path);

// The words of opened clusters that a query looks at.
enum class QueryWords : uint8_t {
  kNamed,   // those that it names
  kLikely,  // those of blocks whose sums say that they can be among the best
  kEvery
};

// What a query touches beyond its steps: the cached words with their weights and the sums of
// blocks, or every logit, again. Of likely words only the sums count: what lies behind them depends
// on the weights.
StepTraffic QueryTraffic(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                         const TokenPath& path, QueryWords words);

// Where one stream's memory lies.
struct StreamMemory {
  const std::byte* scratch;
  const std::byte* state;
  const std::byte* query_scratch;  // as `scratch`, for what is of queries; may be the same
};
// What the steps of all streams touch together, each byte once however many steps, streams or
// tensors share it: disjoint ranges in order of address, none empty.
std::vector<MemoryRange> DistinctMemory(std::span<const StepTraffic> steps,
                                        std::span<const StreamMemory> streams);
// Disjoint ranges of the same bytes, in order of address, none empty.
std::vector<MemoryRange> Merged(std::vector<MemoryRange> ranges);
uint64_t TotalBytes(std::span<const MemoryRange> ranges);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_TRAFFIC_H_
