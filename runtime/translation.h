// Translating with a model that has an encoder: the most probable target sequences, found by beam
// search over forks of one stream.
#ifndef KINGLET_RUNTIME_TRANSLATION_H_
#define KINGLET_RUNTIME_TRANSLATION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kinglet/status.h"
#include "runtime/session.h"

namespace kinglet {

struct TranslationOptions {
  uint32_t end_token = 0;     // ends a translation (OpenNMT's </s>)
  uint32_t max_length = 100;  // words, the end token included; at least 1
  // A finished translation of n words, its end included, ranks by log p / n^length_penalty; 0: by
  // log p. Finite, from 0.
  double length_penalty = 0;
};

struct Translation {
  std::vector<uint32_t> ids;   // without start and end
  double log_probability = 0;  // of the ids and, where finished, the end: the sum in their order
  double score = 0;            // what it ranks by
  bool finished = false;       // false: cut at the longest length
};

// Beam search as wide as the session has lanes: of all one-word extensions of the sequences at hand
// the most probable are kept, as many as the beam is wide; those that end are set aside, the others
// are extended further. Between equally probable ones the earlier sequence's comes first, then the
// lower id. It ends when as many are set aside as the beam is wide, or no sequence is left, or the
// longest length is reached, or, without a length penalty, no extension can beat the best that is
// set aside. A beam of 1 is greedy search.
//
// The result has the finished ones, best first, at most as many as the beam is wide; without any,
// those that were cut, so it is never empty. All lanes of the session are used and left somewhere.
// Errors: those of Session::Encode and of queries; KINGLET_INVALID_ARGUMENT for options out of
// range, and where the longest length is more than the decoder has positions.
Result<std::vector<Translation>> Translate(std::span<const uint32_t> source,
                                           const TranslationOptions& options, Session& session);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TRANSLATION_H_
