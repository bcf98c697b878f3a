#include "runtime/prefix_tree.h"

#include <algorithm>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "format/message_text.h"
#include "runtime/state.h"

namespace kinglet {
namespace {

Status InvalidTree(const std::string& where, const std::string& expected,
                   const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "tree", where, expected, found);
}

Status CheckTree(std::span<const uint32_t> parents, std::span<const uint32_t> ids, size_t values,
                 uint32_t vocabulary_size) {
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
    if (ids[node] >= vocabulary_size) {
      return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "tree", Numbered("node", node),
                             "a token id below " + std::to_string(vocabulary_size),
                             std::to_string(ids[node]));
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
        session_(session),
        values_(values),
        children_(parents),
        next_(session.lanes()),
        together_(Session::LanesRemembered(session.model(), session.lanes())) {}

  Result<uint64_t> Run() {
    uint64_t stepped = 0;
    while (true) {
      KINGLET_RETURN_IF_ERROR(FillLanes());
      if (lanes_.empty()) return stepped;
      nodes_.clear();
      tokens_.clear();
      for (const uint32_t lane : lanes_) {
        nodes_.push_back(*next_[lane]);
        tokens_.push_back(ids_[nodes_.back()]);
      }
      KINGLET_RETURN_IF_ERROR(session_.StepLanes(lanes_, tokens_));
      stepped += lanes_.size();
      for (size_t begin = 0; begin < lanes_.size(); begin += together_) {
        KINGLET_RETURN_IF_ERROR(Ask(begin, std::min(lanes_.size(), begin + together_)));
      }
      for (size_t i = 0; i < lanes_.size(); ++i) KINGLET_RETURN_IF_ERROR(Branch(lanes_[i]));
    }
  }

 private:
  // A node whose token is to be processed after this state.
  struct Waiting {
    State before;
    uint32_t node;
  };

  // Gives free lanes the branch that was found last, or else the next beginning of a stream. Few
  // beginnings start at a time, so that their branches can fill lanes too, and few states wait.
  Status FillLanes() {
    lanes_.clear();
    size_t roots = 1 + next_.size() / 8;
    for (uint32_t lane = 0; lane < next_.size(); ++lane) {
      if (!next_[lane] && !waiting_.empty()) {
        KINGLET_RETURN_IF_ERROR(session_.Restore(waiting_.back().before, lane));
        next_[lane] = waiting_.back().node;
        waiting_.pop_back();
      } else if (!next_[lane] && roots > 0 && NextRoot()) {
        --roots;
        KINGLET_RETURN_IF_ERROR(session_.Reset(lane));
        next_[lane] = root_++;
      }
      if (next_[lane]) lanes_.push_back(lane);
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

  // Sets the values of the children of nodes_[begin, end). The query for all first children
  // computes most of what the queries for the others need.
  Status Ask(size_t begin, size_t end) {
    tokens_.clear();
    for (size_t i = begin; i < end; ++i) tokens_.push_back(ids_[children_.Of(nodes_[i]).front()]);
    answers_.resize(tokens_.size());
    const auto lanes = std::span<const uint32_t>(lanes_).subspan(begin, end - begin);
    KINGLET_RETURN_IF_ERROR(session_.LogProbabilityLanes(lanes, tokens_, answers_));
    for (size_t i = begin; i < end; ++i) {
      values_[children_.Of(nodes_[i]).front()] = answers_[i - begin];
    }
    for (size_t i = begin; i < end; ++i) {
      const auto others = children_.Of(nodes_[i]).subspan(1);
      if (others.empty()) continue;
      tokens_.clear();
      for (const uint32_t child : others) tokens_.push_back(ids_[child]);
      answers_.resize(tokens_.size());
      KINGLET_RETURN_IF_ERROR(session_.LogProbabilitiesOf(tokens_, answers_, lanes_[i]));
      for (size_t j = 0; j < others.size(); ++j) values_[others[j]] = answers_[j];
    }
    return {};
  }

  // The first child with children continues in the lane; the other ones with children wait.
  Status Branch(uint32_t lane) {
    const auto children = children_.Of(*next_[lane]);
    next_[lane].reset();
    const size_t already = waiting_.size();
    std::optional<State> state;
    for (const uint32_t child : children) {
      if (children_.IsLeaf(child)) continue;
      if (!next_[lane]) {
        next_[lane] = child;
        continue;
      }
      if (!state) {
        KINGLET_ASSIGN_OR_RETURN(state, session_.Save(lane));
      }
      waiting_.push_back({*state, child});
    }
    std::reverse(waiting_.begin() + static_cast<std::ptrdiff_t>(already), waiting_.end());
    return {};
  }

  const std::span<const uint32_t> parents_, ids_;
  Session& session_;
  const std::span<double> values_;
  const ChildLists children_;
  std::vector<std::optional<uint32_t>> next_;  // by lane: the node whose token comes next
  std::vector<Waiting> waiting_;
  uint32_t root_ = 0;
  const uint64_t together_;  // lanes for which a session remembers what queries computed
  std::vector<uint32_t> lanes_, nodes_, tokens_;
  std::vector<double> answers_;
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
  KINGLET_RETURN_IF_ERROR(
      CheckTree(parents, ids, values.size(), session.model().vocabulary_size()));
  Result<uint64_t> stepped = Walk(parents, ids, session, values);
  const Status reset = ResetLanes(session);
  if (stepped.ok() && !reset.ok()) return reset;
  return stepped;
}

}  // namespace kinglet
