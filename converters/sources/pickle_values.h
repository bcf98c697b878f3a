// The operations of a pickle that push one number or one string.
#ifndef KINGLET_CONVERTERS_SOURCES_PICKLE_VALUES_H_
#define KINGLET_CONVERTERS_SOURCES_PICKLE_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "converters/sources/pickle_builder.h"
#include "converters/sources/pickle_input.h"
#include "converters/sources/pickle_opcodes.h"
#include "kinglet/status.h"

namespace kinglet {

// A little-endian number of `bytes` bytes, at most 8.
Result<uint64_t> ReadUnsigned(PickleInput* input, size_t bytes);

// The value that follows `opcode` in `input`. Lengths are checked against what remains before
// memory is taken.
Result<PickleNode*> ReadPickleValue(PickleOpcode opcode, PickleInput* input, PickleBuilder* build);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_PICKLE_VALUES_H_
