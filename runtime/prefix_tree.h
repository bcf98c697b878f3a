// Scores sequences that share beginnings, such as a recogniser's hypotheses of an utterance: each
// shared token is processed once, and its stream forked where the sequences part.
#ifndef KINGLET_RUNTIME_PREFIX_TREE_H_
#define KINGLET_RUNTIME_PREFIX_TREE_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "kinglet/status.h"
#include "runtime/session.h"

namespace kinglet {

inline constexpr uint32_t kNoParent = std::numeric_limits<uint32_t>::max();

// Nodes are tokens: node n is word ids[n] behind node parents[n] < n. A node of kNoParent begins a
// stream of its own; any number may.
struct PrefixTree {
  std::vector<uint32_t> parents, ids;

  size_t size() const { return ids.size(); }
};

// Puts sequences into a tree, each beginning that two of them share once.
class PrefixTreeBuilder {
 public:
  // What follows shares nothing with the sequences before.
  void BeginRoot() { children_.clear(); }
  // The sequence's nodes, in order. REQUIRES: fewer than 2^32 - 1 nodes in all.
  std::vector<uint32_t> Add(std::span<const uint32_t> sequence);

  const PrefixTree& tree() const { return tree_; }

 private:
  PrefixTree tree_;
  std::unordered_map<uint64_t, uint32_t> children_;  // by parent and id
};

// values[n] = log p of node n's word behind the nodes that lead to it, 0 for one of kNoParent: the
// bits of a stream that processes these tokens alone, with any number of lanes and threads. Returns
// the number of tokens that were processed: nodes that others stand behind.
//
// The streams of the session's lanes are replaced; afterwards, also after an error, every lane is
// reset. Where branches wait for a lane the state before them is kept; the deepest go first, so
// that few do. Errors: KINGLET_INVALID_ARGUMENT unless parents, ids and values have one length and
// each parent stands before its node; KINGLET_ID_OUT_OF_RANGE, naming the node; those of stepping
// and querying a session. Throws std::bad_alloc, with every lane reset.
Result<uint64_t> ScoreTree(std::span<const uint32_t> parents, std::span<const uint32_t> ids,
                           Session& session, std::span<double> values);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PREFIX_TREE_H_
