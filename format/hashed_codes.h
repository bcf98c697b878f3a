// Codes that are computed instead of stored: which shared sub-vector stands at a position of a
// word's row, by hashing (HashedNets, Chen et al. 2015; Slim Embedding, Li et al. 2018, footnote on
// xxHash, which leaves the key's layout and the seed open: both are fixed here).
#ifndef KINGLET_FORMAT_HASHED_CODES_H_
#define KINGLET_FORMAT_HASHED_CODES_H_

#include <cstdint>

namespace kinglet {

// XXH64 with `seed` of the 8 bytes {u32 word, u32 position}, both little-endian, modulo pool_size:
// an index within the position's pool. The remainder prefers lower indices by at most
// pool_size / 2^64. The same on every machine; files depend on it. REQUIRES: pool_size >= 1.
uint32_t HashedCode(uint64_t seed, uint32_t word, uint32_t position, uint32_t pool_size);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_HASHED_CODES_H_
