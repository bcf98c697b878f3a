// Which context steps must run again where only some tensors of a model changed, and what the steps
// that do not run leave behind for them.
#ifndef KINGLET_RUNTIME_CONTEXT_CUT_H_
#define KINGLET_RUNTIME_CONTEXT_CUT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"

namespace kinglet {

struct ContextCut {
  // A buffer that holds, when run `before_run` begins (or, if that is the number of runs,
  // when the context ends), what steps that do not run have computed.
  struct Kept {
    size_t before_run;
    BufferId buffer;
    uint64_t bytes;
    bool operator==(const Kept&) const = default;
  };
  struct Run {
    size_t begin, end;  // steps of the plan
    bool operator==(const Run&) const = default;
  };
  std::vector<Run> runs;    // in order
  std::vector<Kept> kept;   // in order of before_run
  uint64_t kept_bytes = 0;  // of all of them, for one token

  bool operator==(const ContextCut&) const = default;
};

// The cut of a plan whose weights `changed` are others. Steps that write a ring which other steps
// read run in any case, so that rings are whole. REQUIRES: no encoder.
ContextCut CutContext(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                      std::span<const WeightId> changed);

// Whether a cut of one plan serves the other: the same steps in the same order, on the same
// buffers.
bool HaveTheSameSteps(const Plan& a, const Plan& b);

// Copies what the cut keeps before a run between a frame and `memory`, which has kept_bytes of one
// token.
void CopyKept(const ContextCut& cut, size_t run, const BufferLayout& layout,
              const StreamFrame& frame, std::byte* memory);
void RestoreKept(const ContextCut& cut, size_t run, const BufferLayout& layout,
                 const std::byte* memory, const StreamFrame& frame);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_CONTEXT_CUT_H_
