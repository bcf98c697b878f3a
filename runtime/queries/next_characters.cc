#include "runtime/queries/next_characters.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "format/utf8.h"
#include "format/vocabulary.h"

namespace kinglet {
namespace {

// In the byte order of tokens, those that continue with the same character follow each other,
// except where a byte that begins no character is also the first one of a character.
uint32_t PartOf(std::string_view character, std::vector<NextCharacter>& characters) {
  const auto is_it = [character](const NextCharacter& known) { return known.text == character; };
  auto known = characters.rbegin();
  if (known == characters.rend() || !is_it(*known)) {
    const bool is_byte = character.size() == 1 && CharacterLength(character) == 0;
    known = is_byte ? std::find_if(known, characters.rend(), is_it) : characters.rend();
  }
  if (known != characters.rend()) return static_cast<uint32_t>(characters.rend() - known - 1);
  characters.push_back({std::string(character), 0});
  return static_cast<uint32_t>(characters.size() - 1);
}

}  // namespace

PrefixParts SplitByNextCharacter(const Vocabulary& vocabulary, std::string_view prefix) {
  std::vector<NextCharacter> found;
  std::vector<uint32_t> part_of(vocabulary.size());
  vocabulary.ForEachWithPrefix(prefix, [&](uint32_t id, std::string_view token) {
    const std::string_view rest = token.substr(prefix.size());
    part_of[id] = PartOf(rest.substr(0, rest.empty() ? 0 : UnitLength(rest)), found);
  });
  std::vector<uint32_t> order(found.size()), place(found.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return found[a].text < found[b].text; });
  PrefixParts parts;
  for (const uint32_t part : order) {
    place[part] = static_cast<uint32_t>(parts.characters.size());
    parts.characters.push_back(found[part]);
  }
  for (const uint32_t id : vocabulary.WithPrefix(prefix)) part_of[id] = place[part_of[id]];
  parts.part_of = std::move(part_of);
  return parts;
}

}  // namespace kinglet
