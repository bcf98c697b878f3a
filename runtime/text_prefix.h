// Queries about the text that follows, for models of pieces of words: how probable it is that the
// text continues with a prefix, with which character it continues after that, and the best words that
// begin so.
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

// A word and the log-probability that the text continues with it, and then with none of its letters.
struct TextCompletion {
  std::string text;
  double log_probability;
};

struct CompletionOptions {
  uint32_t count = 5;     // the most that are wanted
  uint32_t beam = 8;      // beginnings of words that are kept after each piece
  uint64_t steps = 1000;  // the most tokens that are stepped
};

// Text is what Spellings says: a word that follows another begins with a space. Several sequences
// of pieces can spell a text, also such as no tokenizer makes; all of them count. A token that
// spells nothing ends a text. Each question steps streams of its own, forked from the lane that is
// asked about, which stays as it is. Used by one thread at a time.
class TextPrefix {
 public:
  // KINGLET_UNSUPPORTED: the model has ids only, or an encoder.
  static Result<TextPrefix> Create(const Model& model);
  // Of a model without an encoder.
  explicit TextPrefix(std::shared_ptr<const Spellings> spellings)
      : spellings_(std::move(spellings)) {}

  // Errors of all: those of queries of `session`, and of creating a session;
  // KINGLET_INVALID_ARGUMENT for a beam of 0; KINGLET_CANCELLED by Session::Cancel of `session`.
  //
  // The probability that the text which follows begins with `prefix`: 1 for no bytes. Exact: the
  // sum over all sequences of pieces of which the last reaches the prefix's end, of the product of
  // their probabilities. KINGLET_TOO_MANY_STEPS, before any step, if that takes more than
  // `most_steps`, or a sequence of more than 1,024 pieces.
  Result<double> Probability(Session& session, uint32_t lane, std::string_view prefix,
                             uint64_t most_steps);
  // For each character that may follow the prefix, in byte order, the probability of the prefix and
  // the character. The empty text: a token that spells nothing. A piece that ends inside a
  // character counts for the character's first byte. Errors: as for Probability.
  Result<std::vector<NextCharacter>> NextCharacters(Session& session, uint32_t lane,
                                                    std::string_view prefix, uint64_t most_steps);
  // The most probable words that begin with the prefix, best first, equal ones in byte order. A
  // word ends before white space and before a token that spells nothing. Found by a beam, so a word
  // may be missing, and one that several sequences of pieces spell may have too little; the search
  // ends when no beginning can be among the best, or after options.steps.
  Result<std::vector<TextCompletion>> Best(Session& session, uint32_t lane, std::string_view prefix,
                                           const CompletionOptions& options);

  // Tokens that the last question stepped.
  uint64_t steps() const { return steps_; }

 private:
  class Walk;
  class Beam;
  // Streams of its own, the first of them as `lane` of the session.
  Result<Session*> StreamsFor(Session& session, uint32_t lane, uint32_t lanes);

  std::shared_ptr<const Spellings> spellings_;
  std::unique_ptr<Session> streams_;
  uint64_t steps_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_PREFIX_H_
