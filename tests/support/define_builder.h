// Small, complete models whose embedding keeps a DeFINE unit. All weights come from a fixed integer
// generator.
#ifndef KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_

#include <cstdint>

#include "format/define_unit.h"
#include "format/writer.h"

namespace kinglet {

struct TinyDefineOptions {
  DefineUnit unit = {};  // map_width 0: the HGT with mixing of DefineUnits
  uint32_t cache_rows = 4;
  bool decoder = true;  // false: an embedding alone
  int bits = 0;         // of every matrix; 0: dense float32
  uint32_t vocabulary_size = 23;
  uint64_t seed = 1;
  // The unit follows a character CNN that reads 6 bytes of the words from 10 on, w10 to w22; the
  // first 10 have rows of a table, and word 1 is <unk>. REQUIRES: map_width is 12 or 0.
  bool spells = false;
};

// Map has two bins: 10 words of map_width columns, and the others of 3 columns, which are projected
// and scaled by 2. The embedding's scale is 1.5.
ModelDraft TinyDefine(const TinyDefineOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_DEFINE_BUILDER_H_
