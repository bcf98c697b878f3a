// The names that frameworks give their tensors, for telling which code wrote a checkpoint and
// what it lacks: one table, of codes with a family and of codes that no family reads yet.
#ifndef KINGLET_CONVERTERS_FAMILIES_TRAINING_CODES_H_
#define KINGLET_CONVERTERS_FAMILIES_TRAINING_CODES_H_

#include <span>
#include <string_view>

#include "converters/texts/corpus_vocabulary.h"

namespace kinglet {

struct Framework {
  std::string_view name;  // of the family that reads it, if there is one
  // What to say about a checkpoint where this build has no family of that name.
  std::string_view unread;
  // The names of the tensors, one a pattern:
  //   #    a number; where it is above 0, tensors of all lower numbers are expected too
  //   *    any text
  //   .%   at the end: two patterns, .weight and .bias
  //   |    between patterns of which one is enough
  //   ?    before a pattern that a checkpoint need not have
  std::span<const std::string_view> patterns;
  WordOrder word_order = WordOrder::kUnknown;
};

std::span<const Framework> Frameworks();

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_FAMILIES_TRAINING_CODES_H_
