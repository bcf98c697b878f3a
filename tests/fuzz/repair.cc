#include "tests/fuzz/repair.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/state.h"
#include "tests/format/editable_model_generated.h"
#include "tests/fuzz/state_models.h"

namespace kinglet::fuzz {
namespace {

constexpr size_t kFrameBytes = 64;

// The documented layout (docs/FORMAT.md), not the reader under test.
uint64_t Load64(std::span<const std::byte> bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

void Store64(std::span<std::byte> bytes, size_t at, uint64_t value) {
  std::memcpy(&bytes[at], &value, sizeof value);
}

// Repairs the header's digests of its segments, if FlatBuffers' own verifier accepts the header.
void RepairSegments(std::span<std::byte> file, uint64_t header_bytes) {
  const std::vector<std::byte> header(
      file.begin() + kFrameBytes,
      file.begin() + static_cast<ptrdiff_t>(kFrameBytes + header_bytes));  // aligned
  const auto* data = reinterpret_cast<const uint8_t*>(header.data());
  flatbuffers::Verifier verifier(data, header.size());
  if (!editable::VerifyModelBuffer(verifier)) return;
  const auto* segments = editable::GetModel(data)->segments();
  if (segments == nullptr) return;
  // Changed headers may have them at any address: offset, size and digest are read as bytes.
  const auto first = kFrameBytes + static_cast<size_t>(segments->Data() - data);
  for (size_t i = 0; i < segments->size(); ++i) {
    const size_t at = first + i * sizeof(editable::Segment);
    const uint64_t offset = Load64(file, at), size = Load64(file, at + 8);
    if (offset > file.size() || size > file.size() - offset) continue;
    Store64(file, at + 16, XXH3_64bits(file.data() + offset, size));
  }
}

}  // namespace

void RepairModelFile(std::span<std::byte> file) {
  if (file.size() < kFrameBytes) return;
  const unsigned char start[12] = {'K', 'G', 'L', '1', 13, 10, 26, 10, 1};
  std::memcpy(file.data(), start, sizeof start);
  std::fill(file.begin() + 12, file.begin() + 16, std::byte{0});
  Store64(file, 16, file.size());
  const uint64_t header_bytes = std::min<uint64_t>(Load64(file, 24), file.size() - kFrameBytes);
  Store64(file, 24, header_bytes);
  RepairSegments(file, header_bytes);
  const XXH128_hash_t digest = XXH3_128bits(file.data() + kFrameBytes, header_bytes);
  Store64(file, 32, digest.low64);
  Store64(file, 40, digest.high64);
  Store64(file, 48, 0);
  Store64(file, 56, XXH3_64bits(file.data(), 56));
}

void RepairState(std::span<std::byte> input) {
  // "KGLS", version; bytes of a real, last token, position, tokens of the source; the digest.
  constexpr size_t kVersionEnd = 8, kDigestAt = 32, kDigestBytes = 32, kChecksumBytes = 8;
  if (input.size() < 1 + kDigestAt + kDigestBytes + kChecksumBytes) return;
  const State empty(StateModel(static_cast<uint8_t>(input[0])));
  std::vector<std::byte> start(empty.BlobBytes());
  empty.WriteBlob(start);
  const std::span<std::byte> blob = input.subspan(1);
  std::memcpy(blob.data(), start.data(), kVersionEnd);
  std::memcpy(blob.data() + kDigestAt, start.data() + kDigestAt, kDigestBytes);
  Store64(blob, blob.size() - kChecksumBytes,
          XXH3_64bits(blob.data(), blob.size() - kChecksumBytes));
}

}  // namespace kinglet::fuzz
