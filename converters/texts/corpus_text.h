// Text as programs that clean corpora rewrite it before an n-gram model scores it.
#ifndef KINGLET_CONVERTERS_TEXTS_CORPUS_TEXT_H_
#define KINGLET_CONVERTERS_TEXTS_CORPUS_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace kinglet {

// Both make lower-case letters, remove accents and control characters, and rewrite the punctuation
// of other scripts as ASCII.
enum class CorpusRules : uint8_t {
  kCcnet,      // each digit becomes 0 (cc_net/text_normalizer.py, normalize)
  kDatatrove,  // each number becomes 0 (datatrove/utils/perplexity.py, KenlmModel.normalize)
};

// Each line is rewritten by itself; ends of lines stay. Bytes that belong to no character do not
// change.
std::string CorpusText(std::string_view text, CorpusRules rules);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_CORPUS_TEXT_H_
