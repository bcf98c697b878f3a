// A session: one or more streams of tokens through a model, each in a lane of its own. A step runs
// the plan's context nodes in the project's one execution loop (runtime/execute.h) and leaves the
// stream's hidden state in its memory. A query then computes only what it needs (the softmax's
// head, one tail, the neural cache) and remembers it until the lane's next step, or, in a session
// of many lanes, until other lanes have been queried (LanesRemembered). A lane's answers are those
// of a session with this stream alone, to the last bit.
//
// One thread at a time may use a session, except for Cancel. After an error the session is as it
// was before the call, and outputs are untouched. Only an error of a device, KINGLET_INTERNAL or
// KINGLET_OUT_OF_MEMORY, stays: every later call returns it too.
#ifndef KINGLET_RUNTIME_SESSION_H_
#define KINGLET_RUNTIME_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kinglet/status.h"
#include "runtime/accounting/query_work.h"
#include "runtime/model.h"
#include "runtime/node_observer.h"
#include "runtime/queries/best_candidates.h"
#include "runtime/queries/cache_contribution.h"
#include "runtime/queries/draw_options.h"
#include "runtime/queries/interval.h"
#include "runtime/queries/next_characters.h"
#include "runtime/queries/query_options.h"
#include "runtime/queries/word_set.h"
#include "runtime/state.h"

namespace kinglet {

struct PartialContext;       // runtime/partial_context.h
struct DeviceWork;           // kernels/device_program.h
enum class Scale : uint8_t;  // runtime/queries/word_probabilities.h

struct SessionOptions {
  EmptyCache empty_cache = EmptyCache::kReference;
  uint32_t lanes = 1;
  // Threads that share the work of a call: the caller's, and workers of the session's own, which
  // sleep between calls. No more than there are processors to run on.
  uint32_t threads = 1;
};

class Session {
 public:
  // Every lane is at the start of a stream. Errors: KINGLET_UNSUPPORTED for a model that predicts
  // nothing (runtime/embedder.h serves it); KINGLET_INVALID_ARGUMENT for 0 lanes or threads;
  // KINGLET_OUT_OF_MEMORY, with the number of lanes that fit, if all lanes together need more than
  // the model's limits leave or than the device has, or if the system has no more threads.
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options = {});
  // The most bytes of the host's memory that creation allocates for each lane. With many lanes each
  // takes less, because they share the memory of queries (runtime/queries/query_frames.h). Not
  // included: a few numbers for each word of the largest cluster, once, and what a lane keeps after
  // its state was saved, restored or forked, at most as many bytes again as its state.
  static uint64_t BytesPerLane(const Model& model);
  // How many lanes of one session `bytes` of the host's memory are enough for.
  static uint64_t LanesThatFit(const Model& model, uint64_t bytes);
  // For how many lanes at a time a session of `lanes` lanes remembers what queries computed: for
  // all of them, or for those queried last.
  static uint64_t LanesRemembered(const Model& model, uint64_t lanes);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Model& model() const;
  uint32_t lanes() const;

  // --- tokens. KINGLET_INVALID_ARGUMENT, here and below, if there is no such lane.

  // Starts a new stream in the lane and encodes its source, the tokens of a text to translate.
  // Target tokens follow, the model's start token first. This takes the time of the whole source;
  // any number of forks share it. Errors: KINGLET_UNSUPPORTED for a model without an encoder;
  // KINGLET_INVALID_ARGUMENT for a source that is empty or longer than the encoder's window;
  // KINGLET_ID_OUT_OF_RANGE if an id >= size of the source's vocabulary; KINGLET_CANCELLED.
  Status Encode(std::span<const uint32_t> source, uint32_t lane = 0);
  // The same for a masked model: reads a whole text, [CLS] and [SEP] in it. segments[i] is the
  // segment number of token i: empty: all 0. Errors also: KINGLET_ID_OUT_OF_RANGE for a segment
  // that the model does not have; KINGLET_INVALID_ARGUMENT for another number of them;
  // KINGLET_UNSUPPORTED for segments of a translation's source.
  Status Encode(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                uint32_t lane);
  // Processes one token. Errors: KINGLET_UNSUPPORTED for a masked model; KINGLET_ID_OUT_OF_RANGE
  // if id >= vocabulary size; KINGLET_NO_SOURCE_YET if the model has an encoder and the lane no
  // source; KINGLET_CANCELLED.
  Status StepToken(uint32_t id, uint32_t lane = 0);
  // The same where an unchanged model computed the token before: `kept` has what the cut keeps of
  // it (runtime/partial_context.h), and only the cut's runs run. REQUIRES: a cut of this plan, on the
  // host; no encoder.
  Status StepTokenAfter(uint32_t id, const PartialContext& cut, std::span<const std::byte> kept);
  // Processes ids[i] on lanes[i] for every i; no lane occurs twice. After an error no lane has
  // processed its token.
  Status StepLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids);
  // Processes the given tokens of one stream, in order, with the bits of StepToken for each, and
  // writes the log-probability of each one after those before it to `log_probabilities`, unless
  // that is empty; the first token of a stream gets a quiet NaN. Where the model allows it
  // (TextBlock), each weight is read once for several tokens. Errors: those of StepToken and
  // LogProbability. All ids are checked first. After an error in the middle the lane has processed
  // the first `processed` tokens, whose log-probabilities are written.
  Status StepMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                  uint64_t& processed, uint32_t lane = 0, Computing computing = Computing::kNeeded);
  // The number of tokens that the lane's stream has processed. REQUIRES: lane < lanes().
  uint64_t position(uint32_t lane = 0) const;
  // Starts a new stream in the lane, without a source.
  Status Reset(uint32_t lane = 0);
  // From now on calls `after` when a step has run, of a token or of a query, and `before` when one
  // is about to, with the frames of the lanes that take it. Empty functions are not called.
  void set_observer(NodeObserver after, NodeObserver before = {});

  // The token that the lane processed last. REQUIRES: position(lane) > 0.
  uint32_t last_token(uint32_t lane = 0) const;
  // KINGLET_INVALID_ARGUMENT if there is no such lane; KINGLET_NO_TOKEN_YET before its first step.
  Status CheckHasToken(uint32_t lane) const;
  // Another session of the same model with so many lanes, one thread, and these options otherwise.
  Result<std::unique_ptr<Session>> CreateAlike(uint32_t lanes) const;

  // Stops the call that is running before its next step, or else the next call that computes
  // something; that one returns KINGLET_CANCELLED. Later calls run normally. Any thread may call
  // this. One step may be the end of a query for all words; on a device, a whole token or query.
  void Cancel();
  // For calls made of several sessions' calls: KINGLET_CANCELLED if Cancel was called since the
  // last call that it stopped.
  Status TakeCancellation(const std::string& what);

  // --- masked models. Errors of all: KINGLET_UNSUPPORTED for another model, or one without the
  // part that answers; KINGLET_NO_SOURCE_YET before a text was read; KINGLET_INVALID_ARGUMENT for a
  // position that the text does not have; KINGLET_NOT_FINITE; KINGLET_CANCELLED.

  // From now on the queries below are about the token at this position of the text that the lane
  // has read: which word the model expects there.
  Status LookAt(uint64_t position, uint32_t lane = 0);
  // Elements of the pooled vector, and scores of a text or, for spans, of a token; 0: none.
  uint32_t pooled_width() const;
  uint32_t scores() const;
  // The text's pooled vector, made of its first token's; out.size() == pooled_width().
  Status Pooled(std::span<double> out, uint32_t lane = 0);
  // The text's scores, without a softmax; out.size() == scores(). With spans: the scores [start,
  // end] of the token at `position`, which is otherwise 0.
  Status Scores(std::span<double> out, uint64_t position = 0, uint32_t lane = 0);

  // --- queries about the token that follows. Errors of all: KINGLET_NO_TOKEN_YET before the lane's
  // first step; KINGLET_NOT_FINITE if the model's own numbers overflowed; KINGLET_CANCELLED;
  // KINGLET_OUT_OF_MEMORY.

  // log p(id). Computes the head and, if the word is in a tail, that tail.
  Result<double> LogProbability(uint32_t id, uint32_t lane = 0);
  // out[i] = log p(ids[i]); an id may occur more than once. out.size() == ids.size().
  Status LogProbabilitiesOf(std::span<const uint32_t> ids, std::span<double> out,
                            uint32_t lane = 0);
  // The k most probable words, the most probable first, equal ones by lower id; all words if k
  // exceeds the vocabulary. Does not compute tails that cannot hold one of them; the answer equals
  // the full computation's bit for bit.
  Result<std::vector<Candidate>> TopK(uint32_t k, uint32_t lane = 0);
  // Draws a word at random, as DrawOptions says. The word depends on the stream's state, the seed
  // and the options alone: it is the same on any lane, and after save and restore.
  // KINGLET_INVALID_ARGUMENT for options out of their ranges, and if every word that has a
  // probability is omitted; KINGLET_ID_OUT_OF_RANGE if a word omitted is none.
  //
  // With w_i = exp((log p_i - r) / temperature), computed in the backend's real type, where r is
  // the largest log p of the words that are not omitted, and sums in double:
  //   All words: the cluster drawn is the first one, head first, whose cumulative weight exceeds
  //   UniformDraw(seed, position - 1, 0) times the total; words are added up by id, then clusters
  //   in order. The word drawn is the first in it whose cumulative weight exceeds
  //   UniformDraw(seed, position - 1, 1) times the cluster's.
  //   With top_k or top_p: the words that remain are added up in their order; they end with the
  //   first whose cumulative weight is at least top_p times the total (of the top_k, or of all
  //   words as above). At temperature 1, with no top_k and no word omitted, they are those of
  //   TopP(top_p). The word drawn is the first whose cumulative weight exceeds UniformDraw(seed,
  //   position - 1, 0) times the last one.
  // A tail is computed only where its probability leaves the choice open, or for a word omitted.
  Result<uint32_t> Draw(uint64_t seed, const DrawOptions& options, uint32_t lane = 0);
  // Draw from all words.
  Result<uint32_t> Sample(uint64_t seed, double temperature, uint32_t lane = 0);
  // out[id] = log p of every word; out.size() == vocabulary size. On ref64 the float form rounds.
  Status LogProbabilities(std::span<double> out, uint32_t lane = 0);
  Status LogProbabilities(std::span<float> out, uint32_t lane = 0);
  // out[id] = p of every word: exp of the above, computed in the backend's real type.
  Status Probabilities(std::span<double> out, uint32_t lane = 0);
  Status Probabilities(std::span<float> out, uint32_t lane = 0);
  // Computes everything that a query about this token can need; queries then only read it.
  Status ComputeAll(uint32_t lane = 0);

  // --- queries of programs that look for words (session_words.cc). Each computes the clusters that
  // its answer needs, and equals what all log-probabilities say, bit for bit; sums of probabilities
  // are of exp(log p), as Probabilities gives them, in double in the order of ids.

  // The nucleus: the fewest words, the most probable first and equal ones by lower id, whose
  // probabilities, added up in that order, are at least `share` of the sum of all words', which is
  // 1, or 1 - lambda while a reference neural cache is empty; all words for a share of 1, and where
  // rounding leaves less. KINGLET_INVALID_ARGUMENT unless 0 < share <= 1.
  Result<std::vector<Candidate>> TopP(double share, uint32_t lane = 0);
  // The word's place in the order of TopK, from 1.
  Result<uint32_t> Rank(uint32_t id, uint32_t lane = 0);
  // What the word's probability is made of: the network's alone, and the neural cache's part.
  Result<CacheContribution> CacheContributionOf(uint32_t id, uint32_t lane = 0);
  // The words of the vocabulary that begin with these bytes. KINGLET_UNSUPPORTED if the model file
  // has ids only.
  Result<WordSet> WithPrefix(std::string_view prefix) const;
  // The k most probable words of the set, as TopK orders them; all of them if there are fewer.
  // KINGLET_INVALID_ARGUMENT, here and below, if the set is of another number of words.
  Result<std::vector<Candidate>> TopKOf(const WordSet& set, uint32_t k, uint32_t lane = 0);
  // The sum of the probabilities of the set's words, which is 0 for the empty set.
  Result<double> ProbabilityOf(const WordSet& set, uint32_t lane = 0);
  // The same for disjoint parts of the set: the word `id` adds to sums[part_of[id]]. REQUIRES:
  // part_of has an element for each word of the vocabulary, below sums.size() for those of the set.
  Status AddProbabilities(const WordSet& set, std::span<const uint32_t> part_of,
                          std::span<double> sums, uint32_t lane = 0);
  // For each character that follows the prefix in some word, in byte order, the probability of all
  // words that begin with both. KINGLET_UNSUPPORTED as for WithPrefix.
  Result<std::vector<NextCharacter>> NextCharacters(std::string_view prefix, uint32_t lane = 0);
  // The word's interval of the integers below 2^32 (runtime/queries/intervals.h), in proportion to
  // its probability divided by the sum of all, and the word whose interval has a point.
  Result<Interval> IntervalOf(uint32_t id, uint32_t lane = 0);
  Result<uint32_t> WordAt(uint32_t point, uint32_t lane = 0);

  // --- some of the queries for several lanes, none of them twice; answer i is for lanes[i].
  // Answers, what each lane remembers and the work that it reports are those of a query of that
  // lane alone. A cluster's weights are read once for the lanes that need it, up to kLanesTogether
  // of them at a time, so that their logits stay in the processor's caches.
  // KINGLET_INVALID_ARGUMENT if a lane occurs twice. An error of one lane is the answer to all.

  Status LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                             std::span<double> out, Computing computing = Computing::kNeeded);
  Result<std::vector<std::vector<Candidate>>> TopKLanes(std::span<const uint32_t> lanes, uint32_t k,
                                                        Computing computing = Computing::kNeeded);
  Status DrawLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                   const DrawOptions& options, std::span<uint32_t> out);
  Status SampleLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                     double temperature, std::span<uint32_t> out);
  // Call it before queries for the full distributions of several lanes.
  Status ComputeAllLanes(std::span<const uint32_t> lanes);

  // What the lane's last query computed, without what earlier ones about the same token had;
  // nothing after a step, a reset or a restore. A call that was refused because of its arguments
  // does not count as a query. REQUIRES: lane < lanes().
  const QueryWork& last_work(uint32_t lane = 0) const;
  // The clusters that queries have computed since the lane's last step, or since the memory that
  // they are answered in was last given to other lanes. REQUIRES: lane < lanes().
  const ClusterSet& clusters_opened(uint32_t lane = 0) const;

  // Whether a device itself finds the k most probable words and the log-probability of one. It then
  // chooses the tails of a top-k by what the head alone says, perhaps more than the host would, and
  // remembers nothing of them for later queries. Not while there is an observer, who is to see
  // every step.
  bool ranks_on_device(uint32_t k) const;
  // Waits until a device has done all work; on the host there is none to wait for. Queries need no
  // call of this.
  Status Wait();
  // What the device was asked to do since the session was created; nothing on the host.
  DeviceWork device_work() const;

  // --- states (runtime/state.h)

  // The state of the lane's stream.
  Result<State> Save(uint32_t lane = 0);
  // Makes the lane's stream the one that the state was taken from. KINGLET_MISMATCH if the state is
  // of another model or real type.
  Status Restore(const State& state, uint32_t lane = 0);
  // Makes the stream in lane `to` a copy of the one in lane `from`.
  Status Fork(uint32_t from, uint32_t to);

 private:
  struct Lane;
  struct Contents;
  struct MemoryPlan;
  explicit Session(std::unique_ptr<Contents> contents);
  Status WriteTopK(std::span<const uint32_t> lanes, uint32_t k, Computing computing,
                   std::span<std::vector<Candidate>> out);
  template <class Answer, class Query>
  Result<Answer> AskLane(uint32_t lane, const Query& query);
  template <class Out>
  Status WriteAll(std::span<Out> out, Scale scale, uint32_t lane);
  std::unique_ptr<Contents> contents_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_H_
