// Scores sequences that share beginnings, such as a recogniser's hypotheses of an utterance. Each
// shared token is processed once, and its stream is forked where the sequences diverge.
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

// A tree whose nodes are tokens: node n is token ids[n] after node parents[n] < n. A node whose
// parent is kNoParent begins a stream, and any number of nodes may.
struct PrefixTree {
  std::vector<uint32_t> parents, ids;

  size_t size() const { return ids.size(); }
};

// Builds a tree from sequences. A beginning that several sequences share is stored once.
class PrefixTreeBuilder {
 public:
  // Separates the sequences that follow from those before: they share no nodes.
  void BeginRoot() { children_.clear(); }
  // Adds a sequence and returns its nodes, in order. REQUIRES: fewer than 2^32 - 1 nodes in all.
  std::vector<uint32_t> Add(std::span<const uint32_t> sequence);

  const PrefixTree& tree() const { return tree_; }

 private:
  PrefixTree tree_;
  std::unordered_map<uint64_t, uint32_t> children_;  // by parent and id
};

// values[n] = log p of node n's token after the nodes that lead to node n, or 0 if its parent is
// kNoParent: the bits of a stream that processes these tokens alone, with any number of lanes and
// threads. Returns the number of tokens that were processed, one for each node that is a parent;
// nodes of one parent and one token count once.
//
// The streams of the session's lanes are replaced; afterwards, also after an error, every lane is
// reset. While a branch waits for a lane, a Beam keeps the state before it; the deepest branches go
// first, so that few wait. Errors: KINGLET_INVALID_ARGUMENT unless parents, ids and values have
// one length and each parent is before its node; KINGLET_ID_OUT_OF_RANGE, naming the node; those of
// stepping and querying a session. Throws std::bad_alloc, with every lane reset.
Result<uint64_t> ScoreTree(std::span<const uint32_t> parents, std::span<const uint32_t> ids,
                           Session& session, std::span<double> values);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PREFIX_TREE_H_
