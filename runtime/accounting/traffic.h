// The memory that the nodes of a plan touch for one token: the weights as the backend lays them
// out, and the parts of the stream's state and scratch that the token's path uses. Traffic is a
// pure function of plan, layout, kernels and path, so that a measured time can be compared with
// that of reading exactly this memory. Sizes are in bytes.
//
// Not included: code, what a kernel keeps in registers and on the stack, the table in which a query
// finds a token's weight in the neural cache, and the copies that make a token undoable.
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

// A part of a stream's memory.
struct FrameRange {
  bool state;       // whether in state, else in scratch
  bool of_queries;  // BufferSpec::of_queries
  uint64_t offset, bytes;
};

struct NodeTraffic {
  std::vector<MemoryRange> weights;  // weights read; owned by the kernels
  std::vector<FrameRange> read, written;
};

// The bytes of a stream's own state and scratch that one node reads and writes for a token of this
// path. REQUIRES: the path runs the node.
uint64_t OwnBytes(const Plan& plan, const BufferLayout& layout, size_t real_bytes, size_t node,
                  const TokenPath& path);

// The tokens of computed clusters that a query looks at.
enum class QueryTokens : uint8_t {
  kNamed,   // given tokens
  kLikely,  // the tokens of tiles whose largest logit shows that they can be among the best
  kEvery,   // all tokens, whose clusters were computed for several streams together before
  kAnswer   // all tokens of one stream, with logits made in the answer (ClusterMadeInAnswer)
};

// The traffic of each node of the plan; empty for a node that the path does not run. The token is
// the first token of the path's bin; all tokens of a bin touch the same amount. For a query that
// does not look at every token, kernels do not store logits that they can make again (LogitMaker).
// REQUIRES: kernels and layout are the plan's, for floats of `real_bytes` bytes.
std::vector<NodeTraffic> TrafficOf(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                   std::span<const Kernel> kernels, const TokenPath& path,
                                   QueryTokens tokens = QueryTokens::kEvery);

// What a query touches in addition to its nodes and its answer: the tokens of the neural cache with
// their weights, and the largest logits of tiles or every logit once more. For kLikely only the
// largest logits of tiles count, because the tiles looked at depend on the values of the weights.
NodeTraffic QueryTraffic(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                         std::span<const Kernel> kernels, const TokenPath& path,
                         QueryTokens tokens);

// The addresses of one stream's memory.
struct StreamMemory {
  const std::byte* scratch;
  const std::byte* state;
  const std::byte* query_scratch;  // `scratch` for the buffers of queries; may be the same
};
// The memory that the nodes touch on all streams together, as disjoint, non-empty ranges in order
// of address. A byte that several nodes, streams or tensors share counts once.
std::vector<MemoryRange> DistinctMemory(std::span<const NodeTraffic> nodes,
                                        std::span<const StreamMemory> streams);
// The bytes of `ranges` as disjoint, non-empty ranges in order of address.
std::vector<MemoryRange> Merged(std::vector<MemoryRange> ranges);
uint64_t TotalBytes(std::span<const MemoryRange> ranges);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_TRAFFIC_H_
