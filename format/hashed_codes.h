// Codes that are computed by hashing and not stored: which shared sub-vector is at a position of a
// word's row. Papers: HashedNets (HashNet; Chen et al. 2015), Slim Embedding (Li et al. 2018,
// footnote on xxHash). The papers leave the key's layout and the seed open; both are fixed here.
#ifndef KINGLET_FORMAT_HASHED_CODES_H_
#define KINGLET_FORMAT_HASHED_CODES_H_

#include <cstdint>

namespace kinglet {

// The index within the position's pool: XXH64 with `seed` of the 8 bytes {u32 word, u32 position},
// both little-endian, modulo pool_size (whose bias to lower indices is at most pool_size / 2^64).
// Files depend on the hash, so it never changes. REQUIRES: pool_size >= 1.
uint32_t HashedCode(uint64_t seed, uint32_t word, uint32_t position, uint32_t pool_size);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_HASHED_CODES_H_
