// What reading values of the header's tables is made of.
#ifndef KINGLET_FORMAT_SCHEMA_READER_H_
#define KINGLET_FORMAT_SCHEMA_READER_H_

#include <cstdint>
#include <string>

#include "kinglet/status.h"

namespace kinglet {

class SchemaReader {
 public:
  // REQUIRES: the source, which every refusal names, outlives it.
  explicit SchemaReader(const std::string& source) : source_(source) {}

  Status Invalid(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_MODEL, source_, where, expected, found);
  }

  // Any enumeration of the schema is numbered from 0 without gaps.
  template <class To, class From>
  Result<To> Enumerator(const std::string& where, From value, From last) const {
    if (value > last) {
      return Invalid(where, "a number up to " + std::to_string(static_cast<unsigned>(last)),
                     std::to_string(static_cast<unsigned>(value)));
    }
    return static_cast<To>(value);
  }

  Status CheckLength(const std::string& where, uint64_t length, uint64_t largest) const {
    if (length <= largest) return {};
    return Invalid(where, "at most " + std::to_string(largest), std::to_string(length));
  }

 protected:
  const std::string& source_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_SCHEMA_READER_H_
