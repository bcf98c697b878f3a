#include "runtime/prefix_tree.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>

#include "format/message_text.h"
#include "runtime/beam.h"

namespace kinglet {
namespace {

Status InvalidTree(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "tree", where, expected, found);
}

Status CheckTree(std::span<const uint32_t> parents, std::span<const uint32_t> ids, size_t values,
                 const Model& model) {
  if (parents.size() != ids.size() || values != ids.size()) {
    return InvalidTree("nodes", std::to_string(ids.size()) + " parents and values",
                       std::to_string(parents.size()) + " and " + std::to_string(values));
  }
  if (ids.size() >= kNoParent) {
    return InvalidTree("nodes", "fewer than " + std::to_string(kNoParent),
                       std::to_string(ids.size()));
  }
  for (size_t node = 0; node < ids.size(); ++node) {
    if (parents[node] != kNoParent && parents[node] >= node) {
      return InvalidTree(Numbered("node", node), "a parent before it",
                         std::to_string(parents[node]));
    }
    if (!model.Reads(ids[node])) {
      return model.RefuseInput(ids[node], "tree", Numbered("node", node));
    }
  }
  return {};
}

// The children of every node, in ascending order.
class ChildLists {
 public:
  explicit ChildLists(std::span<const uint32_t> parents)
      : first_(parents.size() + 1), children_(parents.size()) {
    for (const uint32_t parent : parents) {
      if (parent != kNoParent) ++first_[size_t{parent} + 1];
    }
    for (size_t node = 0; node < parents.size(); ++node) first_[node + 1] += first_[node];
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    for (uint32_t node = 0; node < parents.size(); ++node) {
      if (parents[node] != kNoParent) children_[next[parents[node]]++] = node;
    }
  }

  std::span<const uint32_t> Of(uint32_t node) const {
    return std::span(children_).subspan(first_[node], first_[node + 1] - first_[node]);
  }
  bool IsLeaf(uint32_t node) const { return first_[node] == first_[node + 1]; }

 private:
  std::vector<uint32_t> first_, children_;
};

class TreeWalk {
 public:
  TreeWalk(std::span<const uint32_t> parents, std::span<const uint32_t> ids, Session& session,
           std::span<double> values)
      : parents_(parents),
        ids_(ids),
        values_(values),
        children_(parents),
        most_(session.lanes()),
        model_(session.model()),
        beam_(session, UINT64_MAX) {}

  // The branches found last go first, so that few wait.
  Result<uint64_t> Run() {
    while (true) {
      KINGLET_RETURN_IF_ERROR(AddRoots());
      if (waiting_.empty()) return beam_.stepped();
      const size_t count = std::min(most_, waiting_.size());
      const std::vector<Branch> branches(waiting_.end() - static_cast<std::ptrdiff_t>(count),
                                         waiting_.end());
      waiting_.resize(waiting_.size() - count);
      KINGLET_RETURN_IF_ERROR(Ask(branches));
      for (const Branch& branch : branches) KINGLET_RETURN_IF_ERROR(AddChildren(branch));
    }
  }

 private:
  // A node with children, whose token is to be processed.
  struct Branch {
    Beam::Hypothesis hypothesis;
    uint32_t node;
  };

  // Lets more streams begin if lanes are free: few at a time, so that their branches can fill lanes
  // too.
  Status AddRoots() {
    size_t roots = 1 + most_ / 8;
    while (roots-- > 0 && waiting_.size() < most_ && NextRoot()) {
      KINGLET_ASSIGN_OR_RETURN(const Beam::Hypothesis start, beam_.Begin());
      KINGLET_RETURN_IF_ERROR(Add(start, root_++));
      KINGLET_RETURN_IF_ERROR(beam_.Drop({&start, 1}));
    }
    return {};
  }

  // Moves root_ to the next node that begins a stream of two tokens or more.
  bool NextRoot() {
    for (; root_ < parents_.size(); ++root_) {
      if (parents_[root_] != kNoParent) continue;
      values_[root_] = 0;
      if (!children_.IsLeaf(root_)) return true;
    }
    return false;
  }

  Status Add(Beam::Hypothesis parent, uint32_t node) {
    Beam::Hypothesis hypothesis = 0;
    KINGLET_RETURN_IF_ERROR(beam_.Step({&parent, 1}, {&ids_[node], 1}, {&hypothesis, 1}));
    waiting_.push_back({hypothesis, node});
    return {};
  }

  // Sets the values of all children.
  Status Ask(std::span<const Branch> branches) {
    std::vector<Beam::Hypothesis> hypotheses;
    std::vector<uint32_t> nodes, tokens;
    for (const Branch& branch : branches) {
      for (const uint32_t child : children_.Of(branch.node)) {
        hypotheses.push_back(branch.hypothesis);
        nodes.push_back(child);
        tokens.push_back(model_.TokenOf(ids_[child]));
      }
    }
    std::vector<double> answers(nodes.size());
    KINGLET_RETURN_IF_ERROR(beam_.LogProbabilities(hypotheses, tokens, answers));
    for (size_t i = 0; i < nodes.size(); ++i) values_[nodes[i]] = answers[i];
    return {};
  }

  Status AddChildren(const Branch& branch) {
    for (const uint32_t child : children_.Of(branch.node)) {
      if (!children_.IsLeaf(child)) KINGLET_RETURN_IF_ERROR(Add(branch.hypothesis, child));
    }
    return beam_.Drop({&branch.hypothesis, 1});
  }

  const std::span<const uint32_t> parents_, ids_;
  const std::span<double> values_;
  const ChildLists children_;
  const size_t most_;  // branches at a time
  const Model& model_;
  Beam beam_;
  std::vector<Branch> waiting_;
  uint32_t root_ = 0;  // the next node that may begin a stream
};

// Resets every lane. Returns the first error, if any.
Status ResetLanes(Session& session) {
  Status first;
  for (uint32_t lane = 0; lane < session.lanes(); ++lane) {
    const Status reset = session.Reset(lane);
    if (first.ok()) first = reset;
  }
  return first;
}

Result<uint64_t> Walk(std::span<const uint32_t> parents, std::span<const uint32_t> ids,
                      Session& session, std::span<double> values) {
  try {
    return TreeWalk(parents, ids, session, values).Run();
  } catch (const std::bad_alloc&) {
    static_cast<void>(ResetLanes(session));  // lanes have tokens that the caller does not know
    throw;
  }
}

}  // namespace

std::vector<uint32_t> PrefixTreeBuilder::Add(std::span<const uint32_t> sequence) {
  std::vector<uint32_t> path;
  path.reserve(sequence.size());
  uint32_t parent = kNoParent;
  for (const uint32_t id : sequence) {
    const auto [found, is_new] =
        children_.try_emplace(uint64_t{parent} << 32 | id, static_cast<uint32_t>(tree_.ids.size()));
    if (is_new) {
      tree_.parents.push_back(parent);
      tree_.ids.push_back(id);
    }
    parent = found->second;
    path.push_back(parent);
  }
  return path;
}

Result<uint64_t> ScoreTree(std::span<const uint32_t> parents, std::span<const uint32_t> ids,
                           Session& session, std::span<double> values) {
  KINGLET_RETURN_IF_ERROR(CheckTree(parents, ids, values.size(), session.model()));
  Result<uint64_t> stepped = Walk(parents, ids, session, values);
  const Status reset = ResetLanes(session);
  if (stepped.ok() && !reset.ok()) return reset;
  return stepped;
}

}  // namespace kinglet
