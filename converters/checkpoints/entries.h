// Checks of arrays and sizes that come from files: number of entries, finite values, bounds.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_ENTRIES_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_ENTRIES_H_

#include <cstdint>
#include <span>
#include <string>

#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// Checks that an array of `shape` has `found` entries; a shape without dimensions stands for an
// absent array of no entries. Errors: KINGLET_INVALID_CHECKPOINT, naming `where`.
Status CheckEntries(const std::string& what, const std::string& where, const Shape& shape,
                    uint64_t found);

// Checks that all entries are finite. `first` is the index of the first entry, for messages.
// Errors: KINGLET_INVALID_CHECKPOINT, naming `where` and the entry.
Status CheckFinite(const std::string& what, const std::string& where,
                   std::span<const float> entries, uint64_t first = 0);

// CheckEntries and CheckFinite.
Status CheckArray(const std::string& what, const std::string& where, const Shape& shape,
                  std::span<const float> entries);

// Checks that a count is 1 to 2^32 - 1, so that indices are uint32_t. Errors:
// KINGLET_INVALID_CHECKPOINT.
Status CheckCount(const std::string& what, const std::string& where, uint64_t count);

// Checks a batch norm's running variances: at least 0, and above 0 with epsilon added. Errors:
// KINGLET_INVALID_CHECKPOINT.
Status CheckVariances(const std::string& what, std::span<const float> variances, double epsilon);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_ENTRIES_H_
