// Ctrl-C in commands that answer while their input arrives: the answers so far are written, then
// the program ends as the signal ends programs.
#ifndef KINGLET_TOOLS_INTERRUPT_H_
#define KINGLET_TOOLS_INTERRUPT_H_

#include "kinglet/status.h"

namespace kinglet {

// SIGINT, SIGTERM and SIGHUP remove the program's temporary files (format/write_file.h) before they
// end it. A signal that the program ignores stays ignored. Call once, before threads start.
void CleanUpAtSignals();

// From now on the signals of CleanUpAtSignals also call `restore`, unless it is null, which may do
// only what POSIX allows in a handler.
void RestoreTerminalAtSignals(void (*restore)());

// Handles SIGINT: the first one is noted, a second one ends the program as without this call. Call
// once, before threads start.
void NoteInterrupts();

// Whether a SIGINT was noted.
bool Interrupted();
// KINGLET_CANCELLED if a SIGINT was noted.
inline Status CheckInterrupt() {
  if (!Interrupted()) return {};
  return Status::Refusal(KINGLET_CANCELLED, "command", "signal", "to run to the end", "Ctrl-C");
}

// Waits until the descriptor can be read. KINGLET_CANCELLED once a SIGINT was noted. Returns
// immediately without NoteInterrupts.
Status WaitForInput(int descriptor);

// Whether standard input can be read, or ends, within this time.
bool InputIsWaiting(int milliseconds = 0);

// Ends the program by SIGINT: a shell sees status 130, a parent the signal. Returns only where the
// system does not deliver it.
void EndByInterrupt();

}  // namespace kinglet

#endif  // KINGLET_TOOLS_INTERRUPT_H_
