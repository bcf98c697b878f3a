#include "tools/system.h"

#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
// After windows.h, whose types they use.
#include <fcntl.h>
#include <io.h>
#include <psapi.h>
#include <shellapi.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "format/write_file.h"
#include "tools/bench/process_use.h"
#include "tools/interrupt.h"

namespace kinglet {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void Note(int /*signal*/) { interrupted = 1; }  // the system has made the default of the next one

void CleanUp(int signal) {
  RemoveTemporaryFiles();
  std::raise(signal);
}

std::string Narrow(const wchar_t* wide) {
  const auto convert = [&](char* out, int room) {
    return ::WideCharToMultiByte(CP_UTF8, 0, wide, -1, out, room, nullptr, nullptr);
  };
  std::string text(static_cast<size_t>(std::max(convert(nullptr, 0), 1)), '\0');
  convert(text.data(), static_cast<int>(text.size()));
  text.pop_back();  // the zero at its end
  return text;
}

}  // namespace

std::vector<std::string> ArgumentWords(int /*argc*/, const char* const* /*argv*/) {
  int count = 0;
  const auto release = [](wchar_t** words) { ::LocalFree(words); };
  const std::unique_ptr<wchar_t*, decltype(release)> words(
      ::CommandLineToArgvW(::GetCommandLineW(), &count), release);
  std::vector<std::string> narrow;
  for (int i = 1; i < count; ++i) narrow.push_back(Narrow(words.get()[i]));
  return narrow;
}

bool IsTerminal(int descriptor) {
  DWORD mode = 0;
  return ::GetConsoleMode(reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor)), &mode) != FALSE;
}

size_t TerminalColumns(int descriptor) {
  CONSOLE_SCREEN_BUFFER_INFO about = {};
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  if (::GetConsoleScreenBufferInfo(handle, &about) == FALSE) return 0;
  return static_cast<size_t>(about.srWindow.Right - about.srWindow.Left + 1);
}

bool EditsLines(int descriptor) {
  DWORD mode = 0;
  const auto handle = reinterpret_cast<HANDLE>(::_get_osfhandle(descriptor));
  return ::GetConsoleMode(handle, &mode) != FALSE && (mode & ENABLE_LINE_INPUT) != 0;
}

int WriteSome(int descriptor, std::string_view bytes) {
  const int written = ::_write(descriptor, bytes.data(),
                               static_cast<unsigned>(std::min<size_t>(bytes.size(), INT_MAX)));
  const bool reader_left = _doserrno == ERROR_NO_DATA || _doserrno == ERROR_BROKEN_PIPE;
  if (written < 0 && reader_left) errno = EPIPE;
  return written;
}

void PrepareStandardStreams() {
  for (const int descriptor : {0, 1, 2}) ::_setmode(descriptor, _O_BINARY);
  ::SetConsoleOutputCP(CP_UTF8);
}

// What tools/interrupt.h declares. A read that waits is not woken: Ctrl-C is noticed after it.

void CleanUpAtSignals() {
  for (const int signal : {SIGINT, SIGTERM}) {
    if (std::signal(signal, CleanUp) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void RestoreTerminalAtSignals(void (* /*restore*/)()) {}

void NoteInterrupts() { std::signal(SIGINT, Note); }

bool Interrupted() { return interrupted != 0; }

Status WaitForInput(int /*descriptor*/) { return CheckInterrupt(); }

bool InputIsWaiting(int /*milliseconds*/) { return false; }

void EndByInterrupt() {}

// What tools/bench/process_use.h declares.

std::optional<uint64_t> PeakResidentBytes() {
  PROCESS_MEMORY_COUNTERS counters = {};
  counters.cb = sizeof counters;
  if (::GetProcessMemoryInfo(::GetCurrentProcess(), &counters, sizeof counters) == FALSE) {
    return std::nullopt;
  }
  return counters.PeakWorkingSetSize;
}

long Interruptions() { return 0; }  // Windows does not count them

}  // namespace kinglet
