#include "runtime/beam.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "format/message_text.h"
#include "runtime/memory_budget.h"

namespace kinglet {
namespace {

constexpr uint32_t kNoLane = std::numeric_limits<uint32_t>::max();
constexpr uint32_t kNoToken = std::numeric_limits<uint32_t>::max();  // of a root

uint64_t NextHypothesis() {
  static std::atomic<uint64_t> given = 0;
  return given.fetch_add(1, std::memory_order_relaxed) + 1;
}

Status RefuseBeam(StatusCode code, const std::string& where, const std::string& expected,
                  const std::string& found) {
  return Status::Refusal(code, "beam", where, expected, found);
}

Status CheckElements(const char* what, size_t found, size_t expected) {
  if (found == expected) return {};
  return RefuseBeam(KINGLET_INVALID_ARGUMENT, what, std::to_string(expected) + " elements",
                    std::to_string(found));
}

Status CheckIds(std::span<const uint32_t> ids, uint32_t vocabulary_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary_size) continue;
    return RefuseBeam(KINGLET_ID_OUT_OF_RANGE, Numbered("token", i),
                      "an id below " + std::to_string(vocabulary_size), std::to_string(ids[i]));
  }
  return {};
}

}  // namespace

struct Beam::Node {
  Node* parent;  // null for a root, which Begin gave
  uint32_t id;   // the last token
  Hypothesis number;
  MemoryClaim memory;  // of the node
  uint64_t references = 0, children = 0;
  uint64_t waiting = 0;  // children that were never processed, and need what is remembered here
  bool was_processed = false;
  uint32_t lane = kNoLane;
  // What the network remembers. Of a root: the state to begin after; absent for a new stream.
  std::optional<State> state = {};
  std::list<Node*>::iterator place = {};  // in saved_, if there is a state of no root
  TokenScorer::State scorer = {};         // with a scorer: what it knows of the hypothesis

  uint64_t wanted = 0;  // the last call of Place that places the node
  uint64_t needed = 0;  // the last wave that begins with the node
  // In that wave: moves from the node, and those that process a child for the first time.
  uint64_t moves = 0, firsts = 0;

  bool IsRemembered() const { return parent == nullptr || lane != kNoLane || state; }
};

size_t Beam::EdgeHash::operator()(const Edge& edge) const {
  return std::hash<uint64_t>()(edge.parent * 0x9E3779B97F4A7C15U + edge.id);
}

Beam::Beam(Session& session, uint64_t most_state_bytes, std::shared_ptr<const TokenScorer> scorer)
    : session_(session),
      most_state_bytes_(most_state_bytes),
      scorer_(std::move(scorer)),
      together_(Session::LanesRemembered(session.model(), session.lanes())),
      residents_(session.lanes()),
      taken_(session.lanes()) {}

Beam::~Beam() = default;

// --- the tree

Result<Beam::Node*> Beam::Find(Hypothesis hypothesis, size_t index) const {
  const auto found = nodes_.find(hypothesis);
  if (found != nodes_.end() && found->second->references > 0) return found->second.get();
  return RefuseBeam(KINGLET_INVALID_ARGUMENT, Numbered("hypothesis", index),
                    "a number that this beam gave and that was not dropped since",
                    std::to_string(hypothesis));
}

Result<std::vector<Beam::Node*>> Beam::FindAll(std::span<const Hypothesis> hypotheses) const {
  std::vector<Node*> nodes(hypotheses.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    KINGLET_ASSIGN_OR_RETURN(nodes[i], Find(hypotheses[i], i));
  }
  return nodes;
}

Result<Beam::Asked> Beam::FindAsked(std::span<const Hypothesis> hypotheses) const {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Node*> found, FindAll(hypotheses));
  Asked asked;
  std::unordered_map<const Node*, size_t> index_of;
  for (Node* const node : found) {
    const auto [at, is_new] = index_of.try_emplace(node, asked.nodes.size());
    if (is_new) asked.nodes.push_back(node);
    asked.node_of.push_back(at->second);
  }
  return asked;
}

// A node without references. The claim covers its entries in the two maps too.
Result<Beam::Node*> Beam::Add(Node* parent, uint32_t id) {
  constexpr uint64_t kBytes = sizeof(Node) + sizeof(Edge) + 10 * sizeof(void*);
  const uint64_t bytes = kBytes + (scorer_ == nullptr ? 0 : scorer_->state_bytes());
  KINGLET_ASSIGN_OR_RETURN(MemoryClaim memory, ClaimMemory(session_.model().budget(), bytes, "beam",
                                                           "bytes of a hypothesis"));
  const Hypothesis number = NextHypothesis();
  auto node = std::make_unique<Node>(Node{parent, id, number, std::move(memory)});
  if (scorer_ != nullptr) {
    node->scorer = parent == nullptr ? scorer_->Begin() : scorer_->After(parent->scorer, id);
  }
  return nodes_.try_emplace(number, std::move(node)).first->second.get();
}

Result<Beam::Node*> Beam::Child(Node& parent, uint32_t id) {
  const Edge edge{parent.number, id};
  const auto found = children_.find(edge);
  if (found != children_.end()) return found->second;
  KINGLET_ASSIGN_OR_RETURN(Node* const node, Add(&parent, id));
  try {
    children_.emplace(edge, node);
  } catch (const std::bad_alloc&) {
    nodes_.erase(node->number);
    throw;
  }
  ++parent.children;
  ++parent.waiting;
  return node;
}

// Frees what no reference needs any more of the node and its ancestors.
void Beam::Collect(Node* node) {
  while (node != nullptr && node->references == 0) {
    if (node->waiting == 0) Forget(*node);
    if (node->children > 0) return;
    Node* const parent = node->parent;
    if (parent != nullptr) {
      --parent->children;
      if (!node->was_processed) --parent->waiting;
      children_.erase(Edge{parent->number, node->id});
    }
    nodes_.erase(node->number);
    node = parent;
  }
}

Result<Beam::Hypothesis> Beam::Begin(const State* state) {
  const bool has_source = state != nullptr && state->source_length() > 0;
  if (session_.model().plan().encoder && !has_source) {
    return RefuseBeam(KINGLET_NO_SOURCE_YET, "begin", "a state with an encoded source", "none");
  }
  if (state != nullptr && !state->Fits(session_.model())) return session_.Restore(*state);
  KINGLET_ASSIGN_OR_RETURN(Node* const node, Add(nullptr, kNoToken));
  if (state != nullptr) node->state = *state;
  node->references = 1;
  return node->number;
}

Status Beam::Step(std::span<const Hypothesis> from, std::span<const uint32_t> ids,
                  std::span<Hypothesis> to) {
  KINGLET_RETURN_IF_ERROR(CheckElements("ids", ids.size(), from.size()));
  KINGLET_RETURN_IF_ERROR(CheckElements("output of hypotheses", to.size(), from.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    const Model& model = session_.model();
    if (!model.Reads(ids[i])) return model.RefuseInput(ids[i], "beam", Numbered("token", i));
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Node*> parents, FindAll(from));
  std::vector<Node*> made;
  made.reserve(parents.size());
  const auto undo = [&] {
    for (Node* const node : made) {
      --node->references;
      Collect(node);
    }
  };
  try {
    for (size_t i = 0; i < parents.size(); ++i) {
      const Result<Node*> child = Child(*parents[i], ids[i]);
      if (!child.ok()) {
        undo();
        return child.status();
      }
      ++(*child)->references;
      made.push_back(*child);
    }
  } catch (const std::bad_alloc&) {
    undo();
    throw;
  }
  for (size_t i = 0; i < made.size(); ++i) to[i] = made[i]->number;
  return {};
}

Status Beam::Hold(std::span<const Hypothesis> hypotheses) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<Node*> nodes, FindAll(hypotheses));
  for (Node* const node : nodes) ++node->references;
  return {};
}

Status Beam::Drop(std::span<const Hypothesis> hypotheses) {
  std::vector<Node*> nodes(hypotheses.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Result<Node*> node = Find(hypotheses[i], i);
    if (!node.ok()) {
      while (i > 0) ++nodes[--i]->references;
      return node.status();
    }
    nodes[i] = *node;
    --nodes[i]->references;
  }
  // Parents first, so that no node is looked at that its last child has freed.
  const auto is_older = [](const Node* a, const Node* b) { return a->number < b->number; };
  std::sort(nodes.begin(), nodes.end(), is_older);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  for (Node* const node : nodes) Collect(node);
  return {};
}

Result<std::vector<uint32_t>> Beam::Tokens(Hypothesis hypothesis) const {
  KINGLET_ASSIGN_OR_RETURN(const Node* at, Find(hypothesis, 0));
  std::vector<uint32_t> ids;
  for (; at->parent != nullptr; at = at->parent) ids.push_back(at->id);
  std::reverse(ids.begin(), ids.end());
  return ids;
}

// --- what the network remembers

void Beam::LeaveLane(Node& node) {
  if (node.lane == kNoLane) return;
  residents_[node.lane] = nullptr;
  node.lane = kNoLane;
}

void Beam::Forget(Node& node) {
  LeaveLane(node);
  if (node.parent != nullptr && node.state) DropState(node);
}

// Saves the state of a node in a lane, if need be in the place of states that the wave does not
// need.
Status Beam::SaveNode(Node& node) {
  while (true) {
    Result<State> state = session_.Save(node.lane);
    if (state.ok()) {
      TakeState(node, std::move(state).value());
      return {};
    }
    if (state.status().code() != KINGLET_OUT_OF_MEMORY || saved_.empty() ||
        saved_.back()->needed == waves_) {
      return state.status();
    }
    DropState(*saved_.back());
  }
}

void Beam::TakeState(Node& node, State state) {
  std::list<Node*> entry = {&node};
  for (const SharedPage& page : state.pages()) {
    if (page) pages_.try_emplace(page.get(), 0);
  }
  for (const SharedPage& page : state.pages()) {
    if (page && pages_.find(page.get())->second++ == 0) state_bytes_ += sizeof(StatePage);
  }
  state_bytes_ += state.pages().size() * sizeof(SharedPage);
  saved_.splice(saved_.begin(), entry);
  node.place = saved_.begin();
  node.state = std::move(state);
}

void Beam::DropState(Node& node) {
  for (const SharedPage& page : node.state->pages()) {
    if (!page) continue;
    const auto found = pages_.find(page.get());
    if (--found->second > 0) continue;
    pages_.erase(found);
    state_bytes_ -= sizeof(StatePage);
  }
  state_bytes_ -= node.state->pages().size() * sizeof(SharedPage);
  saved_.erase(node.place);
  node.state.reset();
}

void Beam::Trim() {
  while (state_bytes_ > most_state_bytes_ && !saved_.empty()) DropState(*saved_.back());
}

// --- the network

// Brings each node into a lane. Nodes that are not remembered are processed from the nearest
// ancestor that is, in waves: the first tokens of all, then the second. A wave takes no more lanes
// than there are wanted nodes. REQUIRES: different nodes, at most one for each lane.
Status Beam::Place(std::span<Node* const> wanted) {
  ++calls_;
  std::vector<std::vector<Move>> waves(1);
  std::unordered_map<const Node*, size_t> wave_of;
  std::vector<Node*> path;
  for (Node* const node : wanted) node->wanted = calls_;
  for (Node* const node : wanted) {
    path.clear();
    Node* at = node;
    for (; !at->IsRemembered() && !wave_of.contains(at); at = at->parent) path.push_back(at);
    const auto planned = wave_of.find(at);
    if (path.empty()) {
      const bool is_there = node->lane != kNoLane || planned != wave_of.end();
      if (!is_there) waves.front().push_back({node, node, kNoLane});
      continue;
    }
    size_t wave = planned == wave_of.end() ? 0 : planned->second + 1;
    for (; !path.empty(); path.pop_back()) {
      if (wave == waves.size()) waves.emplace_back();
      wave_of[path.back()] = wave;
      waves[wave++].push_back({path.back()->parent, path.back(), kNoLane});
    }
  }
  for (std::vector<Move>& moves : waves) KINGLET_RETURN_IF_ERROR(Run(moves));
  for (Node* const node : wanted) {
    if (node->state && node->parent != nullptr) {
      saved_.splice(saved_.begin(), saved_, node->place);
    }
  }
  return {};
}

Status Beam::Run(std::vector<Move>& moves) {
  if (moves.empty()) return {};
  std::vector<uint32_t> lanes, ids;
  lanes.reserve(moves.size());
  ids.reserve(moves.size());
  KINGLET_RETURN_IF_ERROR(SetUp(moves));
  Trim();
  for (const Move& move : moves) {
    if (move.node == move.from) continue;
    lanes.push_back(move.lane);
    ids.push_back(move.node->id);
  }
  if (!lanes.empty()) KINGLET_RETURN_IF_ERROR(session_.StepLanes(lanes, ids));
  stepped_ += lanes.size();
  for (const auto& [from, node, lane] : moves) {
    if (node == from) continue;
    if (residents_[lane] != nullptr) LeaveLane(*residents_[lane]);
    residents_[lane] = node;
    node->lane = lane;
    if (!node->was_processed) --from->waiting;
    node->was_processed = true;
    if (from->references == 0 && from->waiting == 0) Forget(*from);
  }
  return {};
}

// Gives each move a lane with the stream that it begins with. The last move from a node that is in
// a lane continues there, unless the node is wanted itself.
Status Beam::SetUp(std::vector<Move>& moves) {
  ++waves_;
  for (const Move& move : moves) move.from->moves = move.from->firsts = 0;
  for (const Move& move : moves) {
    Node& from = *move.from;
    from.needed = waves_;
    ++from.moves;
    if (move.node != move.from && !move.node->was_processed) ++from.firsts;
    if (from.state && from.parent != nullptr) saved_.splice(saved_.begin(), saved_, from.place);
  }
  for (size_t lane = 0; lane < residents_.size(); ++lane) {
    taken_[lane] = residents_[lane] != nullptr && residents_[lane]->wanted == calls_ ? 1 : 0;
  }
  for (Move& move : moves) {
    Node& from = *move.from;
    if (from.lane == kNoLane) continue;
    const bool stays = from.wanted == calls_;
    const bool must_save = from.moves > 1 || stays;
    if (!from.state && from.parent != nullptr &&
        (must_save || from.references > 0 || from.waiting > from.firsts)) {
      const Status status = SaveNode(from);
      if (!status.ok() && (must_save || status.code() != KINGLET_OUT_OF_MEMORY)) return status;
    }
    if (--from.moves > 0 || stays) continue;
    move.lane = from.lane;
    taken_[move.lane] = 1;
  }
  for (Move& move : moves) {
    if (move.lane != kNoLane) continue;
    KINGLET_ASSIGN_OR_RETURN(move.lane, FreeLane());
    taken_[move.lane] = 1;
    KINGLET_RETURN_IF_ERROR(move.from->state ? session_.Restore(*move.from->state, move.lane)
                                             : session_.Reset(move.lane));
    if (move.node != move.from) continue;
    residents_[move.lane] = move.node;
    move.node->lane = move.lane;
  }
  return {};
}

// A lane that the wave does not need: an empty one, or else the one used least recently, whose
// stream is saved if somebody may need it.
Result<uint32_t> Beam::FreeLane() {
  uint32_t best = kNoLane;
  for (uint32_t lane = 0; lane < residents_.size(); ++lane) {
    if (taken_[lane] != 0) continue;
    if (residents_[lane] == nullptr) return lane;
    if (best == kNoLane || residents_[lane]->wanted < residents_[best]->wanted) best = lane;
  }
  Node& node = *residents_[best];
  if (!node.state && node.parent != nullptr && (node.references > 0 || node.waiting > 0)) {
    const Status status = SaveNode(node);
    // Without memory the stream is processed again when it is needed.
    if (!status.ok() && status.code() != KINGLET_OUT_OF_MEMORY) return status;
  }
  LeaveLane(node);
  return best;
}

// --- queries

// Calls ask(index of the first node, lanes) for groups of nodes whose answers are remembered
// together.
template <class Ask>
Status Beam::ForEachGroup(std::span<Node* const> nodes, const Ask& ask) {
  std::vector<uint32_t> lanes;
  for (size_t first = 0; first < nodes.size(); first += residents_.size()) {
    const auto placed = nodes.subspan(first, std::min(residents_.size(), nodes.size() - first));
    KINGLET_RETURN_IF_ERROR(Place(placed));
    for (size_t begin = 0; begin < placed.size(); begin += together_) {
      lanes.clear();
      for (size_t i = begin; i < std::min(placed.size(), begin + together_); ++i) {
        lanes.push_back(placed[i]->lane);
      }
      KINGLET_RETURN_IF_ERROR(ask(first + begin, std::span<const uint32_t>(lanes)));
    }
  }
  return {};
}

Status Beam::LogProbabilities(std::span<const Hypothesis> hypotheses, std::span<const uint32_t> ids,
                              std::span<double> out) {
  KINGLET_RETURN_IF_ERROR(CheckElements("ids", ids.size(), hypotheses.size()));
  KINGLET_RETURN_IF_ERROR(CheckElements("output of log-probabilities", out.size(), ids.size()));
  KINGLET_RETURN_IF_ERROR(CheckIds(ids, session_.model().vocabulary_size()));
  KINGLET_ASSIGN_OR_RETURN(const Asked asked, FindAsked(hypotheses));
  std::vector<std::vector<uint32_t>> ids_of(asked.nodes.size());
  for (size_t i = 0; i < ids.size(); ++i) ids_of[asked.node_of[i]].push_back(ids[i]);
  std::vector<std::vector<double>> values_of(asked.nodes.size());
  std::vector<uint32_t> firsts;
  std::vector<double> values;
  // The query for each node's first token computes most of what those for the others need.
  const auto ask = [&](size_t first, std::span<const uint32_t> lanes) -> Status {
    firsts.clear();
    for (size_t i = 0; i < lanes.size(); ++i) firsts.push_back(ids_of[first + i].front());
    values.resize(lanes.size());
    KINGLET_RETURN_IF_ERROR(session_.LogProbabilityLanes(lanes, firsts, values));
    for (size_t i = 0; i < lanes.size(); ++i) {
      std::vector<double>& all = values_of[first + i];
      const std::vector<uint32_t>& wanted = ids_of[first + i];
      all.resize(wanted.size());
      all.front() = values[i];
      if (all.size() == 1) continue;
      KINGLET_RETURN_IF_ERROR(session_.LogProbabilitiesOf(std::span(wanted).subspan(1),
                                                          std::span(all).subspan(1), lanes[i]));
    }
    return {};
  };
  KINGLET_RETURN_IF_ERROR(ForEachGroup(asked.nodes, ask));
  std::vector<size_t> next(asked.nodes.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t node = asked.node_of[i];
    out[i] = values_of[node][next[node]++];
    if (scorer_ != nullptr) {
      out[i] = scorer_->Score(asked.nodes[node]->scorer, ids[i], out[i]);
    }
  }
  return {};
}

Status Beam::Distributions(std::span<const Hypothesis> hypotheses, std::span<float> out) {
  const size_t words = session_.model().vocabulary_size();
  KINGLET_RETURN_IF_ERROR(
      CheckElements("output of log-probabilities", out.size(), hypotheses.size() * words));
  KINGLET_ASSIGN_OR_RETURN(const Asked asked, FindAsked(hypotheses));
  std::vector<size_t> row_of(asked.nodes.size());  // the last hypothesis of the node
  for (size_t i = 0; i < hypotheses.size(); ++i) row_of[asked.node_of[i]] = i;
  std::vector<double> scores(scorer_ == nullptr ? 0 : words);
  const auto ask = [&](size_t first, std::span<const uint32_t> lanes) -> Status {
    KINGLET_RETURN_IF_ERROR(session_.ComputeAllLanes(lanes));
    for (size_t i = 0; i < lanes.size(); ++i) {
      const auto row = out.subspan(row_of[first + i] * words, words);
      if (scorer_ == nullptr) {
        KINGLET_RETURN_IF_ERROR(session_.LogProbabilities(row, lanes[i]));
        continue;
      }
      KINGLET_RETURN_IF_ERROR(session_.LogProbabilities(std::span<double>(scores), lanes[i]));
      scorer_->ScoreAll(asked.nodes[first + i]->scorer, scores);
      std::transform(scores.begin(), scores.end(), row.begin(),
                     [](double score) { return static_cast<float>(score); });
    }
    return {};
  };
  KINGLET_RETURN_IF_ERROR(ForEachGroup(asked.nodes, ask));
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const size_t row = row_of[asked.node_of[i]];
    const auto from = out.subspan(row * words, words);
    if (row != i) std::copy(from.begin(), from.end(), out.subspan(i * words, words).begin());
  }
  return {};
}

// The best tokens by score may be any by probability, so all are computed.
Result<std::vector<std::vector<Candidate>>> Beam::TopScores(std::span<Node* const> nodes,
                                                            std::span<const uint32_t> lanes,
                                                            uint32_t k) {
  KINGLET_RETURN_IF_ERROR(session_.ComputeAllLanes(lanes));
  std::vector<double> scores(session_.model().vocabulary_size());
  std::vector<std::vector<Candidate>> best;
  for (size_t i = 0; i < lanes.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session_.LogProbabilities(std::span<double>(scores), lanes[i]));
    scorer_->ScoreAll(nodes[i]->scorer, scores);
    BestCandidates candidates(k);
    for (uint32_t id = 0; id < scores.size(); ++id) candidates.Offer({id, scores[id]});
    KINGLET_ASSIGN_OR_RETURN(auto sorted, std::move(candidates).Sorted([] { return Status(); }));
    best.push_back(std::move(sorted));
  }
  return best;
}

Result<std::vector<std::vector<Candidate>>> Beam::TopK(std::span<const Hypothesis> hypotheses,
                                                       uint32_t k) {
  KINGLET_ASSIGN_OR_RETURN(const Asked asked, FindAsked(hypotheses));
  std::vector<std::vector<Candidate>> of_nodes(asked.nodes.size());
  const auto ask = [&](size_t first, std::span<const uint32_t> lanes) -> Status {
    KINGLET_ASSIGN_OR_RETURN(
        auto best, scorer_ == nullptr ? session_.TopKLanes(lanes, k)
                                      : TopScores(std::span(asked.nodes).subspan(first), lanes, k));
    std::move(best.begin(), best.end(), of_nodes.begin() + static_cast<std::ptrdiff_t>(first));
    return {};
  };
  KINGLET_RETURN_IF_ERROR(ForEachGroup(asked.nodes, ask));
  std::vector<std::vector<Candidate>> best;
  best.reserve(hypotheses.size());
  for (const size_t node : asked.node_of) best.push_back(of_nodes[node]);
  return best;
}

Result<State> Beam::Save(Hypothesis hypothesis) {
  KINGLET_ASSIGN_OR_RETURN(Node* const node, Find(hypothesis, 0));
  if (node->state) return *node->state;
  KINGLET_RETURN_IF_ERROR(Place({&node, 1}));
  return session_.Save(node->lane);
}

}  // namespace kinglet
