// Which context nodes must run again where only some tensors of a model changed, and which results
// of the other nodes they need.
#ifndef KINGLET_RUNTIME_PARTIAL_CONTEXT_H_
#define KINGLET_RUNTIME_PARTIAL_CONTEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"

namespace kinglet {

// The nodes of a plan's context that must run again for a token, as runs of consecutive nodes.
struct PartialContext {
  // A buffer that contains results of nodes that do not run again. The results must be in the
  // buffer when run `before_run` begins, or, if that is the number of runs, when the context ends.
  struct Kept {
    size_t before_run;
    BufferId buffer;
    uint64_t bytes;
    bool operator==(const Kept&) const = default;
  };
  struct Run {
    size_t begin, end;  // nodes of the plan
    bool operator==(const Run&) const = default;
  };
  std::vector<Run> runs;    // in order
  std::vector<Kept> kept;   // in order of before_run
  uint64_t kept_bytes = 0;  // the bytes of all `kept`, for one token

  bool operator==(const PartialContext&) const = default;
};

// The nodes that must run again after the weights `changed` got new values. Nodes that write a ring
// which other nodes read run in any case, so that rings are complete. REQUIRES: no encoder.
PartialContext MakePartialContext(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                  std::span<const WeightId> changed);

// Whether a PartialContext of one plan can be used with the other: both have the same nodes in the
// same order, on the same buffers.
bool HaveTheSameNodes(const Plan& a, const Plan& b);

// Copies the buffers that are kept before run `run` from a frame to `memory`, which has
// partial.kept_bytes for the token.
void CopyKept(const PartialContext& partial, size_t run, const BufferLayout& layout,
              const StreamFrame& frame, std::byte* memory);
// Copies the buffers that are kept before run `run` from `memory`, which CopyKept filled, to a
// frame.
void RestoreKept(const PartialContext& partial, size_t run, const BufferLayout& layout,
                 const std::byte* memory, const StreamFrame& frame);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PARTIAL_CONTEXT_H_
