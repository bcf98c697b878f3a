#include "tools/raw_terminal.h"

#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "format/utf8.h"
#include "runtime/text/unicode_ranges.h"
#include "tools/interrupt.h"
#include "tools/system.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

// The terminal's modes before they were changed.
termios modes_before;

void RestoreModes() { ::tcsetattr(STDIN_FILENO, TCSANOW, &modes_before); }

// The window's columns that a line may use; a character in the last one would move the cursor.
size_t UsableColumns() {
  const size_t columns = TerminalColumns(STDERR_FILENO);
  return columns == 0 ? 79 : std::max<size_t>(columns, 2) - 1;
}

// Characters of Asia and symbols take two columns, marks none.
size_t ColumnsOfCharacter(std::string_view character) {
  constexpr uint32_t kFirstWide = 0x1100, kSymbols = 0x2000, kLastSymbol = 0x20FF;
  const uint32_t code = CodePointOf(character);
  if (InRanges(kMarks, code)) return 0;
  return code >= kFirstWide && (code < kSymbols || code > kLastSymbol) ? 2 : 1;
}

// The most characters of a text without controls that fit, from its beginning or at its end.
std::string Fitting(std::string_view text, size_t columns, bool at_end) {
  std::vector<std::string_view> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t length = UnitLength(text.substr(at));
    characters.push_back(text.substr(at, length));
    at += length;
  }
  if (at_end) std::reverse(characters.begin(), characters.end());
  size_t used = 0, bytes = 0;
  for (const std::string_view character : characters) {
    used += ColumnsOfCharacter(character);
    if (used > columns) break;
    bytes += character.size();
  }
  return std::string(at_end ? text.substr(text.size() - bytes) : text.substr(0, bytes));
}

void WriteToScreen(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a window that is gone
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

Result<RawTerminal> RawTerminal::Open() {
  termios mode{};
  if (::tcgetattr(STDIN_FILENO, &mode) != 0 || ::isatty(STDERR_FILENO) == 0) {
    return Status::Refusal(KINGLET_IO_ERROR, "type", "standard input and standard error",
                           "a terminal, or --simulate TEXT", "something else");
  }
  modes_before = mode;
  RestoreTerminalAtSignals(RestoreModes);
  // Output is processed as before. Ctrl-Z and Ctrl-\ would leave the terminal without its modes.
  mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  mode.c_cc[VSUSP] = mode.c_cc[VQUIT] = _POSIX_VDISABLE;
  if (::tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) != 0) {
    return Status::Refusal(KINGLET_IO_ERROR, "type", "standard input",
                           "a terminal whose modes can change", std::strerror(errno));
  }
  return RawTerminal();
}

RawTerminal::RawTerminal(RawTerminal&& other) noexcept
    : is_owner_(std::exchange(other.is_owner_, false)) {}

RawTerminal::~RawTerminal() {
  if (!is_owner_) return;
  RestoreTerminalAtSignals(nullptr);
  RestoreModes();
}

Result<std::optional<char>> RawTerminal::Byte() {
  while (true) {
    KINGLET_RETURN_IF_ERROR(WaitForInput(STDIN_FILENO));
    char byte = 0;
    const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    return got == 1 ? std::optional(byte) : std::nullopt;  // a terminal that is gone ends the input
  }
}

Result<std::optional<std::string>> RawTerminal::Key() {
  constexpr char kEscape = '\x1B';
  KINGLET_ASSIGN_OR_RETURN(const std::optional<char> first, Byte());
  if (!first) return std::optional<std::string>();
  std::string key(1, *first);
  // A byte of a longer key follows at once, from a terminal; alone it is the key Escape.
  const auto take = [&]() -> Result<bool> {
    constexpr int kMilliseconds = 50;
    if (!InputIsWaiting(kMilliseconds)) return false;
    KINGLET_ASSIGN_OR_RETURN(const std::optional<char> byte, Byte());
    if (byte) key += *byte;
    return byte.has_value();
  };
  if (*first == kEscape) {
    KINGLET_ASSIGN_OR_RETURN(bool has_more, take());
    if (!has_more) return std::optional(std::string());
    if (key[1] != '[' && key[1] != 'O') return std::optional(key);
    do {  // up to the letter or ~ that ends the sequence
      KINGLET_ASSIGN_OR_RETURN(has_more, take());
    } while (has_more && (key.back() < '@' || key.back() > '~'));
    return std::optional(std::string());
  }
  const auto lead = static_cast<unsigned char>(*first);
  const size_t length = lead < 0xC0 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  while (key.size() < length) {
    KINGLET_ASSIGN_OR_RETURN(const bool has_more, take());
    if (!has_more) break;
  }
  return std::optional(IsUtf8(key) ? key : std::string());
}

void RawTerminal::Draw(const std::string& line, const std::string& below) {
  const size_t columns = UsableColumns();
  const std::string shown = Fitting(DisplayText(line), columns, true);
  std::string screen = "\r\x1B[K\r\n\x1B[K" + Fitting(DisplayText(below), columns, false);
  WriteToScreen(screen + "\x1B[A\r" + shown);
}

void RawTerminal::Finish(const std::string& line) {
  WriteToScreen("\r\n\x1B[K\x1B[A\r\x1B[K" + DisplayText(line) + "\r\n");
}

}  // namespace kinglet
