#include "converters/checkpoints/varint_reader.h"

#include <utility>

#include "format/little_endian.h"

namespace kinglet {
namespace {

const std::byte* AsBytes(std::string_view text) {
  return reinterpret_cast<const std::byte*>(text.data());
}

// The wire types of protocol buffers.
constexpr uint64_t kVarintField = 0, kFixed64Field = 1, kBytesField = 2, kFixed32Field = 5;

}  // namespace

std::optional<uint64_t> VarintReader::Varint() {
  constexpr unsigned kLastShift = 63;
  uint64_t value = 0;
  for (unsigned shift = 0; shift <= kLastShift && !bytes_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    if (shift == kLastShift && byte > 1) return std::nullopt;
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80U) return value;
  }
  return std::nullopt;
}

std::optional<uint32_t> VarintReader::Fixed32() {
  const auto bytes = Bytes(sizeof(uint32_t));
  if (!bytes) return std::nullopt;
  return LoadLittle<uint32_t>(AsBytes(*bytes));
}

std::optional<uint64_t> VarintReader::Fixed64() {
  const auto bytes = Bytes(sizeof(uint64_t));
  if (!bytes) return std::nullopt;
  return LoadLittle<uint64_t>(AsBytes(*bytes));
}

std::optional<std::string_view> VarintReader::Bytes(uint64_t count) {
  if (count > bytes_.size()) return std::nullopt;
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

std::optional<ProtoField> ProtoReader::Next() {
  if (reader_.empty() || failed()) return std::nullopt;
  const auto fail = [this](const char* expected) {
    expected_ = expected;
    return std::nullopt;
  };
  const std::optional<uint64_t> key = reader_.Varint();
  if (!key || *key >> 3U == 0) return fail("a field");
  ProtoField field;
  field.number = *key >> 3U;
  std::optional<uint64_t> value;
  switch (*key & 7U) {
    case kVarintField:
    case kBytesField:
      value = reader_.Varint();
      if (!value) return fail("a varint");
      break;
    case kFixed64Field:
      value = reader_.Fixed64();
      if (!value) return fail("eight bytes");
      break;
    case kFixed32Field:
      value = reader_.Fixed32();
      if (!value) return fail("four bytes");
      break;
    default:
      return fail("a wire type of 0, 1, 2 or 5");
  }
  field.delimited = (*key & 7U) == kBytesField;
  if (!field.delimited) {
    field.value = *value;
    return field;
  }
  const auto bytes = reader_.Bytes(*value);
  if (!bytes) return fail("a field inside its message");
  field.bytes = *bytes;
  return field;
}

std::optional<std::vector<ProtoField>> ProtoFields(std::string_view message) {
  std::vector<ProtoField> fields;
  ProtoReader reader(message);
  while (const std::optional<ProtoField> field = reader.Next()) fields.push_back(*field);
  return reader.failed() ? std::nullopt : std::optional(std::move(fields));
}

}  // namespace kinglet
