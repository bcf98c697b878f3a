// What the command asks of the operating system in addition to format/system.h. system_posix.cc
// implements it, or system_windows.cc, which does so for tools/interrupt.h and
// tools/bench/process_use.h too.
#ifndef KINGLET_TOOLS_SYSTEM_H_
#define KINGLET_TOOLS_SYSTEM_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kinglet {

// The words of the command line after the program's, in UTF-8.
std::vector<std::string> ArgumentWords(int argc, const char* const* argv);

// Standard input, output and errors: 0, 1 and 2.
bool IsTerminal(int descriptor);
size_t TerminalColumns(int descriptor);  // 0 if it has none
// Whether the descriptor is a terminal that hands over whole lines.
bool EditsLines(int descriptor);

// Writes some of the bytes: their number, or -1 with errno.
int WriteSome(int descriptor, std::string_view bytes);

// Call once, before anything is written. Bytes are written as they are. Opens unusable descriptors
// for those of 0 to 2 that are closed: otherwise a file opened later could get such a number, and
// then the text of the command. A closed pipe, or the limit of a file's size, is a write error like
// any other and no signal.
void PrepareStandardStreams();

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SYSTEM_H_
