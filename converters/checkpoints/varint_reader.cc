#include "converters/checkpoints/varint_reader.h"

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

std::optional<std::vector<ProtoField>> ProtoFields(std::string_view message) {
  std::vector<ProtoField> fields;
  VarintReader reader(message);
  while (!reader.empty()) {
    const std::optional<uint64_t> key = reader.Varint();
    if (!key) return std::nullopt;
    ProtoField field;
    field.number = *key >> 3U;
    const uint64_t type = *key & 7U;
    std::optional<uint64_t> value;
    if (type == kVarintField || type == kBytesField) value = reader.Varint();
    if (type == kFixed64Field) value = reader.Fixed64();
    if (type == kFixed32Field) value = reader.Fixed32();
    if (!value) return std::nullopt;
    if (type == kBytesField) {
      const auto bytes = reader.Bytes(*value);
      if (!bytes) return std::nullopt;
      field.bytes = *bytes;
    } else {
      field.value = *value;
    }
    fields.push_back(field);
  }
  return fields;
}

}  // namespace kinglet
