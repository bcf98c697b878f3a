// One stream of tokens through a model. step(id) runs the plan's context steps in the project's one
// execution loop and leaves the hidden state in a buffer; a query then computes only what it needs
// (the head, one tail, the cache) and remembers it until the next step. Belongs to one thread at a
// time. After any error the session is as it was before the call.
#ifndef KINGLET_RUNTIME_SESSION_H_
#define KINGLET_RUNTIME_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/execute.h"
#include "runtime/model.h"

namespace kinglet {

// What the probability of a word is while the neural cache is empty (before the second token).
enum class EmptyCache : uint8_t {
  kReference,   // (1 - lambda) softmax, as the original code computes: the mass lambda is lost
  kNormalised,  // softmax
};

struct SessionOptions {
  EmptyCache empty_cache = EmptyCache::kReference;
};

// A word and its natural log-probability (a float widened exactly, except on ref64).
struct Candidate {
  uint32_t id;
  double log_probability;
};

class Session {
 public:
  static Result<std::unique_ptr<Session>> Create(std::shared_ptr<const Model> model,
                                                 const SessionOptions& options = {});
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Model& model() const;
  // Tokens processed so far.
  uint64_t position() const;
  // Back to the start of a stream.
  void Reset();
  // Processes one token. KINGLET_ID_OUT_OF_RANGE if id >= vocabulary size.
  Status StepToken(uint32_t id);
  // Called after each of a token's context steps from now on; an empty function stops it.
  void set_observer(StepObserver observer);

  // Queries about the token that follows. KINGLET_NO_TOKEN_YET before the first step;
  // KINGLET_NOT_FINITE if the model's own numbers overflowed.

  // log p(id). Computes the head and, if the word is in a tail, that tail.
  Result<double> LogProbability(uint32_t id);
  // The k most probable words, most probable first, equal ones by lower id first. Tails whose
  // cluster cannot matter are not computed; the answer equals the full computation's bit for bit. k
  // = 0 gives none; k beyond the vocabulary gives all words.
  Result<std::vector<Candidate>> TopK(uint32_t k);
  // log p of every word: out[id], out.size() == vocabulary size. The float form rounds on ref64.
  Status LogProbabilities(std::span<double> out);
  Status LogProbabilities(std::span<float> out);

  // Clusters computed for the queries since the last step: bit i set = cluster i (0 = head).
  uint64_t clusters_opened() const;

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SESSION_H_
