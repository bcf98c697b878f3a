// The frame, the fixed 64 bytes at the start of a model file, and where the parts after it begin
// (docs/FORMAT.md, "Frame"). The frame's layout never changes, so every reader can read a file's
// version.
#ifndef KINGLET_FORMAT_FRAME_H_
#define KINGLET_FORMAT_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "format/digest.h"
#include "kinglet/status.h"

namespace kinglet {

inline constexpr uint64_t kFrameBytes = 64;
// The header starts at kFrameBytes; segments start at multiples of kSegmentAlignment.
inline constexpr uint64_t kSegmentAlignment = 64;
inline constexpr uint32_t kFormatVersion = 1;
// FlatBuffers offsets are signed 32-bit integers.
inline constexpr uint64_t kMaxHeaderBytes = (uint64_t{1} << 31) - 64;

// REQUIRES: position <= 2^64 - 64.
constexpr uint64_t NextSegmentOffset(uint64_t position) {
  return (position + kSegmentAlignment - 1) / kSegmentAlignment * kSegmentAlignment;
}

struct FileFrame {
  uint64_t file_size = 0;
  uint64_t header_size = 0;
  Digest128 header_digest;
};

std::array<std::byte, kFrameBytes> EncodeFrame(const FileFrame& frame);

// Reads and checks the frame of a file of `actual_size` bytes that starts with `start`. Afterwards
// frame and header lie inside the file and file_size == actual_size. Errors: KINGLET_CORRUPT,
// KINGLET_UNSUPPORTED_VERSION; the text starts with `origin`.
Result<FileFrame> DecodeFrame(const std::string& origin, std::span<const std::byte> start,
                              uint64_t actual_size);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_FRAME_H_
