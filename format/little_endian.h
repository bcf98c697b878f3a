// Integers and floats as little-endian bytes, at any alignment and on any host.
#ifndef KINGLET_FORMAT_LITTLE_ENDIAN_H_
#define KINGLET_FORMAT_LITTLE_ENDIAN_H_

#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace kinglet {

// The value of sizeof(T) bytes at `from`, which must all be readable.
template <class T>
T LoadLittle(const std::byte* from) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, sizeof(T));
  } else {
    std::byte reversed[sizeof(T)];
    for (size_t i = 0; i < sizeof(T); ++i) reversed[i] = from[sizeof(T) - 1 - i];
    std::memcpy(&value, reversed, sizeof(T));
  }
  return value;
}

// Writes sizeof(T) bytes at `to`.
template <class T>
void StoreLittle(T value, std::byte* to) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof(T));
  if constexpr (std::endian::native != std::endian::little) {
    for (size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(to[i], to[sizeof(T) - 1 - i]);
  }
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_LITTLE_ENDIAN_H_
