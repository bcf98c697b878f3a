// Reads memory and does nothing else with it: no kernel that needs the same bytes can be faster.
#ifndef KINGLET_KERNELS_READ_MEMORY_H_
#define KINGLET_KERNELS_READ_MEMORY_H_

#include <cstdint>

#include "kernels/backend.h"

namespace kinglet {

// The exclusive or of all bytes, read 64 at a time from aligned addresses with the widest vectors
// of this machine; bytes before the first and after the last complete line are read one by one. The
// answer depends on every byte, so that no read can be omitted.
uint8_t ReadMemory(MemoryRange range);

}  // namespace kinglet

#endif  // KINGLET_KERNELS_READ_MEMORY_H_
