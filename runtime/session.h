// A session: one or more streams of tokens through a model, each in a lane of its own. A step runs
// the plan's context nodes in the project's one execution loop (runtime/execute.h) and leaves the
// stream's hidden state in its memory. A query then computes only what it needs (the softmax's
// head, one tail, the neural cache) and remembers the results until the lane's next step, or, in a
// session of many lanes, until other lanes have been queried (LanesRemembered). A lane's answers
// are those of a session with this stream alone, to the last bit.
//
// One thread at a time may use a session, except for Cancel. After an error the session is as it
// was before the call, and outputs are untouched. Only an error of a device, KINGLET_INTERNAL or
// KINGLET_OUT_OF_MEMORY, stays: every later call of that device returns that error too.
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
#include "runtime/queries/token_set.h"
#include "runtime/state.h"

namespace kinglet {

struct PartialContext;       // runtime/partial_context.h
struct DeviceWork;           // kernels/device_program.h
enum class Scale : uint8_t;  // runtime/queries/token_probabilities.h

// A text for Session::ScoreTexts.
struct ScoredText {
  std::span<const uint32_t> ids;
  size_t context = 0;  // tokens after the first that are not scored
  // Output: of each token from ids[context + 1] on.
  std::span<double> log_probabilities = {};
};

// How far a call for several texts has come.
struct TextProgress {
  size_t texts = 0;     // complete ones
  uint64_t tokens = 0;  // of the next text
};

struct SessionOptions {
  EmptyCache empty_cache = EmptyCache::kReference;
  uint32_t lanes = 1;
  // Threads among which the work of a call is divided: the caller's, and workers of the session's
  // own, which sleep between calls. The session starts no more than there are processors.
  uint32_t threads = 1;
};

class Session {
 public:
  // Every lane is at the start of a stream. Errors: KINGLET_UNSUPPORTED for a model that predicts
  // nothing (use runtime/embedder.h); KINGLET_INVALID_ARGUMENT for 0 lanes or threads;
  // KINGLET_OUT_OF_MEMORY, with the number of lanes that fit, if all lanes together need more than
  // the model's limits leave or than the device has, or if the system has no more threads.
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options = {});
  // The most bytes of the host's memory that creation allocates for each lane. With many lanes each
  // takes less, because they share the memory of queries (runtime/queries/query_frames.h). Not
  // included: a few values for each token of the largest cluster, once, and what a lane keeps after
  // its state was saved, restored or forked, at most as many bytes again as its state.
  static uint64_t BytesPerLane(const Model& model);
  // The most lanes of one session for which `bytes` of the host's memory are enough.
  static uint64_t LanesThatFit(const Model& model, uint64_t bytes);
  // For how many lanes at a time a session of `lanes` lanes remembers what queries computed: for
  // all lanes, or for those queried last.
  static uint64_t LanesRemembered(const Model& model, uint64_t lanes);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Model& model() const;
  uint32_t lanes() const;

  // --- tokens. KINGLET_INVALID_ARGUMENT, here and below, if there is no such lane.

  // Starts a new stream in the lane and encodes its source, the tokens of a sentence to translate.
  // Target tokens follow, the model's start token first. The call takes the time of the complete
  // source; any number of forks share the result. Errors: KINGLET_UNSUPPORTED for a model without
  // an encoder; KINGLET_INVALID_ARGUMENT for a source that is empty or longer than the encoder's
  // window; KINGLET_ID_OUT_OF_RANGE if an id >= size of the source's vocabulary; KINGLET_CANCELLED.
  Status Encode(std::span<const uint32_t> source, uint32_t lane = 0);
  // Starts a new stream in the lane and encodes its source, which for a masked model is a complete
  // text with [CLS] and [SEP]. segments[i] is the segment number of token i; no segments mean that
  // all are 0. Errors: those of Encode without segments; KINGLET_ID_OUT_OF_RANGE for a segment that
  // the model does not have; KINGLET_INVALID_ARGUMENT if source and segments differ in length;
  // KINGLET_UNSUPPORTED for segments of a translation's source.
  Status Encode(std::span<const uint32_t> source, std::span<const uint32_t> segments,
                uint32_t lane);
  // Processes one token. A model that spells also reads words that its vocabulary lacks, by their
  // numbers (Model::Spell), here and in StepLanes and StepMany. Errors: KINGLET_UNSUPPORTED for a
  // masked model; KINGLET_ID_OUT_OF_RANGE for a number that the model does not read;
  // KINGLET_NO_SOURCE_YET if the model has an encoder and the lane no source; KINGLET_CANCELLED.
  Status StepToken(uint32_t id, uint32_t lane = 0);
  // Processes one token that a model with unchanged weights has processed before: runs only the
  // nodes of `partial` (runtime/partial_context.h), and takes what the other nodes computed from
  // `kept`. Lane 0. Errors: those of StepToken. REQUIRES: `partial` is of this plan, on the host;
  // no encoder.
  Status StepTokenAfter(uint32_t id, const PartialContext& partial,
                        std::span<const std::byte> kept);
  // Processes ids[i] on lanes[i] for every i; no lane occurs twice. After an error no lane has
  // processed its token.
  Status StepLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids);
  // Processes the given tokens of one stream, in order, with the bits of StepToken for each, and
  // writes the log-probability of each after those before it to `log_probabilities`, unless that
  // span is empty; the first token of a stream gets a quiet NaN. If the model allows (TextBlock),
  // each weight is read once for several tokens. Errors: those of StepToken and LogProbability. All
  // ids are checked first. After an error in the middle the lane has processed the first
  // `processed` tokens, whose log-probabilities are written.
  Status StepMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                  uint64_t& processed, uint32_t lane = 0, Computing computing = Computing::kNeeded);
  // Like StepMany for all ids but the last, and writes the log-probabilities of all but the first,
  // log_probabilities[i] of ids[i + 1]: one fewer than ids.
  Status ScoreMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                   uint64_t& processed, uint32_t lane = 0);
  // Scores texts, each a new stream in the lane, as ScoreMany does. A device takes several short
  // texts together. Errors: those of ScoreMany; KINGLET_UNSUPPORTED for a model that translates.
  // After an error, the next text's, the first `done.texts` texts are complete, and the first
  // `done.tokens` tokens of the next one are processed.
  Status ScoreTexts(std::span<const ScoredText> texts, TextProgress& done, uint32_t lane = 0);
  // The number of tokens that the lane's stream has processed. REQUIRES: lane < lanes().
  uint64_t position(uint32_t lane = 0) const;
  // A number that changes whenever the lane's stream does, and that no other stream of any session
  // has had; 0 before the first change. REQUIRES: lane < lanes().
  uint64_t version(uint32_t lane = 0) const;
  // Starts a new stream in the lane, without a source.
  Status Reset(uint32_t lane = 0);
  // From now on calls `before` when a node of a token or of a query is about to run, and `after`
  // when the node has run, with the frames of the lanes on which it runs. Empty functions are not
  // called.
  void set_observer(NodeObserver after, NodeObserver before = {});

  // The token that the lane processed last. REQUIRES: position(lane) > 0.
  uint32_t last_token(uint32_t lane = 0) const;
  // KINGLET_INVALID_ARGUMENT if there is no such lane; KINGLET_NO_TOKEN_YET before its first step.
  Status CheckHasToken(uint32_t lane) const;
  // Whether the option empty_cache is EmptyCache::kNormalised.
  bool empty_cache_is_normalised() const;
  // Another session of the same model with this number of lanes, one thread, and the same options
  // otherwise.
  Result<std::unique_ptr<Session>> CreateAlike(uint32_t lanes) const;

  // Stops the call that is running before its next piece of a node (NextPiece), or else the next
  // call that computes something; the stopped call returns KINGLET_CANCELLED. Later calls run
  // normally. Any thread may call this function. A query for all tokens may run to its end once it
  // writes its answer, and a device always runs a complete token or query.
  void Cancel();
  // For functions that call several sessions: KINGLET_CANCELLED if Cancel was called since the last
  // call that it stopped. `what` names the function, for the message.
  Status TakeCancellation(const std::string& what);

  // --- masked models. Errors of LookAt, Pooled and Scores: KINGLET_UNSUPPORTED for another model,
  // or for one without the part that answers; KINGLET_NO_SOURCE_YET before a text was read;
  // KINGLET_INVALID_ARGUMENT for a position beyond the text; KINGLET_NOT_FINITE; KINGLET_CANCELLED.

  // Directs the lane's queries, from now on, to one position of the text that the lane has read:
  // they predict the token there.
  Status LookAt(uint64_t position, uint32_t lane = 0);
  // Elements of a text's pooled vector; 0 for a model without a pooler.
  uint32_t pooled_width() const;
  // Scores of a text or, in a model that scores spans, of a token; 0 for a model without scores.
  uint32_t scores() const;
  // The text's pooled vector, computed from its first token's; out.size() == pooled_width().
  Status Pooled(std::span<double> out, uint32_t lane = 0);
  // The text's scores, without a softmax; out.size() == scores(). In a model that scores spans: the
  // scores [start, end] of the token at `position`, which is otherwise 0.
  Status Scores(std::span<double> out, uint64_t position = 0, uint32_t lane = 0);

  // --- queries about the token that follows. Errors of all: KINGLET_NO_TOKEN_YET before the lane's
  // first step; KINGLET_NOT_FINITE if the model's own values overflowed; KINGLET_CANCELLED;
  // KINGLET_OUT_OF_MEMORY.

  // log p(id). Computes the head and, if the token is in a tail, that tail.
  Result<double> LogProbability(uint32_t id, uint32_t lane = 0);
  // out[i] = log p(ids[i]); an id may occur more than once. out.size() == ids.size().
  Status LogProbabilitiesOf(std::span<const uint32_t> ids, std::span<double> out,
                            uint32_t lane = 0);
  // The k most probable tokens, the most probable first, equal ones by lower id; all tokens if k
  // exceeds the vocabulary. Does not compute tails that cannot contain one of them; the answer
  // equals the full computation's bit for bit.
  Result<std::vector<Candidate>> TopK(uint32_t k, uint32_t lane = 0);
  // Draws a token at random, as DrawOptions documents. The token depends on the stream's state, the
  // seed and the options alone, and so is the same on any lane, and after save and restore.
  // KINGLET_INVALID_ARGUMENT for options out of their ranges, and if every token with a probability
  // is excluded; KINGLET_ID_OUT_OF_RANGE for an excluded id beyond the vocabulary.
  //
  // With w_i = exp((log p_i - r) / temperature), computed in the backend's real type, where r is
  // the largest log p of the tokens that are not excluded, and sums in double:
  //   All tokens: the cluster drawn is the first one, head first, whose cumulative weight exceeds
  //   UniformDraw(seed, position - 1, 0) times the total; tokens are added up by id, then clusters
  //   in order. The token drawn is the first in that cluster whose cumulative weight exceeds
  //   UniformDraw(seed, position - 1, 1) times the cluster's.
  //   With top_k or top_p: the tokens that remain are added up in their order, and end with the
  //   first whose cumulative weight is at least top_p times the total (of the top_k, or of all
  //   tokens as above). At temperature 1, with no top_k and no token excluded, they are those of
  //   TopP(top_p). The token drawn is the first whose cumulative weight exceeds UniformDraw(seed,
  //   position - 1, 0) times the last one's.
  // A tail is computed only where its probability leaves the choice open, or for an excluded token.
  Result<uint32_t> Draw(uint64_t seed, const DrawOptions& options, uint32_t lane = 0);
  // out[id] = log p of every token; out.size() == vocabulary size. On ref64 the float form rounds.
  Status LogProbabilities(std::span<double> out, uint32_t lane = 0);
  Status LogProbabilities(std::span<float> out, uint32_t lane = 0);
  // LogProbabilities after these tokens, which the lane then takes back: its stream and version do
  // not change, but results of earlier queries are computed again. Errors: also those of StepToken.
  Status LogProbabilitiesAfter(std::span<const uint32_t> ids, std::span<float> out,
                               uint32_t lane = 0);
  // out[id] = p of every token: exp(log p), computed in the backend's real type; out.size() ==
  // vocabulary size. On ref64 the float form rounds.
  Status Probabilities(std::span<double> out, uint32_t lane = 0);
  Status Probabilities(std::span<float> out, uint32_t lane = 0);
  // Computes everything that a query about this token can need; queries then only read the results.
  Status ComputeAll(uint32_t lane = 0);

  // --- queries of programs that look for tokens. Each computes the clusters
  // that its answer needs, and equals, bit for bit, what follows from all log-probabilities. Sums
  // of probabilities add up exp(log p), as Probabilities gives them, in double in the order of ids.

  // The nucleus: the fewest tokens, the most probable first and equal ones by lower id, whose
  // probabilities, added up in that order, reach the fraction `share` of the sum of all tokens',
  // which is 1, or 1 - lambda while a reference neural cache is empty; all tokens for a fraction of
  // 1, and where rounding leaves less. KINGLET_INVALID_ARGUMENT unless 0 < share <= 1.
  Result<std::vector<Candidate>> TopP(double share, uint32_t lane = 0);
  // The token's rank in the order of TopK, from 1.
  Result<uint32_t> Rank(uint32_t id, uint32_t lane = 0);
  // The two terms of the token's probability: the network's own, and the neural cache's.
  Result<CacheContribution> CacheContributionOf(uint32_t id, uint32_t lane = 0);
  // The tokens of the vocabulary whose texts begin with these bytes. KINGLET_UNSUPPORTED if the
  // model file contains ids only.
  Result<TokenSet> WithPrefix(std::string_view prefix) const;
  // The k most probable tokens of the set, as TopK orders them; all of them if there are fewer.
  // KINGLET_INVALID_ARGUMENT, here and below, if the set is of a vocabulary of another size.
  Result<std::vector<Candidate>> TopKOf(const TokenSet& set, uint32_t k, uint32_t lane = 0);
  // The sum of the probabilities of the set's tokens, which is 0 for the empty set.
  Result<double> ProbabilityOf(const TokenSet& set, uint32_t lane = 0);
  // Like ProbabilityOf, for disjoint parts of the set: adds the probability of each token `id` of
  // the set to sums[part_of[id]]. REQUIRES: part_of has an element for each token of the
  // vocabulary, below sums.size() for those of the set.
  Status AddProbabilities(const TokenSet& set, std::span<const uint32_t> part_of,
                          std::span<double> sums, uint32_t lane = 0);
  // For each character that follows the prefix in the text of some token, in byte order, the
  // probability of all tokens that begin with both. KINGLET_UNSUPPORTED as for WithPrefix.
  Result<std::vector<NextCharacter>> NextCharacters(std::string_view prefix, uint32_t lane = 0);
  // The token's interval of the integers below 2^32 (runtime/queries/intervals.h), in proportion to
  // its probability divided by the sum of all.
  Result<Interval> IntervalOf(uint32_t id, uint32_t lane = 0);
  // The token whose interval (IntervalOf) contains the point.
  Result<uint32_t> TokenAt(uint32_t point, uint32_t lane = 0);

  // --- queries of several lanes at once, each lane at most once; answer i is that of lanes[i].
  // Answers, what each lane remembers and the work that it reports are those of a query of that
  // lane alone. A cluster's weights are read once for the lanes that need the cluster, up to
  // kLanesTogether of them at a time, so that their logits stay in the processor's caches.
  // KINGLET_INVALID_ARGUMENT if a lane occurs twice. An error of one lane is the answer to all.

  Status LogProbabilityLanes(std::span<const uint32_t> lanes, std::span<const uint32_t> ids,
                             std::span<double> out, Computing computing = Computing::kNeeded);
  Result<std::vector<std::vector<Candidate>>> TopKLanes(std::span<const uint32_t> lanes, uint32_t k,
                                                        Computing computing = Computing::kNeeded);
  // TopKLanes into arrays of the caller's, a row of min(k, vocabulary size) for each lane; an empty
  // array gets nothing. Allocates nothing where a device ranks (ranks_on_device).
  // KINGLET_INVALID_ARGUMENT for an array of another size.
  Status TopKLanes(std::span<const uint32_t> lanes, uint32_t k, std::span<uint32_t> ids,
                   std::span<double> log_probabilities, Computing computing = Computing::kNeeded);
  Status DrawLanes(std::span<const uint32_t> lanes, std::span<const uint64_t> seeds,
                   const DrawOptions& options, std::span<uint32_t> out);
  // ComputeAll for several lanes. Useful before queries for the full distributions of these lanes.
  Status ComputeAllLanes(std::span<const uint32_t> lanes);

  // What the lane's last query computed, without what earlier queries about the same token had
  // computed; nothing after a step, a reset or a restore. A call that was refused because of its
  // arguments does not count as a query. REQUIRES: lane < lanes().
  const QueryWork& last_work(uint32_t lane = 0) const;
  // The clusters that queries have computed since the lane's last step, or since the memory in
  // which the lane's queries are answered was given to other lanes. REQUIRES: lane < lanes().
  const ClusterSet& clusters_opened(uint32_t lane = 0) const;

  // Whether a device itself finds the k most probable tokens and the log-probability of a token.
  // The device then chooses the tails of a top-k by the head's logits alone, perhaps more tails
  // than the host would, and remembers nothing of them for later queries. False while there is an
  // observer, which is to see every node.
  bool ranks_on_device(uint32_t k) const;
  // Waits until a device has done all work; returns at once on the host. Queries do not need this
  // call.
  Status Wait();
  // What the device was asked to do since the session was created; nothing on the host.
  DeviceWork device_work() const;

  // --- states (runtime/state.h)

  // The state of the lane's stream.
  Result<State> Save(uint32_t lane = 0);
  // Makes the lane's stream the one that was saved as the state. KINGLET_MISMATCH if the state is
  // of another model or real type.
  Status Restore(const State& state, uint32_t lane = 0);
  // Makes the stream in lane `to` a copy of the one in lane `from`.
  Status Fork(uint32_t from, uint32_t to);

 private:
  struct Lane;
  struct Contents;
  struct MemoryPlan;
  explicit Session(std::unique_ptr<Contents> contents);
  static uint64_t LaneBytes();  // of a lane's own members
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
