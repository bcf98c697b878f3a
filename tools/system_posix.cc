#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>

#include "tools/system.h"

namespace kinglet {

std::vector<std::string> ArgumentWords(int argc, const char* const* argv) {
  return {argv + std::min(argc, 1), argv + argc};
}

bool IsTerminal(int descriptor) { return ::isatty(descriptor) == 1; }

size_t TerminalColumns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : size_t{0};
}

// The terminal's canonical mode (POSIX, General Terminal Interface).
bool EditsLines(int descriptor) {
  termios settings{};
  return ::tcgetattr(descriptor, &settings) == 0 && (settings.c_lflag & tcflag_t{ICANON}) != 0;
}

int WriteSome(int descriptor, std::string_view bytes) {
  return static_cast<int>(
      ::write(descriptor, bytes.data(), std::min<size_t>(bytes.size(), INT_MAX)));
}

void PrepareStandardStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is `descriptor`. The access mode is deliberately
    // the wrong one, so that using the descriptor fails.
    const int access = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", access) != descriptor) std::_Exit(1);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace kinglet
