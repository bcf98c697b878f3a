// The terminal of standard input, key by key, and two lines of a screen that are redrawn.
#ifndef KINGLET_TOOLS_RAW_TERMINAL_H_
#define KINGLET_TOOLS_RAW_TERMINAL_H_

#include <optional>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// While an object lives, keys are read at once and not echoed; Ctrl-C is a signal still. The
// destructor restores the terminal, and so do the signals of CleanUpAtSignals (tools/interrupt.h).
class RawTerminal {
 public:
  // KINGLET_IO_ERROR if standard input or standard error is no terminal that can redraw a line.
  static Result<RawTerminal> Open();
  RawTerminal(RawTerminal&& other) noexcept;
  RawTerminal& operator=(RawTerminal&&) = delete;
  ~RawTerminal();

  // The next key: a character of UTF-8, a control, or Escape and the character of a key pressed
  // with Alt. Empty for keys without a character (arrows). nullopt at the input's end.
  // KINGLET_CANCELLED after Ctrl-C.
  Result<std::optional<std::string>> Key();

  // Redraws both lines, the cursor after `line`. Of a line that is too long for the window the end
  // is shown, of `below` the beginning.
  static void Draw(const std::string& line, const std::string& below);
  // Leaves the line on the screen, in full, without what was below.
  static void Finish(const std::string& line);

 private:
  RawTerminal() = default;
  static Result<std::optional<char>> Byte();
  bool is_owner_ = true;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_RAW_TERMINAL_H_
