#include "converters/checkpoints/pickle_values.h"

#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/pickle_text.h"
#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

Result<std::string> ReadText(uint64_t length, PickleInput* input, PickleBuilder* build) {
  if (length > input->remaining()) {
    return build->Refuse("at most the " + std::to_string(input->remaining()) + " bytes that remain",
                         "a length of " + std::to_string(length));
  }
  KINGLET_RETURN_IF_ERROR(build->Charge(length));
  KINGLET_ASSIGN_OR_RETURN(const auto taken, input->Take(length));
  return std::string(reinterpret_cast<const char*>(taken.data()), taken.size());
}

// A string after its length, which takes `length_bytes` bytes. Bytes and integers follow theirs
// too.
Result<PickleNode*> ReadString(size_t length_bytes, PickleInput* input, PickleBuilder* build) {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t length, ReadUnsigned(input, length_bytes));
  KINGLET_ASSIGN_OR_RETURN(std::string text, ReadText(length, input, build));
  return build->Add(std::move(text));
}

Result<PickleNode*> ReadBytes(size_t length_bytes, PickleInput* input, PickleBuilder* build) {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t length, ReadUnsigned(input, length_bytes));
  KINGLET_ASSIGN_OR_RETURN(std::string bytes, ReadText(length, input, build));
  return build->Add(PickleBytes{std::move(bytes)});
}

// The most digits of a positive integer as text that is read: torch.save's magic number has 24.
constexpr size_t kLongestInteger = 64;

// `digits`: two's complement, little-endian.
Result<PickleNode*> AddLargeInteger(std::string digits, PickleBuilder* build) {
  PickleObject integer;
  integer.class_name = "int";
  KINGLET_ASSIGN_OR_RETURN(integer.arguments, build->Add(PickleBytes{std::move(digits)}));
  return build->Add(std::move(integer));
}

// A positive integer of decimal digits as little-endian bytes, the last one below 0x80.
std::string BytesOfDigits(std::string_view decimal) {
  std::string bytes;
  for (const char digit : decimal) {
    unsigned carry = static_cast<unsigned>(digit - '0');
    for (char& byte : bytes) {
      carry += 10 * static_cast<unsigned char>(byte);
      byte = static_cast<char>(carry & 0xff);
      carry >>= 8;
    }
    if (carry != 0) bytes += static_cast<char>(carry);
  }
  if (bytes.empty() || (static_cast<unsigned char>(bytes.back()) & 0x80) != 0) bytes += '\0';
  return bytes;
}

// Two's complement, little-endian, after its length.
Result<PickleNode*> ReadLong(size_t length_bytes, PickleInput* input, PickleBuilder* build) {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t length, ReadUnsigned(input, length_bytes));
  KINGLET_ASSIGN_OR_RETURN(std::string digits, ReadText(length, input, build));
  if (length > sizeof(int64_t)) return AddLargeInteger(std::move(digits), build);
  const bool negative = length > 0 && (static_cast<uint8_t>(digits.back()) & 0x80) != 0;
  uint64_t value = negative ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < digits.size(); ++i) {
    value &= ~(uint64_t{0xff} << (8 * i));
    value |= static_cast<uint64_t>(static_cast<uint8_t>(digits[i])) << (8 * i);
  }
  return build->Add(static_cast<int64_t>(value));
}

Result<PickleNode*> ReadInteger(size_t bytes, PickleInput* input, PickleBuilder* build) {
  KINGLET_ASSIGN_OR_RETURN(const uint64_t word, ReadUnsigned(input, bytes));
  return build->Add(static_cast<int64_t>(word));
}

Result<PickleNode*> ReadLine(PickleOpcode opcode, PickleInput* input, PickleBuilder* build) {
  KINGLET_ASSIGN_OR_RETURN(std::string_view line, input->TakeLine());
  KINGLET_RETURN_IF_ERROR(build->Charge(2 * line.size()));
  if (opcode == PickleOpcode::kFloat) {
    if (const auto value = ParseNumber<double>(line)) return build->Add(*value);
    return build->Refuse("a number", QuotedName(line));
  }
  if (opcode == PickleOpcode::kString) {
    if (auto value = ParseQuotedString(line)) return build->Add(std::move(*value));
    return build->Refuse("a quoted string", QuotedName(line));
  }
  if (opcode == PickleOpcode::kUnicode) {
    if (auto value = ParseUnicodeEscapes(line)) return build->Add(std::move(*value));
    return build->Refuse("text in raw-unicode-escape", QuotedName(line));
  }
  // Protocol 0 writes booleans as integers of two digits, and long integers with an L.
  if (opcode == PickleOpcode::kInt && (line == "00" || line == "01"))
    return build->boolean(line == "01");
  const std::string_view whole = line;
  if (opcode == PickleOpcode::kLong && line.ends_with('L')) line.remove_suffix(1);
  if (const auto value = ParseNumber<int64_t>(line)) return build->Add(*value);
  if (opcode == PickleOpcode::kLong && line.size() <= kLongestInteger &&
      line.find_first_not_of("0123456789") == line.npos) {
    return AddLargeInteger(BytesOfDigits(line), build);
  }
  return build->Refuse("an integer of 64 bits", QuotedName(whole));
}

}  // namespace

Result<uint64_t> ReadUnsigned(PickleInput* input, size_t bytes) {
  KINGLET_ASSIGN_OR_RETURN(const auto taken, input->Take(bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(taken[i]) << (8 * i);
  return value;
}

Result<PickleNode*> ReadPickleValue(PickleOpcode opcode, PickleInput* input, PickleBuilder* build) {
  switch (opcode) {
    case PickleOpcode::kBinInt: {
      KINGLET_ASSIGN_OR_RETURN(const uint64_t word, ReadUnsigned(input, 4));
      return build->Add(int64_t{static_cast<int32_t>(static_cast<uint32_t>(word))});
    }
    case PickleOpcode::kBinInt1:
      return ReadInteger(1, input, build);
    case PickleOpcode::kBinInt2:
      return ReadInteger(2, input, build);
    case PickleOpcode::kLong1:
      return ReadLong(1, input, build);
    case PickleOpcode::kLong4:
      return ReadLong(4, input, build);
    case PickleOpcode::kBinFloat: {  // the one big-endian value
      KINGLET_ASSIGN_OR_RETURN(const auto taken, input->Take(8));
      uint64_t word = 0;
      for (const std::byte byte : taken) word = word << 8 | static_cast<uint64_t>(byte);
      return build->Add(std::bit_cast<double>(word));
    }
    case PickleOpcode::kShortBinString:
    case PickleOpcode::kShortBinUnicode:
      return ReadString(1, input, build);
    case PickleOpcode::kBinString:
    case PickleOpcode::kBinUnicode:
      return ReadString(4, input, build);
    case PickleOpcode::kBinUnicode8:
      return ReadString(8, input, build);
    case PickleOpcode::kShortBinBytes:
      return ReadBytes(1, input, build);
    case PickleOpcode::kBinBytes:
      return ReadBytes(4, input, build);
    case PickleOpcode::kBinBytes8:
    case PickleOpcode::kByteArray8:
      return ReadBytes(8, input, build);
    default:  // kInt, kLong, kFloat, kString, kUnicode
      return ReadLine(opcode, input, build);
  }
}

}  // namespace kinglet
