// Queries about the text that follows, for models of pieces of words: the probability that the text
// continues with a prefix, the probabilities of the character after the prefix, and the most
// probable words that begin with the prefix.
#ifndef KINGLET_RUNTIME_TEXT_PREFIX_H_
#define KINGLET_RUNTIME_TEXT_PREFIX_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinglet/status.h"
#include "runtime/queries/next_characters.h"
#include "runtime/session.h"
#include "runtime/spellings.h"

namespace kinglet {

// A word and the log-probability that the text continues with this word and then ends the word.
struct TextCompletion {
  std::string text;
  double log_probability;
};

struct CompletionOptions {
  uint32_t count = 5;     // the most words to find
  uint32_t beam = 8;      // beginnings of words that are kept after each piece
  uint64_t steps = 1000;  // the most tokens that are stepped
};

// Queries about the text that follows, spelled as Spellings documents: a word that follows another
// begins with a space. Several sequences of pieces can spell a text, also sequences that no
// tokenizer makes; all of them count. A token that spells nothing ends a text. Each query steps
// streams of its own, forked from a lane whose own stream does not change. Used by one thread at a
// time.
class TextPrefix {
 public:
  // KINGLET_UNSUPPORTED for a model of ids only, or with an encoder.
  static Result<TextPrefix> Create(const Model& model);
  // Queries of a model with these spellings. REQUIRES: the model has no encoder.
  explicit TextPrefix(std::shared_ptr<const Spellings> spellings)
      : spellings_(std::move(spellings)) {}

  // --- queries. Errors of all: those of queries of `session`, and of creating a session;
  // KINGLET_INVALID_ARGUMENT for a beam of 0; KINGLET_CANCELLED by Session::Cancel of `session`.

  // The probability that the text which follows begins with `prefix`; 1 for an empty prefix. Exact:
  // the sum, over all sequences of pieces whose last one reaches the prefix's end, of the product
  // of their probabilities. KINGLET_TOO_MANY_STEPS, before any step, if the sum takes more than
  // `most_steps` steps or a sequence of more than 1,024 pieces.
  Result<double> Probability(Session& session, uint32_t lane, std::string_view prefix,
                             uint64_t most_steps);
  // For each character that may follow the prefix, in byte order, the probability of the prefix and
  // the character. The empty text stands for a token that spells nothing. A piece that ends inside
  // a character counts for the character's first byte. Errors: as for Probability.
  Result<std::vector<NextCharacter>> NextCharacters(Session& session, uint32_t lane,
                                                    std::string_view prefix, uint64_t most_steps);
  // The most probable words that begin with the prefix, best first, equal ones in byte order. A
  // word ends before white space and before a token that spells nothing. A beam search finds the
  // words, so a word may be missing, and a word that several sequences of pieces spell may have too
  // low a probability. The search ends when no beginning can lead to one of the best words, or
  // after options.steps.
  Result<std::vector<TextCompletion>> Best(Session& session, uint32_t lane, std::string_view prefix,
                                           const CompletionOptions& options);

  // Tokens that the last query stepped.
  uint64_t steps() const { return steps_; }

 private:
  class Walk;
  class Beam;
  // The object's own streams, at least `lanes` of them; the first becomes a copy of `lane`.
  Result<Session*> StreamsFor(Session& session, uint32_t lane, uint32_t lanes);

  std::shared_ptr<const Spellings> spellings_;
  std::unique_ptr<Session> streams_;
  uint64_t steps_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_PREFIX_H_
