// A simulated typist: touches with noise and errors, and what a keyboard saves such a person.
#ifndef KINGLET_TOOLS_TYPIST_H_
#define KINGLET_TOOLS_TYPIST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "converters/texts/text_reader.h"
#include "kinglet/status.h"
#include "runtime/typing/decoder.h"
#include "tools/keyboard_layout.h"

namespace kinglet {

// Touches have Gaussian noise of the deviation `noise`, in widths of a key, in both directions. The
// others are shares of the letters.
struct TypistOptions {
  double noise = 0.5;
  double omitted = 0.03, added = 0.02, swapped = 0.02;
  uint64_t seed = 1;
};

// The touches of one word's letters, without apostrophes and hyphens. The same for equal options
// and `number`. A character that has no key is touched exactly.
std::vector<KeyPlace> TypeLetters(const std::string& word, const KeyboardLayout& layout,
                                  const TypistOptions& options, uint64_t number);

// A predictor that is given a text token by token.
class TextPredictor : public typing::WordPredictor {
 public:
  virtual Status Step(uint32_t id) = 0;
};

// What a simulated typist saw.
struct TypingFigures {
  uint64_t words = 0;
  // Words that the vocabulary lacks, typed for the first, the second and a later time.
  struct Unlisted {
    uint64_t words = 0;
    double keystroke_savings = 0;
  };
  std::array<Unlisted, 3> unlisted;
  double keystroke_savings = 0;              // 1 - touches and taps / letters and spaces
  double recall_at_1 = 0, recall_at_3 = 0;   // of finished words
  double median = 0, high = 0, longest = 0;  // microseconds of a keystroke: p50, p99, the most
};

struct TypingRun {
  const KeyboardLayout& layout;
  TypistOptions typist;
  bool has_touch_model = true;    // otherwise each touch is its nearest key
  uint64_t words = 0;             // the most words to type
  bool types_unlisted = false;    // also words that the vocabulary lacks
  bool learns = false;            // each word is learned when it has been typed
  std::function<Status()> check;  // called for each word; its error ends the run
};

// Types the words of a text that the decoder can find, one after the other, after the text's own
// beginning. A person takes a word as soon as it is among three candidates, which is one tap and
// types the space, and presses shift where the text has a capital. After the last letter of each
// word the finished word is asked for, too. A keystroke includes reading the text before the word.
Result<TypingFigures> SimulateTyping(const TokenSequence& text, TextPredictor& predictor,
                                     typing::TypingDecoder& decoder, const TypingRun& run);

// The weights that make a text likeliest, whose words are learned as they come, and the mean of
// -log p of its words with the usual weights and with these.
struct TunedTyping {
  uint64_t words = 0;
  typing::TypingWeights weights;
  double before = 0, after = 0;
};
Result<TunedTyping> TuneTyping(const TokenSequence& text, TextPredictor& predictor,
                               typing::TypingDecoder& decoder,
                               const std::function<Status()>& check);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TYPIST_H_
