#include "runtime/partial_context.h"

#include <algorithm>
#include <cstring>

namespace kinglet {
namespace {

// The buffers that a node reads and writes, and its weights.
struct NodeOperands : OperandVisitor {
  void Reads(BufferId id) { reads.push_back(id); }
  void Writes(BufferId id) { writes.push_back(id); }
  void Weight(WeightId id) { weights.push_back(id); }

  std::vector<BufferId> reads, writes;
  std::vector<WeightId> weights;
};

std::vector<NodeOperands> OperandsOf(const Plan& plan) {
  std::vector<NodeOperands> operands(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    VisitOperands(plan, plan.nodes[i].op, operands[i]);
  }
  return operands;
}

class ContextSplitter {
 public:
  ContextSplitter(const Plan& plan, std::span<const WeightId> changed)
      : plan_(plan), nodes_(OperandsOf(plan)), runs_(plan.nodes.size()) {
    FindChanged(changed);
    // Nodes outside the context always run.
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (i < plan.context.begin || i >= plan.context.end) runs_[i] = 1;
    }
    while (AddWritersOfStates()) {
    }
  }

  PartialContext Make(const BufferLayout& layout, size_t real_bytes) const {
    PartialContext partial;
    // By buffer: whether the frame has the value that the nodes so far compute. Scratch that no
    // node has written counts as present.
    std::vector<uint8_t> is_present(plan_.buffers.size(), 1);
    const auto keep = [&](BufferId id) {
      const auto buffer = static_cast<size_t>(id);
      if (HasRing(id) || is_present[buffer] != 0) return;
      is_present[buffer] = 1;
      const uint64_t bytes = BytesOf(plan_.buffer(id), layout[id].count, real_bytes);
      partial.kept.push_back({partial.runs.size(), id, bytes});
      partial.kept_bytes += bytes;
    };
    for (size_t i = plan_.context.begin; i < plan_.context.end;) {
      if (runs_[i] == 0) {
        for (const BufferId id : nodes_[i].writes) is_present[static_cast<size_t>(id)] = 0;
        ++i;
        continue;
      }
      PartialContext::Run run = {i, i};
      for (; run.end < plan_.context.end && runs_[run.end] != 0; ++run.end) {
        for (const BufferId id : nodes_[run.end].reads) keep(id);
        for (const BufferId id : nodes_[run.end].writes) is_present[static_cast<size_t>(id)] = 1;
      }
      partial.runs.push_back(run);
      i = run.end;
    }
    for (size_t i = plan_.context.end; i < nodes_.size(); ++i) {
      for (const BufferId id : nodes_[i].reads) {
        if (!plan_.buffer(id).of_queries) keep(id);
      }
    }
    // The next token reads the states.
    for (size_t buffer = 0; buffer < plan_.buffers.size(); ++buffer) {
      if (plan_.buffers[buffer].state) keep(static_cast<BufferId>(buffer));
    }
    return partial;
  }

 private:
  // Whether the buffer is a state of several slots, of which a token writes one. Every other buffer
  // is written completely.
  bool HasRing(BufferId id) const {
    return plan_.buffer(id).state && plan_.buffer(id).ring.slots > 1;
  }

  // Finds the nodes whose results change: those that read a changed weight, or a result of a node
  // that changes, for this token or, in a state buffer, for an earlier one.
  void FindChanged(std::span<const WeightId> changed) {
    std::vector<uint8_t> state(plan_.buffers.size());
    for (bool again = true; again;) {
      again = false;
      std::vector<uint8_t> other = state;
      for (size_t i = plan_.context.begin; i < plan_.context.end; ++i) {
        const NodeOperands& node = nodes_[i];
        const bool reads =
            std::any_of(node.reads.begin(), node.reads.end(),
                        [&](BufferId id) { return other[static_cast<size_t>(id)] != 0; }) ||
            std::any_of(node.weights.begin(), node.weights.end(), [&](WeightId id) {
              return std::find(changed.begin(), changed.end(), id) != changed.end();
            });
        if (!reads) {
          // A buffer that the node overwrites no longer has a changed value.
          for (const BufferId id : node.writes) {
            if (!HasRing(id)) other[static_cast<size_t>(id)] = 0;
          }
          continue;
        }
        runs_[i] = 1;
        for (const BufferId id : node.writes) {
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

  // Adds the nodes that write a ring which a running node reads. Returns whether there was one.
  bool AddWritersOfStates() {
    std::vector<uint8_t> is_read(plan_.buffers.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (runs_[i] == 0) continue;
      for (const BufferId id : nodes_[i].reads) is_read[static_cast<size_t>(id)] = 1;
    }
    bool any = false;
    for (size_t i = plan_.context.begin; i < plan_.context.end; ++i) {
      if (runs_[i] != 0) continue;
      const auto is_needed = [&](BufferId id) {
        return HasRing(id) && is_read[static_cast<size_t>(id)] != 0;
      };
      if (!std::any_of(nodes_[i].writes.begin(), nodes_[i].writes.end(), is_needed)) continue;
      runs_[i] = 1;
      any = true;
    }
    return any;
  }

  const Plan& plan_;
  std::vector<NodeOperands> nodes_;
  std::vector<uint8_t> runs_;  // by node
};

template <class Copy>
void ForEachKept(const PartialContext& partial, size_t run, const BufferLayout& layout,
                 const StreamFrame& frame, const Copy& copy) {
  uint64_t at = 0;
  for (const PartialContext::Kept& kept : partial.kept) {
    if (kept.before_run == run) copy(layout[kept.buffer].At<std::byte>(frame), at, kept.bytes);
    at += kept.bytes;
  }
}

}  // namespace

PartialContext MakePartialContext(const Plan& plan, const BufferLayout& layout, size_t real_bytes,
                                  std::span<const WeightId> changed) {
  return ContextSplitter(plan, changed).Make(layout, real_bytes);
}

bool HaveTheSameNodes(const Plan& a, const Plan& b) {
  const auto same_node = [](const Node& x, const Node& y) {
    return x.name == y.name && x.op.index() == y.op.index();
  };
  const auto same_buffer = [](const BufferSpec& x, const BufferSpec& y) {
    return x.name == y.name && x.element == y.element && x.count == y.count && x.state == y.state;
  };
  return a.context.begin == b.context.begin && a.context.end == b.context.end &&
         std::equal(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), same_node) &&
         std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    same_buffer);
}

void CopyKept(const PartialContext& partial, size_t run, const BufferLayout& layout,
              const StreamFrame& frame, std::byte* memory) {
  ForEachKept(partial, run, layout, frame,
              [&](const std::byte* buffer, uint64_t at, uint64_t bytes) {
                std::memcpy(memory + at, buffer, bytes);
              });
}

void RestoreKept(const PartialContext& partial, size_t run, const BufferLayout& layout,
                 const std::byte* memory, const StreamFrame& frame) {
  ForEachKept(partial, run, layout, frame, [&](std::byte* buffer, uint64_t at, uint64_t bytes) {
    std::memcpy(buffer, memory + at, bytes);
  });
}

}  // namespace kinglet
