// Phrases that a search prefers, such as names that a speaker is expected to say.
#ifndef KINGLET_RUNTIME_PHRASES_H_
#define KINGLET_RUNTIME_PHRASES_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kinglet {

// A trie of phrases, searched as Aho and Corasick (1975) do. A phrase has a bonus for each of its
// units (tokens or words). A text's bonus is that of all units of each phrase that occurs in it,
// and besides, while the text ends with the beginning of a phrase, that of the longest such
// beginning. The latter is taken back when the text continues otherwise, but for the part of it
// that begins another phrase. Of phrases that begin alike, the largest bonus of a unit counts until
// they differ.
class Phrases {
 public:
  // The end of a text: the longest beginning of a phrase that it ends with.
  using State = uint32_t;
  static constexpr State kNone = 0;

  // REQUIRES: `units` is not empty; `bonus` is finite. May throw std::bad_alloc.
  void Add(std::span<const uint32_t> units, double bonus);
  // Prepares for the functions below. May throw std::bad_alloc.
  void Link();
  bool empty() const { return nodes_.size() == 1; }

  // --- REQUIRES: Link was called after the last Add.

  struct Step {
    State after;
    double bonus;  // by which that of the text grows
  };
  Step Next(State before, uint32_t unit) const;
  // By which the bonus grows where the text ends: at most nothing, if bonuses are positive.
  double End(State before) const { return -nodes_[before].open; }
  // out[unit] = Next(before, unit).bonus for every unit.
  void Bonuses(State before, std::span<double> out) const;

 private:
  struct Node {
    std::vector<std::pair<uint32_t, State>> children = {};  // ascending by unit
    State parent = kNone, shorter = kNone;  // `shorter`: the longest end of it that is a node
    double step = 0;                        // the largest bonus of its last unit
    double own = 0;                         // of the phrases that end here
    double open = 0, closed = 0;  // of beginnings, and of phrases that end here and at `shorter` ..
  };
  State Child(State node, uint32_t unit) const;  // kNone if there is none
  double Growth(State before, State after) const {
    return nodes_[after].closed + nodes_[after].open - nodes_[before].open;
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_PHRASES_H_
