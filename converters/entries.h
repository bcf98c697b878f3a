// Checks of arrays from outside: as many entries as their shape says, all of them finite.
#ifndef KINGLET_CONVERTERS_ENTRIES_H_
#define KINGLET_CONVERTERS_ENTRIES_H_

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

// Errors: KINGLET_INVALID_CHECKPOINT, naming `where` and the first entry that is not finite.
Status CheckFinite(const std::string& what, const std::string& where,
                   std::span<const float> entries);

// Both.
Status CheckArray(const std::string& what, const std::string& where, const Shape& shape,
                  std::span<const float> entries);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_ENTRIES_H_
