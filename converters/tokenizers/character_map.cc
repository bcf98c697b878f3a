// Walks Darts' double array depth first. An array is a graph whose branches share their ends: the
// arrays that SentencePiece ships have 225,000 rules, and as many prefixes, in 45,000 units.
#include "converters/tokenizers/character_map.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "format/little_endian.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

// Visits of each unit, and bytes of rules in memory for each byte of the map, which bound time and
// memory by the map's size. nmt_nfkc takes 6 visits and 71 bytes.
constexpr size_t kMostVisits = 32;
constexpr size_t kMostBytesPerByte = 128, kFreeBytes = size_t{1} << 16;
constexpr uint32_t kLeafBit = 0x80000000U, kLabelBits = 0xFFU, kHasValueBit = 0x100U;

Status RefuseMap(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, "precompiled_charsmap", where, expected,
                         found);
}

class MapReader {
 public:
  MapReader(std::span<const std::byte> units, std::string_view replacements)
      : units_(units),
        replacements_(replacements),
        most_bytes_(kMostBytesPerByte * (units.size() + replacements.size()) + kFreeBytes) {}

  Result<std::vector<NormaliserTables::Rule>> Read() {
    const uint64_t root = Offset(Unit(0));
    if (root >= size()) {
      return RefuseMap("root", "a unit below " + std::to_string(size()), std::to_string(root));
    }
    std::vector<Visit> visits = {{root, 1}};
    std::string key;
    // The loop ends: the number of visits is bounded, and each visit has fewer labels left.
    while (!visits.empty()) {
      Visit& visit = visits.back();
      if (visit.label > kLabelBits) {
        visits.pop_back();
        if (!key.empty()) key.pop_back();
        continue;
      }
      const uint32_t label = visit.label++;
      const uint64_t place = visit.place ^ label;
      if (place >= size()) continue;
      const uint32_t unit = Unit(place);
      if ((unit & (kLeafBit | kLabelBits)) != label) continue;
      key += static_cast<char>(label);
      nodes_ += 1;
      if (key.size() > kMaxRuleBytes || nodes_ > kMostVisits * size()) {
        return RefuseMap(Numbered("unit", place),
                         "prefixes of at most " + BytesText(kMaxRuleBytes) + ", " +
                             std::to_string(kMostVisits) + " for each unit in all",
                         "more");
      }
      const uint64_t next = place ^ Offset(unit);
      if ((unit & kHasValueBit) != 0) KINGLET_RETURN_IF_ERROR(AddRule(key, next));
      visits.push_back({next, 1});
    }
    return std::move(rules_);
  }

 private:
  struct Visit {
    uint64_t place;
    uint32_t label;  // the next to try; 0 ends a key
  };

  uint64_t size() const { return units_.size() / sizeof(uint32_t); }
  uint32_t Unit(uint64_t place) const {
    return LoadLittle<uint32_t>(units_.data() + place * sizeof(uint32_t));
  }
  static uint64_t Offset(uint32_t unit) { return uint64_t{unit >> 10} << ((unit & 512U) >> 6); }

  Status AddRule(const std::string& key, uint64_t place) {
    if (place >= size()) {
      return RefuseMap("value", "a unit below " + std::to_string(size()), std::to_string(place));
    }
    const uint64_t begin = Unit(place) & ~kLeafBit;
    const size_t end = replacements_.find('\0', begin);
    if (begin >= replacements_.size() || end == std::string_view::npos ||
        end - begin > kMaxRuleBytes) {
      return RefuseMap("replacement at byte " + std::to_string(begin),
                       "a text of at most " + BytesText(kMaxRuleBytes) + " with its end", "none");
    }
    bytes_ += sizeof(NormaliserTables::Rule) + key.size() + (end - begin);
    if (bytes_ > most_bytes_) {
      return RefuseMap("rules", "at most " + BytesText(most_bytes_) + " of them", "more");
    }
    rules_.push_back({key, std::string(replacements_.substr(begin, end - begin))});
    return {};
  }

  std::span<const std::byte> units_;
  std::string_view replacements_;
  std::vector<NormaliserTables::Rule> rules_;
  size_t nodes_ = 0, bytes_ = 0, most_bytes_;
};

}  // namespace

Result<std::vector<NormaliserTables::Rule>> ReadCharacterMap(std::string_view bytes) {
  if (bytes.empty()) return std::vector<NormaliserTables::Rule>();
  const auto raw = std::as_bytes(std::span(bytes));
  const size_t array = raw.size() < sizeof(uint32_t) ? 0 : LoadLittle<uint32_t>(raw.data());
  if (array == 0 || array % sizeof(uint32_t) != 0 || array > raw.size() - sizeof(uint32_t)) {
    return RefuseMap("size", "a double array inside " + BytesText(raw.size()), BytesText(array));
  }
  return MapReader(raw.subspan(sizeof(uint32_t), array), bytes.substr(sizeof(uint32_t) + array))
      .Read();
}

}  // namespace kinglet
