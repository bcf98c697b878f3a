// The opcodes of a pickle that push one number, string or bytes value.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_VALUES_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_VALUES_H_

#include <cstddef>
#include <cstdint>

#include "converters/checkpoints/pickle_builder.h"
#include "converters/checkpoints/pickle_input.h"
#include "converters/checkpoints/pickle_opcodes.h"
#include "kinglet/status.h"

namespace kinglet {

// A little-endian number of `bytes` bytes. REQUIRES: bytes <= 8.
Result<uint64_t> ReadUnsigned(PickleInput* input, size_t bytes);

// Reads the value that follows `opcode`. A length is checked against the remaining bytes before
// memory is allocated. Errors: KINGLET_INVALID_CHECKPOINT. REQUIRES: an opcode of a number, string
// or bytes value.
Result<PickleNode*> ReadPickleValue(PickleOpcode opcode, PickleInput* input, PickleBuilder* build);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_PICKLE_VALUES_H_
