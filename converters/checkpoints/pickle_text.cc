#include "converters/checkpoints/pickle_text.h"

#include "converters/checkpoints/parse_number.h"

namespace kinglet {
namespace {

// The `count` hexadecimal digits at `text[at]`.
std::optional<uint32_t> ParseHex(std::string_view text, size_t at, size_t count) {
  if (at > text.size() || count > text.size() - at) return std::nullopt;
  return ParseNumber<uint32_t>(text.substr(at, count), 16);
}

}  // namespace

std::optional<std::string> ParseQuotedString(std::string_view text) {
  if (text.size() < 2 || (text[0] != '\'' && text[0] != '"') || text.back() != text[0]) {
    return std::nullopt;
  }
  const std::string_view body = text.substr(1, text.size() - 2);
  std::string out;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      out += body[i];
      continue;
    }
    if (++i == body.size()) return std::nullopt;
    switch (body[i]) {
      case '\\':
      case '\'':
      case '"':
        out += body[i];
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'x': {
        const std::optional<uint32_t> byte = ParseHex(body, i + 1, 2);
        if (!byte) return std::nullopt;
        out += static_cast<char>(*byte);
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return out;
}

std::optional<std::string> ParseUnicodeEscapes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == 'u' || text[i + 1] == 'U');
    if (!escape) {
      AppendUtf8(static_cast<unsigned char>(text[i]), &out);
      continue;
    }
    const size_t digits = text[i + 1] == 'u' ? 4 : 8;
    const std::optional<uint32_t> code_point = ParseHex(text, i + 2, digits);
    if (!code_point || !AppendUtf8(*code_point, &out)) return std::nullopt;
    i += 1 + digits;
  }
  return out;
}

bool AppendUtf8(uint32_t code_point, std::string* out) {
  const auto append = [out](uint32_t byte) { *out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xc0 | code_point >> 6);
    append(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    if (code_point >= 0xd800 && code_point < 0xe000) return false;
    append(0xe0 | code_point >> 12);
    append(0x80 | (code_point >> 6 & 0x3f));
    append(0x80 | (code_point & 0x3f));
  } else {
    if (code_point > 0x10ffff) return false;
    append(0xf0 | code_point >> 18);
    append(0x80 | (code_point >> 12 & 0x3f));
    append(0x80 | (code_point >> 6 & 0x3f));
    append(0x80 | (code_point & 0x3f));
  }
  return true;
}

}  // namespace kinglet
