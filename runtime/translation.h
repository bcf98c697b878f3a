// Translation with a model that has an encoder: beam search for the most probable target sequences,
// over forks of one stream.
#ifndef KINGLET_RUNTIME_TRANSLATION_H_
#define KINGLET_RUNTIME_TRANSLATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/session.h"

namespace kinglet {

enum class LengthPenalty : uint8_t {
  kPower,  // n^A
  kGnmt,   // ((5 + n) / 6)^A (Wu et al. 2016)
};

struct TranslationOptions {
  uint32_t end_token = 0;     // ends a translation (OpenNMT's </s>)
  uint32_t max_length = 100;  // tokens, the end token included; at least 1
  // The score of a finished translation of n tokens, its end included, is log p divided by the form
  // of the length penalty A, which is finite and at least 0. With 0 the score is log p.
  double length_penalty = 0;
  uint32_t n_best = 1;  // translations to find: 1 to the width of the beam
  LengthPenalty penalty_form = LengthPenalty::kPower;
};

struct Translation {
  std::vector<uint32_t> ids;   // without start and end token
  double log_probability = 0;  // of the ids and, if finished, the end token: the sum in their order
  double score = 0;            // by which translations are ranked
  bool finished = false;       // false if truncated at max_length
};

// Beam search, as OpenNMT-py's translate.py does it. The width of the beam is the number of the
// session's lanes. Each round extends every unfinished sequence by one token and keeps the `width`
// most probable extensions; of equally probable ones the earlier sequence's comes first, then the
// lower id. Extensions by the end token are finished and leave the beam. The search ends with the
// first round in which the most probable extension has been finished, in this round or an earlier
// one, and at least n_best sequences are finished; or if no unfinished sequence remains. At
// max_length unfinished sequences count as finished. So n_best may change the best translation too.
// A width of 1 is greedy search.
//
// Returns the n_best finished sequences of the best scores, best first, or fewer, but at least one.
// The streams in the session's lanes are replaced.
// Errors: those of Session::Encode and of queries; KINGLET_INVALID_ARGUMENT for options out of
// range, also if max_length is more than the decoder has positions.
Result<std::vector<Translation>> Translate(std::span<const uint32_t> source,
                                           const TranslationOptions& options, Session& session);

// Translates several sources, each with the bits of Translate in a session of `width` lanes. As
// many as have room in the session's lanes advance together; where one ends, the next one begins.
// The lanes of `encoder`, a session of the same model, read the sources. The answers are in the
// order of the sources; that of a source which Encode refuses is its error. Errors of all: those of
// Translate but Encode's.
Result<std::vector<Result<std::vector<Translation>>>> TranslateTogether(
    std::span<const std::vector<uint32_t>> sources, uint32_t width,
    const TranslationOptions& options, Session& session, Session& encoder);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TRANSLATION_H_
