// Chooses the smaller stored form of each tensor: all entries, or a mask with a bit per entry and
// the non-zero entries.
#ifndef KINGLET_CONVERTERS_PASSES_PACK_H_
#define KINGLET_CONVERTERS_PASSES_PACK_H_

#include <cstdint>
#include <optional>

#include "format/encoding.h"
#include "format/packed_model.h"

namespace kinglet {

// Bytes of a tensor's entries (codes or values), scales not counted.
struct EntryBytes {
  uint64_t dense = 0;   // of all entries
  uint64_t pruned = 0;  // of a mask and the non-zero entries
};
// REQUIRES: not coded.
EntryBytes BytesOfEntries(const EncodedTensor& tensor);

// Sets `pruned` if a mask makes the tensor smaller, and clears it otherwise. `rows`: the codes that
// are packed instead of the tensor's values. Returns the number of entries that are not zero; 0 for
// a coded table, which does not change.
uint64_t ChooseMask(EncodedTensor& tensor, const std::optional<RowCodes>& rows = std::nullopt);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PACK_H_
