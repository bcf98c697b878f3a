// A keyboard on a terminal: three words are shown while a person types, and Tab takes one.
#ifndef KINGLET_TOOLS_TERMINAL_KEYBOARD_H_
#define KINGLET_TOOLS_TERMINAL_KEYBOARD_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kinglet/status.h"
#include "runtime/session.h"
#include "runtime/state.h"
#include "runtime/typing/decoder.h"
#include "runtime/typing/session_predictor.h"
#include "tools/console.h"
#include "tools/keyboard_layout.h"

namespace kinglet {

// The text of one line and the words offered for it, without a screen: what the keys do.
class LineKeyboard {
 public:
  static constexpr size_t kOffered = 3;

  // REQUIRES: the objects outlive this one; the session has processed a token.
  LineKeyboard(Session& session, typing::TypingDecoder& decoder, const KeyboardLayout& layout);

  // What a key (RawTerminal::Key) does: a character is typed, Tab takes the first word, Alt-1 to
  // Alt-3 take one of the three, Backspace removes a character. Others do nothing. Words are those
  // for the line as it is, also if nothing has called Find since. Errors: those of the session and
  // of the person's words.
  Status Press(const std::string& key);
  // Enter: the line is complete. Returns it; a new one begins.
  Result<std::string> End();

  std::string line() const { return done_ + word_; }
  // Computes the words for what has been typed.
  Status Find();
  const std::vector<typing::TypingCandidate>& offered() const { return offered_; }

 private:
  // A part of the line that the model has read, and what the line was before; `word` has the
  // letters as typed.
  struct Read {
    State state;
    std::string done, part, word, before;
  };
  struct Use {
    std::string before, word;
  };
  Status Take(size_t place);
  // The model reads the word as it is written now, or a part whose letters were `word`.
  Status ReadWord();
  Status ReadPart(const std::string& part, const std::string& word);
  Status Learn();
  Status Remove();
  bool IsSentenceStart() const;
  typing::Capitals CapitalsNow() const;

  Session& session_;
  typing::TypingDecoder& decoder_;
  const KeyboardLayout& layout_;
  typing::SessionPredictor lane_;
  std::string done_, word_;  // what the model has read, with spaces; and letters since
  std::string before_;       // the last part read
  std::deque<Read> reads_;   // the latest ones, which Backspace undoes
  std::optional<Use> use_;   // of the last word, learned with the next one unless it is undone
  std::vector<typing::TypingCandidate> offered_;  // for line(); empty until Find
};

// Runs the keyboard until Ctrl-D. Complete lines are also written to standard output, unless that
// is the terminal. KINGLET_CANCELLED after Ctrl-C.
Status TypeOnTerminal(LineKeyboard& keyboard, Console& console);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_TERMINAL_KEYBOARD_H_
