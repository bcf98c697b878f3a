#include "runtime/context_cut.h"

#include <algorithm>
#include <cstring>

namespace kinglet {
namespace {

// What a step reads and writes.
struct StepOperands : OperandVisitor {
  void Reads(BufferId id) { reads.push_back(id); }
  void Writes(BufferId id) { writes.push_back(id); }
  void Weight(WeightId id) { weights.push_back(id); }

  std::vector<BufferId> reads, writes;
  std::vector<WeightId> weights;
};

std::vector<StepOperands> OperandsOf(const Plan& plan) {
  std::vector<StepOperands> operands(plan.steps.size());
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    VisitOperands(plan, plan.steps[i].op, operands[i]);
  }
  return operands;
}

class Cutter {
 public:
  Cutter(const Plan& plan, std::span<const WeightId> changed)
      : plan_(plan), steps_(OperandsOf(plan)), runs_(plan.steps.size()) {
    FindChanged(changed);
    // Steps outside the context always run.
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (i < plan.context.begin || i >= plan.context.end) runs_[i] = 1;
    }
    while (AddWritersOfStates()) {
    }
  }

  ContextCut Cut(const BufferLayout& layout, size_t real_bytes) const {
    ContextCut cut;
    // Whether memory has the buffer's value of the steps so far; scratch nobody wrote needs none.
    std::vector<uint8_t> is_there(plan_.buffers.size(), 1);
    const auto keep = [&](BufferId id) {
      const auto buffer = static_cast<size_t>(id);
      if (HasRing(id) || is_there[buffer] != 0) return;
      is_there[buffer] = 1;
      const uint64_t bytes = BytesOf(plan_.buffer(id), layout[id].count, real_bytes);
      cut.kept.push_back({cut.runs.size(), id, bytes});
      cut.kept_bytes += bytes;
    };
    for (size_t i = plan_.context.begin; i < plan_.context.end;) {
      if (runs_[i] == 0) {
        for (const BufferId id : steps_[i].writes) is_there[static_cast<size_t>(id)] = 0;
        ++i;
        continue;
      }
      ContextCut::Run run = {i, i};
      for (; run.end < plan_.context.end && runs_[run.end] != 0; ++run.end) {
        for (const BufferId id : steps_[run.end].reads) keep(id);
        for (const BufferId id : steps_[run.end].writes) is_there[static_cast<size_t>(id)] = 1;
      }
      cut.runs.push_back(run);
      i = run.end;
    }
    for (size_t i = plan_.context.end; i < steps_.size(); ++i) {
      for (const BufferId id : steps_[i].reads) {
        if (!plan_.buffer(id).of_queries) keep(id);
      }
    }
    // What the next token finds.
    for (size_t buffer = 0; buffer < plan_.buffers.size(); ++buffer) {
      if (plan_.buffers[buffer].state) keep(static_cast<BufferId>(buffer));
    }
    return cut;
  }

 private:
  // A state buffer of several slots, of which a token writes one. Every other buffer is written as
  // a whole.
  bool HasRing(BufferId id) const {
    return plan_.buffer(id).state && plan_.buffer(id).ring.slots > 1;
  }

  // Steps whose results change: they read a changed weight or what such a step wrote, for this
  // token or, in a state buffer, for an earlier one.
  void FindChanged(std::span<const WeightId> changed) {
    std::vector<uint8_t> state(plan_.buffers.size());
    for (bool again = true; again;) {
      again = false;
      std::vector<uint8_t> other = state;
      for (size_t i = plan_.context.begin; i < plan_.context.end; ++i) {
        const StepOperands& step = steps_[i];
        const bool reads =
            std::any_of(step.reads.begin(), step.reads.end(),
                        [&](BufferId id) { return other[static_cast<size_t>(id)] != 0; }) ||
            std::any_of(step.weights.begin(), step.weights.end(), [&](WeightId id) {
              return std::find(changed.begin(), changed.end(), id) != changed.end();
            });
        if (!reads) {
          // What it writes, and does not read, no longer has a changed value.
          for (const BufferId id : step.writes) {
            if (!HasRing(id)) other[static_cast<size_t>(id)] = 0;
          }
          continue;
        }
        runs_[i] = 1;
        for (const BufferId id : step.writes) {
          other[static_cast<size_t>(id)] = 1;
        }
      }
      for (size_t buffer = 0; buffer < other.size(); ++buffer) {
        if (!plan_.buffers[buffer].state || other[buffer] == 0 || state[buffer] != 0) continue;
        state[buffer] = 1;
        again = true;
      }
    }
  }

  // Lets run what writes a ring that a running step reads. Whether there was any.
  bool AddWritersOfStates() {
    std::vector<uint8_t> is_read(plan_.buffers.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (runs_[i] == 0) continue;
      for (const BufferId id : steps_[i].reads) is_read[static_cast<size_t>(id)] = 1;
    }
    bool any = false;
    for (size_t i = plan_.context.begin; i < plan_.context.end; ++i) {
      if (runs_[i] != 0) continue;
      const auto is_needed = [&](BufferId id) {
        return HasRing(id) && is_read[static_cast<size_t>(id)] != 0;
      };
      if (!std::any_of(steps_[i].writes.begin(), steps_[i].writes.end(), is_needed)) continue;
      runs_[i] = 1;
      any = true;
    }
    return any;
  }

  const Plan& plan_;
  std::vector<StepOperands> steps_;
  std::vector<uint8_t> runs_;  // by step
};

template <class Copy>
void ForEachKept(const ContextCut& cut, size_t run, const BufferLayout& layout,
                 const StreamFrame& frame, const Copy& copy) {
  uint64_t at = 0;
  for (const ContextCut::Kept& kept : cut.kept) {
    if (kept.before_run == run) copy(layout[kept.buffer].At<std::byte>(frame), at, kept.bytes);
    at += kept.bytes;
  }
}

}  // namespace

ContextCut CutContext(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                      std::span<const WeightId> changed) {
  return Cutter(plan, changed).Cut(layout, real_bytes);
}

bool HaveTheSameSteps(const Plan& a, const Plan& b) {
  const auto same_step = [](const Step& x, const Step& y) {
    return x.name == y.name && x.op.index() == y.op.index();
  };
  const auto same_buffer = [](const BufferSpec& x, const BufferSpec& y) {
    return x.name == y.name && x.element == y.element && x.count == y.count && x.state == y.state;
  };
  return a.context.begin == b.context.begin && a.context.end == b.context.end &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), same_step) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    same_buffer);
}

void CopyKept(const ContextCut& cut, size_t run, const BufferLayout& layout,
              const StreamFrame& frame, std::byte* memory) {
  ForEachKept(cut, run, layout, frame, [&](const std::byte* buffer, uint64_t at, uint64_t bytes) {
    std::memcpy(memory + at, buffer, bytes);
  });
}

void RestoreKept(const ContextCut& cut, size_t run, const BufferLayout& layout,
                 const std::byte* memory, const StreamFrame& frame) {
  ForEachKept(cut, run, layout, frame, [&](std::byte* buffer, uint64_t at, uint64_t bytes) {
    std::memcpy(buffer, memory + at, bytes);
  });
}

}  // namespace kinglet
