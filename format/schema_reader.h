// Reads single values of the header's tables and refuses what is out of range.
#ifndef KINGLET_FORMAT_SCHEMA_READER_H_
#define KINGLET_FORMAT_SCHEMA_READER_H_

#include <cstdint>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

// The base of the readers of the header and of its blocks.
class SchemaReader {
 public:
  // `origin` begins the text of every refusal. REQUIRES: `origin` outlives the reader.
  explicit SchemaReader(const std::string& origin) : origin_(origin) {}

  Status Invalid(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, origin_, where, expected, found);
  }

  // Every enumeration of the schema counts from 0 without gaps, and so does the value type `To`.
  template <class From, class To>
  Status ReadEnumerator(const std::string& where, From value, To& out) const {
    if (value > From::MAX) {
      return Invalid(where, "a number up to " + std::to_string(static_cast<unsigned>(From::MAX)),
                     std::to_string(static_cast<unsigned>(value)));
    }
    out = static_cast<To>(value);
    return {};
  }

  Status CheckLength(const std::string& where, uint64_t length, uint64_t largest) const {
    if (length <= largest) return {};
    return Invalid(where, "at most " + std::to_string(largest), std::to_string(length));
  }

 protected:
  const std::string& origin_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_SCHEMA_READER_H_
