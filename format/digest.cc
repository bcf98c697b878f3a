// xxHash is compiled into this file (XXH_INLINE_ALL): no library to link, no symbols that leak.
#include "format/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

namespace kinglet {

uint64_t Digest64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest128 DigestOf(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

std::string HexText(uint64_t digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i) {
    text[i] = kDigits[digest & 15];
    digest >>= 4;
  }
  return text;
}

std::string HexText(const Digest128& digest) {
  std::string text = HexText(digest.high);
  text += HexText(digest.low);
  return text;
}

struct DigestStream::State {
  XXH3_state_t xxh3;
};

DigestStream::DigestStream() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
}
DigestStream::DigestStream(DigestStream&&) noexcept = default;
DigestStream& DigestStream::operator=(DigestStream&&) noexcept = default;
DigestStream::~DigestStream() = default;

void DigestStream::Add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

Digest128 DigestStream::Finish() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.low64, hash.high64};
}

}  // namespace kinglet
