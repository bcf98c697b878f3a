// The text of one stream, token by token, up to a stop text.
#ifndef KINGLET_RUNTIME_STREAM_TEXT_H_
#define KINGLET_RUNTIME_STREAM_TEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/model.h"

namespace kinglet {

// The text of a stream. The model's tokenizer joins tokens; without a tokenizer, words are joined
// with spaces; without a vocabulary there is no text. The word for the end of a line becomes a
// newline. Text that Add has returned never ends inside a character and never changes.
class StreamText {
 public:
  // The stream's text ends before the first occurrence of `stop`, which may begin and end inside
  // tokens; "" means no stop text.
  StreamText(std::shared_ptr<const Model> model, std::string stop);

  // Adds a token before the text, such as one of the prompt. The token prints nothing and stops
  // nothing, but decides whether the text begins with a space.
  void Skip(uint32_t id);
  // Adds a token, and returns the text that is now known: "" while the text may belong to the stop
  // text or to an unfinished character. REQUIRES: !stopped().
  std::string Add(uint32_t id);
  // Whether the stop text was reached, after which no text follows.
  bool stopped() const { return stopped_; }
  // Returns the text that was kept back, once the stream has ended.
  std::string Finish();

 private:
  std::string Join(uint32_t id);
  std::string Release(const std::string& text, bool at_end);

  std::shared_ptr<const Model> model_;
  std::string stop_;
  std::optional<uint32_t> end_of_line_;
  std::optional<TextDecoder> decoder_;  // nullopt for a model of ids only
  std::string held_;  // text that may begin the stop text, or an unfinished character
  bool stopped_ = false;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_STREAM_TEXT_H_
