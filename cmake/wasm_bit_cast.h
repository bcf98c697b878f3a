// std::bit_cast where the C++ library has none (cmake/wasm.cmake).
#ifndef KINGLET_CMAKE_WASM_BIT_CAST_H_
#define KINGLET_CMAKE_WASM_BIT_CAST_H_

#include <version>

#if !defined(__cpp_lib_bit_cast)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif

#endif  // KINGLET_CMAKE_WASM_BIT_CAST_H_
