// kinglet.h in a program of C++11, which has none of what the library's own C++ needs.
#include "kinglet/kinglet.h"

static_assert(__cplusplus < 201402L, "compiled as C++11");

bool SameVersionInCxx11() { return kinglet_abi_version() == KINGLET_ABI_VERSION; }
