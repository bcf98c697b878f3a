// Functions that see each node of a plan run: for calibration, measuring and tests.
#ifndef KINGLET_RUNTIME_NODE_OBSERVER_H_
#define KINGLET_RUNTIME_NODE_OBSERVER_H_

#include <functional>
#include <span>

namespace kinglet {

struct Node;
struct StreamFrame;

// Called for each node, with the frames of all streams on which the node runs. On a device the node
// has ended when the function is called, and the frames' memory is not what the node worked on.
// Logits may not be in their buffer (LogitsPlace). Must not throw.
using NodeObserver = std::function<void(const Node& node, std::span<const StreamFrame> frames)>;
struct NodeObservers {
  NodeObserver before, after;  // empty functions are not called
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_NODE_OBSERVER_H_
