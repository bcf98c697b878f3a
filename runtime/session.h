// One or more streams of tokens (lanes) through a model. A step runs the plan's context steps in
// the project's one execution loop and leaves each lane's hidden state in its memory; a query then
// computes only what it needs (the head, one tail, the cache) and remembers it until the lane's
// next step, or, where LanesRemembered says so, until as many others were asked. A lane's numbers
// are those of a single stream fed the same tokens, to the last bit.
//
// Belongs to one thread at a time, but for Cancel. After any error the session is as it was before
// the call, and outputs are untouched; but an error of a device itself, KINGLET_INTERNAL or
// KINGLET_OUT_OF_MEMORY, is the answer to every later call too.
#ifndef KINGLET_RUNTIME_SESSION_H_
#define KINGLET_RUNTIME_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device_program.h"
#include "runtime/execute.h"
#include "runtime/model.h"
#include "runtime/queries/distribution.h"
#include "runtime/queries/query_work.h"
#include "runtime/state.h"

namespace kinglet {

// What a query computes first: the clusters it needs, or all of them and the cache, as
// Session::ComputeAll does and for the same reason.
enum class Computing : uint8_t { kNeeded, kAll };

struct SessionOptions {
  EmptyCache empty_cache = EmptyCache::kReference;
  uint32_t lanes = 1;
  // That divide the work of a call: the caller's and workers of the session's own, which sleep
  // between calls; no more than there are processors to run on.
  uint32_t threads = 1;
};

class Session {
 public:
  // KINGLET_UNSUPPORTED for a model that predicts nothing (runtime/embedder.h serves it);
  // KINGLET_INVALID_ARGUMENT for 0 lanes or threads; KINGLET_OUT_OF_MEMORY, also where the system
  // has no more threads, or all lanes together need more than the model's limits leave or the
  // device has, naming the number of lanes that fit.
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options = {});
  // What each lane allocates at creation, at most, of the host's memory. Many lanes take less: they
  // share what queries are answered in (runtime/queries/query_frames.h). Not in it: some numbers
  // for each word of the largest cluster, once, and the pages that saving, restoring and forking
  // leave with a lane, at most as many bytes again as its state.
  static uint64_t BytesPerLane(const Model& model);
  // Lanes of one session that so many bytes of the host's memory are enough for.
  static uint64_t LanesThatFit(const Model& model, uint64_t bytes);
  // Lanes that a session of so many remembers the answers to queries of at a time: all of them,
  // or the last ones asked.
  static uint64_t LanesRemembered(const Model& model, uint64_t lanes);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Model& model() const;
  uint32_t lanes() const;

  // --- tokens. KINGLET_INVALID_ARGUMENT, here and below, if there is no such lane.

  // Begins the lane's stream anew with the source of a translation: encodes it, so that target
  // tokens may follow, the model's start token first. The time is that of the whole source; any
  // number of forks share it. KINGLET_UNSUPPORTED for a model without an encoder;
  // KINGLET_INVALID_ARGUMENT for a source that is empty or longer than the encoder's window;
  // KINGLET_ID_OUT_OF_RANGE if an id >= size of the source's vocabulary; KINGLET_CANCELLED.
  Status Encode(std::span<const uint32_t> source, uint32_t lane = 0);
  // Processes one token. KINGLET_ID_OUT_OF_RANGE if id >= vocabulary size; KINGLET_NO_SOURCE_YET if
  // the model has an encoder and the lane no source; KINGLET_CANCELLED.
  Status StepToken(uint32_t id, uint32_t lane = 0);
  // Processes ids[i] on lanes[i], for every i; no lane twice. All of them or, after an error, none.
  Status StepLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids);
  // Tokens processed so far. REQUIRES: lane < lanes().
  uint64_t position(uint32_t lane = 0) const;
  // Back to the start of a stream, without a source.
  Status Reset(uint32_t lane = 0);
  // Called after each step, of tokens and of queries, with the frames of the lanes that take it,
  // from now on, and, where given, `before` it; empty functions stop it.
  void set_observer(StepObserver after, StepObserver before = {});

  // From any thread: the call that is running, or else the next that computes something, stops
  // before its next step and returns KINGLET_CANCELLED; calls after that one run as ever. On a
  // device a token's steps, and those of a cluster, are one.
  void Cancel();

  // --- queries about the token that follows. KINGLET_NO_TOKEN_YET before the lane's first step;
  // KINGLET_NOT_FINITE if the model's own numbers overflowed; KINGLET_CANCELLED;
  // KINGLET_OUT_OF_MEMORY.

  // log p(id). Computes the head and, if the word is in a tail, that tail.
  Result<double> LogProbability(uint32_t id, uint32_t lane = 0);
  // log p of each of the ids, in their order; an id may occur more than once. out.size() ==
  // ids.size().
  Status LogProbabilitiesOf(std::span<const uint32_t> ids, std::span<double> out,
                            uint32_t lane = 0);
  // The k most probable words, most probable first, equal ones by lower id first. Tails whose
  // cluster cannot matter are not computed; the answer equals the full computation's bit for bit. k
  // = 0 gives none; k beyond the vocabulary gives all words.
  Result<std::vector<Candidate>> TopK(uint32_t k, uint32_t lane = 0);
  // A word drawn with probability proportional to p(word)^(1 / temperature); temperature 0,
  // or so low that its reciprocal overflows: the most probable word. The draw depends on the state,
  // the seed and the temperature alone: the same on any lane, before and after save and restore.
  // KINGLET_INVALID_ARGUMENT unless the temperature is finite and >= 0.
  //
  // With w_i = exp((log p_i - max_j log p_j) / temperature), computed in the backend's real type,
  // and sums in double in id order, it is: the first cluster c (head first) whose cumulative weight
  // exceeds UniformDraw(seed, position - 1, 0) times the total, clusters added up in order; then
  // the first word in it whose cumulative weight exceeds UniformDraw(seed, position - 1, 1) times
  // the cluster's. A tail is opened only where its probability leaves the choice open.
  Result<uint32_t> Sample(uint64_t seed, double temperature, uint32_t lane = 0);
  // log p of every word: out[id], out.size() == vocabulary size. The float form rounds on ref64.
  Status LogProbabilities(std::span<double> out, uint32_t lane = 0);
  Status LogProbabilities(std::span<float> out, uint32_t lane = 0);
  // p of every word: exp of the above, computed in the backend's real type.
  Status Probabilities(std::span<double> out, uint32_t lane = 0);
  Status Probabilities(std::span<float> out, uint32_t lane = 0);
  // Computes all that any query about this token can need; queries then only read it. For measuring
  // a model whose weights mean nothing: all its clusters are improbable, so that queries skip what
  // those of a trained model have to compute.
  Status ComputeAll(uint32_t lane = 0);

  // --- the same asked of several lanes, none twice, with one answer for each in their order. Each
  // answer, and what each lane remembers and has done, is that of asking it alone, but a cluster's
  // weights are fetched once for all lanes that need it: for up to kLanesTogether lanes at a time,
  // so that their logits stay in the processor's caches. KINGLET_INVALID_ARGUMENT if a lane occurs
  // twice. An error of one lane is the answer to all.

  Status LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                             std::span<double> out, Computing computing = Computing::kNeeded);
  Result<std::vector<std::vector<Candidate>>> TopKLanes(std::span<const uint32_t> lanes, uint32_t k,
                                                        Computing computing = Computing::kNeeded);
  Status SampleLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                     double temperature, std::span<uint32_t> out);
  // Also what to call before any other query that reads all: the full distribution.
  Status ComputeAllLanes(std::span<const uint32_t> lanes);

  // What the lane's last query did that no earlier one about the same token had; nothing after a
  // step, a reset or a restore. A call refused for its arguments is no query. REQUIRES: lane <
  // lanes().
  const QueryWork& last_work(uint32_t lane = 0) const;
  // Clusters computed for the queries since the lane's last step; for those since others had the
  // memory that they are answered in. REQUIRES: lane < lanes().
  const ClusterSet& clusters_opened(uint32_t lane = 0) const;

  // Whether a device finds the k most probable words, and the log-probability of one, by itself. It
  // then chooses the tails of a top-k by what the head alone says, perhaps more than the host would
  // open, and remembers nothing of them for a later query. Never while there is an observer, who
  // is to see every step.
  bool ranks_on_device(uint32_t k) const;
  // Until a device has done all it was asked to; at once on the host. Queries wait by themselves.
  Status Wait();
  // What the device has been asked to do since the session was created; nothing on the host.
  DeviceWork device_work() const;

  // --- states (runtime/state.h)

  Result<State> Save(uint32_t lane = 0);
  // KINGLET_MISMATCH if the state is of another model or real type.
  Status Restore(const State& state, uint32_t lane = 0);
  // Makes lane `to` a copy of lane `from`.
  Status Fork(uint32_t from, uint32_t to);

 private:
  struct Lane;
  struct Contents;
  struct MemoryPlan;
  static MemoryPlan MemoryFor(const Model& model, uint64_t lanes);
  explicit Session(std::unique_ptr<Contents> contents);
  Result<Lane*> FindLane(uint32_t lane) const;
  Status RunEncoder(std::span<const uint32_t> source, Lane& lane);
  template <class T>
  Status FindPlace(Distribution<T>& distribution, StreamFrame& frame);
  template <class Query>
  auto Ask(uint32_t lane, const Query& query);
  Status CheckLanes(std::span<const uint32_t> lanes);
  Status CheckAskedLanes(std::span<const uint32_t> lanes);
  template <class Answer, class Query>
  Result<std::vector<Answer>> AskLanes(std::span<const uint32_t> lanes, const Query& query);
  template <class DeviceCall>
  Result<std::vector<DeviceAnswer>> AskDevice(std::span<const uint32_t> lanes, Computing computing,
                                              const DeviceCall& ask);
  template <class Out, class Query>
  Status WriteAll(std::span<Out> out, uint32_t lane, const Query& query);
  std::unique_ptr<Contents> contents_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_H_
