// XXH3 digests, which find accidental damage, not attacks: safety against hostile files rests on
// format/validate.h.
#ifndef KINGLET_FORMAT_DIGEST_H_
#define KINGLET_FORMAT_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kinglet {

// XXH3-64 with seed 0.
uint64_t Digest64(std::span<const std::byte> bytes);

// XXH3-128 with seed 0. As bytes in a file: low half, then high half, both little-endian.
struct Digest128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Digest128&) const = default;
};
Digest128 DigestOf(std::span<const std::byte> bytes);

// 32 lower-case hexadecimal digits, most significant first: what `xxhsum -H2` prints.
std::string HexText(const Digest128& digest);
// 16 digits.
std::string HexText(uint64_t digest);

// XXH3-128 of bytes that come in pieces.
class DigestStream {
 public:
  DigestStream();
  DigestStream(DigestStream&&) noexcept;
  DigestStream& operator=(DigestStream&&) noexcept;
  ~DigestStream();
  void Add(std::span<const std::byte> bytes);
  Digest128 Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kinglet

#endif  // KINGLET_FORMAT_DIGEST_H_
