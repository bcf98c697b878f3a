// Chooses for each tensor whether a mask and its non-zero entries take less room than all entries.
#ifndef KINGLET_CONVERTERS_PASSES_PACK_H_
#define KINGLET_CONVERTERS_PASSES_PACK_H_

#include <cstdint>

#include "format/writer.h"

namespace kinglet {

// Bytes of a tensor's entries (codes or values), scales not counted: all of them, or with a mask of
// one bit each only the non-zero ones.
struct EntryBytes {
  uint64_t dense = 0;
  uint64_t pruned = 0;
};
EntryBytes BytesOfEntries(const EncodedTensor& tensor);

// Sets `pruned` on every tensor that it makes smaller, and clears it on the others.
void PackTensors(ModelDraft& draft);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PACK_H_
