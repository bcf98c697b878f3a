// A pipe wakes a read that waits for input. Otherwise a signal between the check of the flag and
// read(2) would be noticed after the next input only.
#include "tools/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "format/write_file.h"

namespace kinglet {
namespace {

volatile std::sig_atomic_t interrupted = 0;
std::array<int, 2> wake = {-1, -1};  // a pipe: where it is read, where it is written

std::atomic<void (*)()> restore_terminal = nullptr;
static_assert(std::atomic<void (*)()>::is_always_lock_free);

void Note(int /*signal*/) {
  interrupted = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake[1], "", 1);
}

// The signal, whose handling SA_RESETHAND has made the default, ends the program when the handler
// returns.
void CleanUp(int signal) {
  RemoveTemporaryFiles();
  if (void (*const restore)() = restore_terminal) restore();
  std::raise(signal);
}

}  // namespace

void RestoreTerminalAtSignals(void (*restore)()) { restore_terminal = restore; }

void CleanUpAtSignals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = CleanUp;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

void NoteInterrupts() {
  if (::pipe(wake.data()) != 0) return;  // Ctrl-C then ends the program
  for (const int end : wake) {           // macOS has no pipe2
    ::fcntl(end, F_SETFD, FD_CLOEXEC);
    ::fcntl(end, F_SETFL, O_NONBLOCK);
  }
  struct sigaction action {};
  action.sa_handler = Note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

Status WaitForInput(int descriptor) {
  if (wake[0] < 0) return {};
  std::array<pollfd, 2> waited = {pollfd{descriptor, POLLIN, 0}, pollfd{wake[0], POLLIN, 0}};
  while (!Interrupted() && ::poll(waited.data(), waited.size(), -1) < 0) {
  }
  return CheckInterrupt();
}

bool InputIsWaiting(int milliseconds) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, milliseconds) > 0;
}

void EndByInterrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

}  // namespace kinglet
