// Removes accents, character by character.
#ifndef KINGLET_RUNTIME_TEXT_WITHOUT_ACCENTS_H_
#define KINGLET_RUNTIME_TEXT_WITHOUT_ACCENTS_H_

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "runtime/text/unicode_bases.h"
#include "runtime/text/unicode_ranges.h"

namespace kinglet {

// Calls visit(code) for each character that remains when accents are removed.
template <class Visit>
void ForEachBase(uint32_t code, const Visit& visit) {
  constexpr uint32_t kFirstSyllable = 0xAC00, kSyllables = 11172, kVowels = 21, kTails = 28;
  constexpr uint32_t kFirstLead = 0x1100, kFirstVowel = 0x1161, kNoTail = 0x11A7;
  if (code < 0x80) return visit(code);
  if (code >= kFirstSyllable && code < kFirstSyllable + kSyllables) {
    const uint32_t place = code - kFirstSyllable;
    visit(kFirstLead + place / (kVowels * kTails));
    visit(kFirstVowel + place / kTails % kVowels);
    if (place % kTails != 0) visit(kNoTail + place % kTails);
    return;
  }
  const auto* run = std::upper_bound(
      std::begin(kBaseRuns), std::end(kBaseRuns), code,
      [](uint32_t value, const BaseRun& candidate) { return value < candidate.first; });
  if (run != std::begin(kBaseRuns) && code <= std::prev(run)->last) {
    --run;
    const uint32_t distance = code - run->first;
    return visit((distance % 2 == 0 ? run->even : run->odd) + run->step * distance);
  }
  const auto* parts = std::lower_bound(
      std::begin(kBaseParts), std::end(kBaseParts), code,
      [](const BaseParts& candidate, uint32_t value) { return candidate.code < value; });
  if (parts != std::end(kBaseParts) && parts->code == code) {
    for (const uint32_t part : parts->parts) {
      if (part != 0) visit(part);
    }
    return;
  }
  if (!InRanges(kMarks, code)) visit(code);
}

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_WITHOUT_ACCENTS_H_
