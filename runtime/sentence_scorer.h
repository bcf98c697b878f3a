// Scores streams of tokens (lines, blocks, translations), each from a fresh state, several at once
// in the lanes of one session.
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

// The stream of a sentence: the first token is input only, each other one is predicted.
std::vector<uint32_t> Framed(const SentenceFrame& frame, std::span<const uint32_t> sentence);

// A text of its own.
struct SentenceStream {
  std::optional<std::vector<uint32_t>> source;  // what an encoder reads
  std::vector<uint32_t> tokens;  // numbers that the model reads; the first is input only
  size_t context = 0;            // tokens after the first that are fed and not scored
};

// A block of a text that is scored in blocks (`score --block`): the `stride` tokens of `stream`
// after `at`, each predicted after the block's other tokens and at most `context` tokens before
// `at`. REQUIRES: at + 1 < stream.size().
SentenceStream BlockAt(std::span<const uint32_t> stream, uint64_t at, uint64_t stride,
                       uint64_t context);

class SentenceScorer {
 public:
  // A session of options.lanes lanes. Errors: those of Session::Create.
  static Result<SentenceScorer> Create(std::shared_ptr<const Model> model,
                                       const SessionOptions& options);

  uint32_t lanes() const { return session_->lanes(); }

  // Fills in the next stream; returns false after the last.
  using Next = std::function<bool(SentenceStream& stream)>;
  // Takes the scored tokens of a stream, streams in order from 0 on.
  using Sink = std::function<Status(uint64_t index, std::span<const ScoredToken> tokens)>;
  // The name of a stream and of its token `at` in messages.
  using Name = std::function<std::string(uint64_t index, size_t at)>;

  // Scores all streams that `next` gives. Values depend neither on the number of lanes nor on the
  // other streams. A stream of at most `context` + 1 tokens has no scored tokens. Errors: those of
  // stepping and querying a session, with `name` in front; those of `sink`.
  Status Run(const Next& next, const Sink& sink, const Name& name,
             const PlaceQuestions& questions = {});
  // Likewise, stream after stream with the tokens of each together (Session::ScoreTexts), several
  // streams ahead of the sink. REQUIRES: no stream has a source.
  Status RunInTurn(const Next& next, const Sink& sink, const Name& name);

  // Three ways to score streams[i] for each chosen i, which give the same values: Run, RunInTurn,
  // and with each beginning that several streams share processed once (ScoreTree). Which is the
  // quickest depends on the model, the streams and the number of lanes. Sink and name get an index
  // in `streams`; the sink is called in the order of `chosen`. REQUIRES: no stream has a source.
  Status RunInLanes(std::span<const SentenceStream> streams, std::span<const size_t> chosen,
                    const Sink& sink, const Name& name);
  Status RunInTurn(std::span<const SentenceStream> streams, std::span<const size_t> chosen,
                   const Sink& sink, const Name& name);
  Status RunAsTree(std::span<const SentenceStream> streams, std::span<const size_t> chosen,
                   const Sink& sink, const Name& name);

 private:
  explicit SentenceScorer(std::unique_ptr<Session> session) : session_(std::move(session)) {}
  std::unique_ptr<Session> session_;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_SENTENCE_SCORER_H_
