// Scores sentences (lines), each from a fresh state, several at once in the lanes of one session.
#ifndef KINGLET_RUNTIME_SENTENCE_SCORER_H_
#define KINGLET_RUNTIME_SENTENCE_SCORER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "format/blocks.h"
#include "format/vocabulary.h"
#include "kinglet/status.h"
#include "runtime/scored_token.h"
#include "runtime/session.h"

namespace kinglet {

// The tokens before and after a sentence.
struct SentenceFrame {
  std::optional<uint32_t> begin;  // fed first, not scored
  std::optional<uint32_t> end;    // scored last
};

// The frame of the model's family. `end` is the model's end token or else the vocabulary's <eos> or
// </s>; `begin` is the model's start token or else the end token. Either may be missing.
// `vocabulary` may be null.
SentenceFrame FrameOf(const ModelDescription& description, const Vocabulary* vocabulary);

// The stream of a sentence, of which the first token is input only and each other one is predicted.
std::vector<uint32_t> Framed(const SentenceFrame& frame, std::span<const uint32_t> sentence);

class SentenceScorer {
 public:
  // A session of options.lanes lanes. Errors: those of Session::Create.
  static Result<SentenceScorer> Create(std::shared_ptr<const Model> model,
                                       const SessionOptions& options);

  // Fills in the next stream; returns false after the last.
  using Next = std::function<bool(std::vector<uint32_t>& stream)>;
  // Takes the tokens of a stream without the first, streams in order from 0 on.
  using Sink = std::function<Status(uint64_t index, std::span<const ScoredToken> tokens)>;

  // Scores all streams that `next` gives. Values depend neither on the number of lanes nor on the
  // other streams. A stream of fewer than two tokens has no scored tokens. Errors: those of
  // stepping and querying a session, naming the stream by `name(index)`; those of `sink`.
  Status Run(const Next& next, const Sink& sink,
             const std::function<std::string(uint64_t index)>& name,
             const PlaceQuestions& questions = {});

 private:
  explicit SentenceScorer(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  std::unique_ptr<Session> session_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SENTENCE_SCORER_H_
