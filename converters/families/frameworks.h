// The names that frameworks give their tensors. The names tell which framework wrote a checkpoint,
// and what the checkpoint lacks. Some frameworks have no family yet.
#ifndef KINGLET_CONVERTERS_FAMILIES_FRAMEWORKS_H_
#define KINGLET_CONVERTERS_FAMILIES_FRAMEWORKS_H_

#include <span>
#include <string_view>

#include "converters/texts/corpus_vocabulary.h"

namespace kinglet {

struct Framework {
  std::string_view name;  // of the family that reads it, if there is one
  // The message about a checkpoint if this build has no family of that name.
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

#endif  // KINGLET_CONVERTERS_FAMILIES_FRAMEWORKS_H_
