// Hypotheses of a search: a recogniser's, a keyboard's, a translator's. A hypothesis is a list of
// tokens, and is named by a number. Stepping one only makes another number; the network runs when a
// hypothesis is queried, on many hypotheses at once, in the lanes of a session. Each pair of a
// hypothesis and a token is processed once, however often it is made.
//
// Hypotheses form a tree: each is a token after its parent. What the network remembers of a
// hypothesis is in a lane, or is a saved State, or is absent and made again from the nearest
// ancestor that has it. Saved states are those used last that fit a number of bytes.
#ifndef KINGLET_RUNTIME_BEAM_H_
#define KINGLET_RUNTIME_BEAM_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kinglet/status.h"
#include "runtime/queries/best_candidates.h"
#include "runtime/session.h"
#include "runtime/state.h"
#include "runtime/token_scorer.h"

namespace kinglet {

// Every answer equals, to the last bit, that of a stream that processes the hypothesis's tokens
// alone. After an error no reference has changed. Errors of all functions that take hypotheses:
// KINGLET_INVALID_ARGUMENT for a number that names no hypothesis to which the caller has a
// reference. Throw std::bad_alloc. One thread at a time may use a beam.
class Beam {
 public:
  // The number of a hypothesis, which no other one of the process has had. Never 0.
  using Hypothesis = uint64_t;

  // A beam in the lanes of the session, whose streams it replaces. The states that it saves take at
  // most `most_state_bytes`, and during a call those that the call needs besides. With a scorer,
  // whose n-grams begin a sentence at each Begin, its scores take the place of log-probabilities in
  // all answers. REQUIRES: the session outlives the beam, and nothing else steps or queries it
  // meanwhile; the scorer was made for the session's model.
  Beam(Session& session, uint64_t most_state_bytes,
       std::shared_ptr<const TokenScorer> scorer = nullptr);
  ~Beam();
  Beam(const Beam&) = delete;
  Beam& operator=(const Beam&) = delete;

  // --- hypotheses. The caller owns a reference to each one that Begin, Step or Hold names, as
  // often as they do, and may use a hypothesis while there is a reference.

  // The hypothesis without tokens, at the start of a stream, or after a saved one. KINGLET_MISMATCH
  // as for Session::Restore; KINGLET_NO_SOURCE_YET if the model has an encoder and there is no
  // source.
  Result<Hypothesis> Begin(const State* state = nullptr);
  // to[i] becomes from[i] with token ids[i] after it: the same number as long as the hypothesis, or
  // one that comes from it, has a reference. KINGLET_ID_OUT_OF_RANGE, KINGLET_OUT_OF_MEMORY.
  Status Step(std::span<const Hypothesis> from, std::span<const uint32_t> ids,
              std::span<Hypothesis> to);
  // Gives the caller another reference to each.
  Status Hold(std::span<const Hypothesis> hypotheses);
  // Takes one of the caller's references to each away.
  Status Drop(std::span<const Hypothesis> hypotheses);
  // The tokens since Begin, the first one first.
  Result<std::vector<uint32_t>> Tokens(Hypothesis hypothesis) const;

  // --- queries about the token that follows. A hypothesis may occur more than once. Errors of all:
  // those of stepping and querying a session.

  // out[i] = log p(ids[i]) after hypotheses[i]. On an error `out` is unchanged.
  Status LogProbabilities(std::span<const Hypothesis> hypotheses, std::span<const uint32_t> ids,
                          std::span<double> out);
  // out[i * vocabulary size + id] = log p(id) after hypotheses[i]. On an error `out` may be written
  // in part.
  Status Distributions(std::span<const Hypothesis> hypotheses, std::span<float> out);
  // The k most probable tokens after each, as Session::TopK orders them.
  Result<std::vector<std::vector<Candidate>>> TopK(std::span<const Hypothesis> hypotheses,
                                                   uint32_t k);
  // What the network remembers of the hypothesis.
  Result<State> Save(Hypothesis hypothesis);

  // How many tokens the network has processed, those processed again too.
  uint64_t stepped() const { return stepped_; }
  // The bytes of saved states now: their pages, each once, and their tables of pages.
  uint64_t state_bytes() const { return state_bytes_; }
  Session& session() { return session_; }

 private:
  struct Node;
  // A token in a lane: `node` after `from`; or `from` is `node`, whose state goes into a lane.
  struct Move {
    Node* from;
    Node* node;
    uint32_t lane;
  };
  struct Edge {
    Hypothesis parent;
    uint32_t id;
    bool operator==(const Edge&) const = default;
  };
  struct EdgeHash {
    size_t operator()(const Edge& edge) const;
  };
  // Different hypotheses, and for each of the caller's the index of its node.
  struct Asked {
    std::vector<Node*> nodes;
    std::vector<size_t> node_of;
  };

  Result<Node*> Find(Hypothesis hypothesis, size_t index) const;
  Result<std::vector<Node*>> FindAll(std::span<const Hypothesis> hypotheses) const;
  Result<Asked> FindAsked(std::span<const Hypothesis> hypotheses) const;
  Result<Node*> Add(Node* parent, uint32_t id);
  Result<Node*> Child(Node& parent, uint32_t id);
  void Collect(Node* node);
  void LeaveLane(Node& node);
  void Forget(Node& node);
  Status SaveNode(Node& node);
  void TakeState(Node& node, State state);
  void DropState(Node& node);
  void Trim();

  Result<std::vector<std::vector<Candidate>>> TopScores(std::span<Node* const> nodes,
                                                        std::span<const uint32_t> lanes,
                                                        uint32_t k);

  Status Place(std::span<Node* const> wanted);
  Status Run(std::vector<Move>& moves);
  Status SetUp(std::vector<Move>& moves);
  Result<uint32_t> FreeLane();
  template <class Ask>
  Status ForEachGroup(std::span<Node* const> nodes, const Ask& ask);

  Session& session_;
  const uint64_t most_state_bytes_;
  const std::shared_ptr<const TokenScorer> scorer_;  // may be null
  const size_t together_;  // lanes for which the session remembers what queries computed
  std::unordered_map<Hypothesis, std::unique_ptr<Node>> nodes_;
  std::unordered_map<Edge, Node*, EdgeHash> children_;
  std::vector<Node*> residents_;  // by lane: the hypothesis that is there, or null
  std::vector<uint8_t> taken_;    // by lane, during a wave: whether the wave needs what is there
  std::list<Node*> saved_;        // nodes with a state, but no roots; the one used last first
  std::unordered_map<const StatePage*, uint64_t> pages_;  // of saved states, and in how many
  uint64_t state_bytes_ = 0, stepped_ = 0;
  uint64_t calls_ = 0, waves_ = 0;  // made so far: of Place, and of Run
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_BEAM_H_
