// Checks of arrays and sizes from outside: as many entries as the shape says, all of them finite.
#ifndef KINGLET_CONVERTERS_SOURCES_ENTRIES_H_
#define KINGLET_CONVERTERS_SOURCES_ENTRIES_H_

#include <cstdint>
#include <span>
#include <string>

#include "format/encoding.h"
#include "kinglet/status.h"

namespace kinglet {

// An array of `shape` has `found` entries; one of no dimensions is absent and has none. Errors:
// KINGLET_INVALID_CHECKPOINT, naming `where`.
Status CheckEntries(const std::string& what, const std::string& where, const Shape& shape,
                    uint64_t found);

// Errors: KINGLET_INVALID_CHECKPOINT, naming `where` and the first entry that is not finite,
// counted from `first` on.
Status CheckFinite(const std::string& what, const std::string& where,
                   std::span<const float> entries, uint64_t first = 0);

// Both.
Status CheckArray(const std::string& what, const std::string& where, const Shape& shape,
                  std::span<const float> entries);

// A size that is an index's bound: 1 to 2^32 - 1. Errors: KINGLET_INVALID_CHECKPOINT.
Status CheckCount(const std::string& what, const std::string& where, uint64_t count);

// The running variances of a batch norm and its epsilon: none below 0, none that leaves 0 under the
// root. Errors: KINGLET_INVALID_CHECKPOINT.
Status CheckVariances(const std::string& what, std::span<const float> variances, double epsilon);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_ENTRIES_H_
