#include "format/frame.h"

#include <algorithm>

#include "format/little_endian.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

// Like PNG's signature, it contains the bytes that a copy in text mode would change.
constexpr unsigned char kMagic[8] = {'K', 'G', 'L', '1', 0x0D, 0x0A, 0x1A, 0x0A};

constexpr size_t kVersionAt = 8;
constexpr size_t kUnusedAt = 12;  // 4 bytes
constexpr size_t kFileSizeAt = 16;
constexpr size_t kHeaderSizeAt = 24;
constexpr size_t kHeaderDigestAt = 32;
constexpr size_t kUnusedTooAt = 48;  // 8 bytes
constexpr size_t kFrameDigestAt = 56;

std::string HexBytes(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text;
  for (std::byte byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  return text;
}

}  // namespace

std::array<std::byte, kFrameBytes> EncodeFrame(const FileFrame& frame) {
  std::array<std::byte, kFrameBytes> bytes{};
  std::transform(std::begin(kMagic), std::end(kMagic), bytes.begin(),
                 [](unsigned char c) { return std::byte{c}; });
  StoreLittle(kFormatVersion, &bytes[kVersionAt]);
  StoreLittle(frame.file_size, &bytes[kFileSizeAt]);
  StoreLittle(frame.header_size, &bytes[kHeaderSizeAt]);
  StoreLittle(frame.header_digest.low, &bytes[kHeaderDigestAt]);
  StoreLittle(frame.header_digest.high, &bytes[kHeaderDigestAt + 8]);
  StoreLittle(Digest64(std::span(bytes).first(kFrameDigestAt)), &bytes[kFrameDigestAt]);
  return bytes;
}

Result<FileFrame> DecodeFrame(const std::string& origin, std::span<const std::byte> start,
                              uint64_t actual_size) {
  const auto corrupt = [&](const std::string& where, const std::string& expected,
                           const std::string& found) {
    return Status::Refusal(KINGLET_CORRUPT, origin, where, expected, found);
  };
  const auto magic = start.first(std::min(start.size(), sizeof(kMagic)));
  const auto expected_magic = std::as_bytes(std::span(kMagic));
  if (!std::equal(magic.begin(), magic.end(), expected_magic.begin())) {
    return corrupt("frame, byte 0",
                   "a model file of `kinglet convert`, " + HexBytes(expected_magic),
                   HexBytes(magic));
  }
  if (start.size() < kFrameBytes || actual_size < kFrameBytes) {
    return corrupt("frame", "at least " + BytesText(kFrameBytes),
                   BytesText(std::min<uint64_t>(start.size(), actual_size)));
  }
  const uint64_t computed = Digest64(start.first(kFrameDigestAt));
  const auto stored = LoadLittle<uint64_t>(&start[kFrameDigestAt]);
  if (computed != stored) {
    return corrupt("frame, byte 56", "digest " + HexText(computed), HexText(stored));
  }
  const auto version = LoadLittle<uint32_t>(&start[kVersionAt]);
  if (version != kFormatVersion) {
    return Status::Refusal(KINGLET_UNSUPPORTED_VERSION, origin, "frame, byte 8",
                           "format version " + std::to_string(kFormatVersion),
                           std::to_string(version));
  }
  if (LoadLittle<uint32_t>(&start[kUnusedAt]) != 0 ||
      LoadLittle<uint64_t>(&start[kUnusedTooAt]) != 0) {
    return corrupt("frame, bytes 12 to 15 and 48 to 55", "zeros", "other values");
  }
  FileFrame frame;
  frame.file_size = LoadLittle<uint64_t>(&start[kFileSizeAt]);
  frame.header_size = LoadLittle<uint64_t>(&start[kHeaderSizeAt]);
  frame.header_digest = {LoadLittle<uint64_t>(&start[kHeaderDigestAt]),
                         LoadLittle<uint64_t>(&start[kHeaderDigestAt + 8])};
  if (frame.file_size != actual_size) {
    return corrupt("file size", BytesText(frame.file_size), BytesText(actual_size));
  }
  const uint64_t largest = std::min(kMaxHeaderBytes, actual_size - kFrameBytes);
  if (frame.header_size > largest) {
    return corrupt("frame, header size", "at most " + BytesText(largest),
                   BytesText(frame.header_size));
  }
  return frame;
}

}  // namespace kinglet
