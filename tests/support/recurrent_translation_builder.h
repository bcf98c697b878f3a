// A small, complete recurrent translation model for tests of every folder. All weights come from a
// fixed integer generator.
#ifndef KINGLET_TESTS_SUPPORT_RECURRENT_TRANSLATION_BUILDER_H_
#define KINGLET_TESTS_SUPPORT_RECURRENT_TRANSLATION_BUILDER_H_

#include <cstdint>
#include <optional>

#include "format/blocks.h"
#include "format/writer.h"

namespace kinglet {

struct TinyRecurrentTranslationOptions {
  RecurrentCell cell = RecurrentCell::kLstm;
  bool both_directions = true;
  bool bridge = false;
  bool input_feed = true;
  std::optional<AttentionScore> attention = AttentionScore::kGeneral;
  bool quantised = false;  // matrices of 9 bits, and activation quantisers
  uint32_t layers = 2;
  uint32_t units = 8;  // of the decoder; even
  uint32_t source_words = 13;
  uint32_t target_words = 17;
  uint32_t source_width = 6;
  uint32_t target_width = 5;
  uint32_t window = 7;
  uint64_t seed = 1;
};

// Start token 2, no vocabularies. REQUIRES: sizes >= 1, at least 4 target words.
ModelDraft TinyRecurrentTranslation(const TinyRecurrentTranslationOptions& options = {});

}  // namespace kinglet

#endif  // KINGLET_TESTS_SUPPORT_RECURRENT_TRANSLATION_BUILDER_H_
