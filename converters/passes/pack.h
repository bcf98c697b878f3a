// Chooses for each tensor whether a mask and its non-zero entries take less room than all entries.
#ifndef KINGLET_CONVERTERS_PASSES_PACK_H_
#define KINGLET_CONVERTERS_PASSES_PACK_H_

#include <cstdint>
#include <optional>

#include "format/encoding.h"
#include "format/packed_model.h"

namespace kinglet {

// Bytes of a tensor's entries (codes or values), scales not counted: all of them, or with a mask of
// one bit each only the non-zero ones.
struct EntryBytes {
  uint64_t dense = 0;
  uint64_t pruned = 0;
};
EntryBytes BytesOfEntries(const EncodedTensor& tensor);

// Sets `pruned` if it makes the tensor smaller, and clears it otherwise. `rows`: the codes by which
// the tensor will be packed, if not by its values. Returns the number of entries that are not zero;
// 0 of a coded table, which has none of its own.
uint64_t ChooseMask(EncodedTensor& tensor, const std::optional<RowCodes>& rows = std::nullopt);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_PASSES_PACK_H_
