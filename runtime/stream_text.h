// The text of one stream, token by token, up to a stop text.
#ifndef KINGLET_RUNTIME_STREAM_TEXT_H_
#define KINGLET_RUNTIME_STREAM_TEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/model.h"

namespace kinglet {

// Tokens become text as the model's tokenizer joins them; without one, words with a space between
// them; without a vocabulary, no text. The word for the end of a line becomes a newline. What Add
// returns never ends inside a character and is never taken back.
class StreamText {
 public:
  // The stream's text ends before the first occurrence of `stop`, wherever tokens begin and end;
  // "": nothing stops it.
  StreamText(std::shared_ptr<const Model> model, std::string stop);

  // Tokens before the text: they print nothing and stop nothing, but whether a space follows them
  // is known from them.
  void Skip(uint32_t id);
  // What is known of the text from this token on: perhaps "", if it may belong to the stop text or
  // to an unfinished character. REQUIRES: !stopped().
  std::string Add(uint32_t id);
  // The text has stopped: nothing more comes.
  bool stopped() const { return stopped_; }
  // What was kept back. The stream has ended.
  std::string Finish();

 private:
  std::string Join(uint32_t id);
  std::string Release(const std::string& text, bool at_end);

  std::shared_ptr<const Model> model_;
  std::string stop_;
  std::optional<uint32_t> end_of_line_;
  std::optional<TextDecoder> decoder_;  // none: the model has ids only
  std::string held_;                    // the beginning of the stop text or of a character, perhaps
  bool stopped_ = false;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STREAM_TEXT_H_
