// Which context nodes must run again where only some tensors of a model changed, and what the nodes
// that do not run leave behind for them.
#ifndef KINGLET_RUNTIME_CONTEXT_TOKENIZED_TEXT_H_
#define KINGLET_RUNTIME_CONTEXT_TOKENIZED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"

namespace kinglet {

struct PartialContext {
  // A buffer that holds, when run `before_run` begins (or, if that is the number of runs,
  // when the context ends), what nodes that do not run have computed.
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
  uint64_t kept_bytes = 0;  // of all of them, for one token

  bool operator==(const PartialContext&) const = default;
};

// The cut of a plan whose weights `changed` are others. Nodes that write a ring which other nodes
// read run in any case, so that rings are whole. REQUIRES: no encoder.
PartialContext MakePartialContext(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                  std::span<const WeightId> changed);

// Whether a cut of one plan serves the other: the same nodes in the same order, on the same
// buffers.
bool HaveTheSameNodes(const Plan& a, const Plan& b);

// Copies what the cut keeps before a run between a frame and `memory`, which has kept_bytes of one
// token.
void CopyKept(const PartialContext& cut, size_t run, const BufferLayout& layout,
              const StreamFrame& frame, std::byte* memory);
void RestoreKept(const PartialContext& cut, size_t run, const BufferLayout& layout,
                 const std::byte* memory, const StreamFrame& frame);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CONTEXT_TOKENIZED_TEXT_H_
