// Looks letters up among the runs of Unicode's upper-case letters.
#include "runtime/text/lower_case.h"

#include <algorithm>
#include <iterator>

#include "format/utf8.h"
#include "runtime/text/unicode_lower.h"

namespace kinglet {

uint32_t LowerCase(uint32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + ('a' - 'A') : code;
  // Runs do not overlap: the last that begins at or before the code has it, or none has.
  const auto* run = std::upper_bound(
      std::begin(kLowerCaseRuns), std::end(kLowerCaseRuns), code,
      [](uint32_t value, const LowerCaseRun& candidate) { return value < candidate.first; });
  if (run == std::begin(kLowerCaseRuns)) return code;
  --run;
  if (code > run->last || (code - run->first) % run->step != 0) return code;
  return static_cast<uint32_t>(static_cast<int32_t>(code) + run->delta);
}

uint32_t UpperCase(uint32_t code) {
  for (const LowerCaseRun& run : kLowerCaseRuns) {
    const auto upper = static_cast<uint32_t>(static_cast<int32_t>(code) - run.delta);
    if (upper >= run.first && upper <= run.last && (upper - run.first) % run.step == 0) {
      return upper;
    }
  }
  return code;
}

NormalisedText LowerCase(std::string_view text, const Marks& marks) {
  NormalisedText out;
  out.text.reserve(text.size());
  out.origins.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    if (const size_t mark = marks.LengthAt(text.substr(at))) {
      for (const size_t end = at + mark; at < end; ++at) {
        out.text += text[at];
        out.origins.push_back(static_cast<uint32_t>(at));
      }
      continue;
    }
    const size_t length = CharacterLength(text.substr(at));
    if (length == 0) {
      out.text += text[at];
    } else {
      AppendCodePoint(LowerCase(CodePointOf(text.substr(at, length))), out.text);
    }
    out.origins.resize(out.text.size(), static_cast<uint32_t>(at));
    at += std::max<size_t>(length, 1);
  }
  out.origins.push_back(static_cast<uint32_t>(text.size()));
  return out;
}

}  // namespace kinglet
