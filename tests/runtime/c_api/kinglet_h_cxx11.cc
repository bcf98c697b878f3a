// kinglet.h in a C++11 program.
#include "kinglet/kinglet.h"

static_assert(__cplusplus < 201402L, "compiled as C++11");

bool SameVersionInCxx11() { return kinglet_abi_version() == KINGLET_ABI_VERSION; }
