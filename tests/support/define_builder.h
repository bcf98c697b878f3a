// Small, complete models whose embedding keeps a DeFINE unit. All weights come from a fixed integer
// generator.
#ifndef KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_

#include <cstdint>

#include "format/define_unit.h"
#include "format/writer.h"

namespace kinglet {

struct TinyDefineOptions {
  DefineUnit unit = {};  // map_width 0: the mixing HGT of DefineUnits
  uint32_t cache_rows = 4;
  bool decoder = true;  // none: an embedding alone
  int bits = 0;         // of every matrix; 0: dense float32
  uint32_t vocabulary_size = 23;
  uint64_t seed = 1;
};

// Map has two bands: 10 words as wide as the unit takes them, and the others 3 wide, projected and
// doubled. The embedding's scale is 1.5.
ModelDraft TinyDefine(const TinyDefineOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_
