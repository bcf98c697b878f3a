#include "tests/fuzz/random_tables.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace kinglet::fuzz {
namespace {

constexpr std::string_view kAtoms[] = {
    "a",   "b",   "c",  "<", "/",  "w", ">", "</w>",         "</",       "w>",
    "</w", "/w>", "@@", "@", "##", "#", " ", "\xE2\x96\x81", "\xC3\xA9", "[UNK]"};

std::set<std::string> RandomSymbols(ByteReader& bytes, uint32_t most) {
  std::set<std::string> symbols;
  for (uint32_t i = bytes.Between(0, most); i > 0; --i) symbols.insert(RandomSymbol(bytes));
  return symbols;
}

MergeTables RandomMerges(ByteReader& bytes) {
  MergeTables tables;
  tables.end_apart = bytes.Bit();
  std::set<std::pair<std::string, std::string>> seen;
  for (uint32_t i = bytes.Between(1, 12); i > 0; --i) {
    // Often a merge of what an earlier one made, and a split of the mark of the word's end.
    std::string left = RandomSymbol(bytes), right = RandomSymbol(bytes);
    if (!tables.merges.empty() && bytes.Bit()) {
      const auto& [a, b] = tables.merges[bytes.Byte() % tables.merges.size()];
      const std::string joined = a + b;
      const size_t at =
          bytes.Between(1, static_cast<uint32_t>(std::min<size_t>(joined.size(), 60)));
      left = joined.substr(0, at);
      if (at < joined.size()) right = joined.substr(at);
    }
    if (seen.emplace(left, right).second) tables.merges.emplace_back(left, right);
  }
  const std::set<std::string> known = RandomSymbols(bytes, 4);
  tables.known.assign(known.begin(), known.end());
  return tables;
}

NormaliserTables RandomRules(ByteReader& bytes) {
  NormaliserTables tables{bytes.Bit(), bytes.Bit(), bytes.Bit(), {}};
  for (const std::string& from : RandomSymbols(bytes, 4)) {
    std::string to;
    for (uint32_t i = bytes.Between(0, 3); i > 0; --i) to += RandomSymbol(bytes);
    if (bytes.Byte() % 8 == 0) to = std::string(kMaxRuleBytes, ' ');
    tables.rules.push_back({from, to});
  }
  return tables;
}

SentencePieceTables RandomPieces(ByteReader& bytes) {
  using Tables = SentencePieceTables;
  Tables tables;
  tables.algorithm = static_cast<Tables::Algorithm>(bytes.Between(0, 3));
  tables.space_suffix = bytes.Bit();
  tables.normaliser = RandomRules(bytes);
  if (bytes.Bit()) tables.denormaliser = RandomRules(bytes);
  tables.unknown_surface = RandomSymbol(bytes);
  tables.pieces.push_back({"<unk>", 0, Tables::Type::kUnknown});
  for (const std::string& text : RandomSymbols(bytes, 16)) {
    constexpr Tables::Type kTypes[] = {Tables::Type::kNormal, Tables::Type::kNormal,
                                       Tables::Type::kUnused, Tables::Type::kUserDefined,
                                       Tables::Type::kControl};
    const float score = static_cast<float>(bytes.Between(0, 5)) - 4;
    tables.pieces.push_back({text, score, kTypes[bytes.Byte() % std::size(kTypes)]});
  }
  tables.byte_fallback = bytes.Byte() % 4 == 0;
  for (int value = 0; tables.byte_fallback && value < 256; ++value) {
    static constexpr char kDigits[] = "0123456789ABCDEF";
    tables.pieces.push_back({std::string("<0x") + kDigits[value / 16] + kDigits[value % 16] + ">",
                             0, Tables::Type::kByte});
  }
  return tables;
}

WordPieceTables RandomWordPieces(ByteReader& bytes) {
  WordPieceTables tables;
  tables.plain_letters = bytes.Bit();
  std::set<std::string> pieces = RandomSymbols(bytes, 12);
  pieces.insert("[UNK]");
  if (bytes.Bit()) pieces.insert({"[CLS]", "[SEP]"});
  tables.pieces.assign(pieces.begin(), pieces.end());
  return tables;
}

}  // namespace

std::string RandomSymbol(ByteReader& bytes) {
  std::string symbol;
  for (uint32_t i = bytes.Between(1, 4); i > 0; --i) {
    symbol += kAtoms[bytes.Byte() % std::size(kAtoms)];
  }
  return symbol;
}

TextTables MakeRandomTables(ByteReader& bytes) {
  TextTables tables;
  tables.lower_case = bytes.Byte() % 8 == 0;
  switch (bytes.Between(0, 3)) {
    case 0:
    case 1:
      tables.method = RandomMerges(bytes);
      break;
    case 2:
      tables.method = RandomPieces(bytes);
      break;
    default:
      tables.method = RandomWordPieces(bytes);
  }
  return tables;
}

std::string MakeRandomMap(ByteReader& bytes) {
  std::vector<uint32_t> units(256U << bytes.Between(0, 3));
  const auto size = static_cast<uint32_t>(units.size());
  units[0] = bytes.Byte() % size << 10;
  // A child of some place, with links to other places.
  for (uint32_t place = units[0] >> 10; !bytes.ended(); place = bytes.Byte() * 4U) {
    const uint32_t label = bytes.Byte() % 8, at = (place ^ label) % size;
    const uint32_t to = bytes.Byte() * 4U % size;
    units[at] = label == 0 ? 0x80000000U | bytes.Byte()
                           : (at ^ to) << 10 | (bytes.Bit() ? 0x100U : 0U) | label;
  }
  const auto array = static_cast<uint32_t>(4 * units.size());
  std::string map(4 + array, '\0');
  std::memcpy(map.data(), &array, 4);
  std::memcpy(map.data() + 4, units.data(), array);
  return map + std::string(200, 'x') + std::string("\0ab\0\0", 5);
}

}  // namespace kinglet::fuzz
