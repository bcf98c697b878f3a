// What a build with -DKINGLET_SMALL=ON leaves out (docs/INSTALL.md, "A small library"). The linker
// drops code that only such parts call.
#ifndef KINGLET_FORMAT_SMALL_BUILD_H_
#define KINGLET_FORMAT_SMALL_BUILD_H_

#include <string>
#include <type_traits>

#include "kinglet/status.h"

namespace kinglet {

#if defined(KINGLET_SMALL)
inline constexpr bool kSmallBuild = true;
#else
inline constexpr bool kSmallBuild = false;
#endif

// Whether a small build leaves out T, which is one of Others.
template <class T, class... Others>
inline constexpr bool kLeftOut = kSmallBuild && (std::is_same_v<T, Others> || ...);

// The refusal of something that a small build leaves out.
inline Status LeftOut(const std::string& what, const std::string& where,
                      const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, what, where, expected,
                         found + "; built with KINGLET_SMALL: use a library built without it");
}

}  // namespace kinglet

#endif  // KINGLET_FORMAT_SMALL_BUILD_H_
