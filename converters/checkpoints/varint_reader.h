// Reads the encodings that LevelDB's tables and protocol buffers share, front to back: varints
// (seven bits in each byte, the lowest first), fixed little-endian numbers, and runs of bytes.
#ifndef KINGLET_CONVERTERS_CHECKPOINTS_VARINT_READER_H_
#define KINGLET_CONVERTERS_CHECKPOINTS_VARINT_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace kinglet {

// A view: the bytes must outlive the reader. Each read returns nullopt if the bytes end too early
// or a varint has more than 64 bits; later reads are meaningless.
class VarintReader {
 public:
  explicit VarintReader(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  size_t left() const { return bytes_.size(); }

  std::optional<uint64_t> Varint();
  std::optional<uint32_t> Fixed32();
  std::optional<uint64_t> Fixed64();
  std::optional<std::string_view> Bytes(uint64_t count);

 private:
  std::string_view bytes_;
};

// A field of a protocol buffer's message (protobuf.dev/programming-guides/encoding).
struct ProtoField {
  uint64_t number = 0;
  uint64_t value = 0;      // of a varint or a fixed number; else 0
  std::string_view bytes;  // of a text, bytes or an inner message; else empty
  bool delimited = false;  // whether `bytes` counts
};

// The fields of a message, one by one. A view: the bytes must outlive it.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : reader_(message) {}

  // The next field. nullopt at the end, and where the bytes are no message or use the group
  // encoding: then failed() is true, and expected() says what should be there.
  std::optional<ProtoField> Next();
  bool failed() const { return expected_ != nullptr; }
  const char* expected() const { return expected_; }
  size_t left() const { return reader_.left(); }

 private:
  VarintReader reader_;
  const char* expected_ = nullptr;
};

// All fields in their order; nullopt where ProtoReader fails.
std::optional<std::vector<ProtoField>> ProtoFields(std::string_view message);

}  // namespace kinglet

#endif  // KINGLET_CONVERTERS_CHECKPOINTS_VARINT_READER_H_
