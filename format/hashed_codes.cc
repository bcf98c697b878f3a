// xxHash is compiled into this file, as into digest.cc.
#include "format/hashed_codes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#include <array>
#include <cstddef>

namespace kinglet {

uint32_t HashedCode(uint64_t seed, uint32_t word, uint32_t position, uint32_t pool_size) {
  std::array<unsigned char, 8> key;
  for (size_t i = 0; i < 4; ++i) {
    key[i] = static_cast<unsigned char>(word >> (8 * i));
    key[4 + i] = static_cast<unsigned char>(position >> (8 * i));
  }
  return static_cast<uint32_t>(XXH64(key.data(), key.size(), seed) % pool_size);
}

}  // namespace kinglet
