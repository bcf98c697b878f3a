// Names and bytes from a file, made safe for a one-line message.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_QUOTED_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_QUOTED_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace kinglet {

// Two hexadecimal digits.
std::string HexByte(std::byte byte);

// `text` in single quotes, truncated to 80 bytes, with control characters as \xNN. Bytes of 0x80
// and above stay as they are: names are UTF-8.
std::string QuotedName(std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_QUOTED_H_
