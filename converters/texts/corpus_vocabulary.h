// A vocabulary made from the texts that a network was trained on, as the framework made it: many
// frameworks save the network and not the words' numbers.
#ifndef KINGLET_CONVERTERS_TEXTS_CORPUS_VOCABULARY_H_
#define KINGLET_CONVERTERS_TEXTS_CORPUS_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// How a framework numbers the words of its texts. kEndOfLine (word_splitter.h) is a word.
enum class WordOrder : uint8_t {
  kUnknown,  // the framework keeps its vocabulary in a file
  // In order of appearance, text after text (pytorch/examples, AWD-LSTM).
  kFirstAppearance,
  // kEndOfLine, then by falling count, words of one count as they appear (Transformer-XL).
  kByCount,
  // By falling count, words of one count by their characters (TensorFlow's PTB reader). Only the
  // first text counts. A line break becomes kEndOfLine without a space: the words of a line
  // without a space at its end run together with the next line's, as in the framework.
  kByCountThenCharacters,
};

// The words in the order of their ids. Errors: those of ForEachWord; KINGLET_INVALID_ARGUMENT for
// texts without any word. REQUIRES: an order other than kUnknown; at least one path.
Result<std::vector<std::string>> VocabularyFromTexts(const std::vector<std::string>& paths,
                                                     WordOrder order);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_TEXTS_CORPUS_VOCABULARY_H_
