// Text from a file, made safe to stand in a one-line message.
#ifndef KINGLET_CONVERTERS_SOURCES_QUOTED_H_
#define KINGLET_CONVERTERS_SOURCES_QUOTED_H_

#include <string>
#include <string_view>

namespace kinglet {

// `text` in single quotes, shortened to at most 80 bytes, with control bytes as \xNN. Bytes of 0x80
// and above pass unchanged: names are UTF-8.
std::string QuotedName(std::string_view text);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_SOURCES_QUOTED_H_
