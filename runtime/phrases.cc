#include "runtime/phrases.h"

#include <algorithm>
#include <cstddef>

namespace kinglet {

Phrases::State Phrases::Child(State node, uint32_t unit) const {
  const auto& children = nodes_[node].children;
  const auto at = std::lower_bound(children.begin(), children.end(), std::pair(unit, State{0}));
  return at != children.end() && at->first == unit ? at->second : kNone;
}

void Phrases::Add(std::span<const uint32_t> units, double bonus) {
  State node = kNone;
  for (const uint32_t unit : units) {
    State next = Child(node, unit);
    if (next == kNone) {
      next = static_cast<State>(nodes_.size());
      nodes_.push_back({.parent = node, .step = bonus});
      auto& children = nodes_[node].children;
      const std::pair entry(unit, next);
      children.insert(std::upper_bound(children.begin(), children.end(), entry), entry);
    }
    nodes_[next].step = std::max(nodes_[next].step, bonus);
    node = next;
  }
  nodes_[node].own += bonus * static_cast<double>(units.size());
}

void Phrases::Link() {
  std::vector<State> queue = {kNone};  // shorter nodes first
  std::vector<double> path(nodes_.size());
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const auto& [unit, child] : nodes_[queue[i]].children) {
      Node& node = nodes_[child];
      const State found =
          node.parent == kNone ? kNone : Next(nodes_[node.parent].shorter, unit).after;
      node.shorter = found;
      path[child] = path[node.parent] + node.step;
      node.open = node.children.empty() ? nodes_[found].open : path[child];
      node.closed = node.own + nodes_[found].closed;
      queue.push_back(child);
    }
  }
}

Phrases::Step Phrases::Next(State before, uint32_t unit) const {
  State at = before, after = Child(at, unit);
  while (after == kNone && at != kNone) {
    at = nodes_[at].shorter;
    after = Child(at, unit);
  }
  return {after, Growth(before, after)};
}

void Phrases::Bonuses(State before, std::span<double> out) const {
  std::fill(out.begin(), out.end(), Growth(before, kNone));
  // The longest end of the text that a unit continues counts: it comes last.
  std::vector<State> ends = {before};
  while (ends.back() != kNone) ends.push_back(nodes_[ends.back()].shorter);
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) {
    for (const auto& [unit, after] : nodes_[*end].children) {
      if (unit < out.size()) out[unit] = Growth(before, after);
    }
  }
}

}  // namespace kinglet
