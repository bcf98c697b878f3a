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

constexpr std::string_view kWordEnd = "</w>", kSpaceMark = "\xE2\x96\x81";
constexpr std::string_view kAtoms[] = {
    "a",  "b",  "c", "A",  "<", "/", "w",      ">",        "</w>",     "</",
    "w>", "@@", "@", "##", "#", " ", "|",      kSpaceMark, "\xC3\xA9", "\xC4\xB0",
    "'",  ".",  "-", "1",  "[", "]", "&apos;", "<unk>",    "[UNK]"};
constexpr size_t kLongestSymbol = 64;

std::set<std::string> Several(ByteReader& bytes, uint32_t most, SymbolMaker& symbols) {
  std::set<std::string> several;
  for (uint32_t i = bytes.Between(0, most); i > 0; --i) several.insert(symbols.Next());
  return several;
}

// Symbols, and often what they are made of.
std::set<std::string> WithParts(ByteReader& bytes, uint32_t most, SymbolMaker& symbols) {
  std::set<std::string> all;
  for (uint32_t i = bytes.Between(0, most); i > 0; --i) {
    const std::string symbol = symbols.Next();
    all.insert(symbol);
    if (!bytes.Bit()) continue;
    const auto [first, second] = symbols.Halves(symbol);
    all.insert(first);
    if (!second.empty()) all.insert(second);
  }
  return all;
}

// Symbols split at any place, with or without the mark of the word's end, inside it too.
MergeTables RandomMerges(ByteReader& bytes, SymbolMaker& symbols) {
  MergeTables tables;
  tables.end_apart = bytes.Bit();
  symbols.Add(kWordEnd);
  std::set<std::pair<std::string, std::string>> seen;
  for (uint32_t i = bytes.Between(1, 8); i > 0; --i) {
    std::string whole = symbols.Next();
    if (bytes.Bit() && !whole.ends_with(kWordEnd)) whole += kWordEnd;
    auto [left, right] = symbols.Halves(whole);
    if (right.empty()) right = symbols.Next();
    if (seen.emplace(left, right).second) tables.merges.emplace_back(left, right);
  }
  std::set<std::string> known;
  for (uint32_t i = bytes.Between(0, 3); i > 0; --i) {
    known.insert(symbols.Next() + (bytes.Bit() ? "@@" : ""));
  }
  tables.known.assign(known.begin(), known.end());
  return tables;
}

NormaliserTables RandomRules(ByteReader& bytes, SymbolMaker& symbols) {
  NormaliserTables tables{bytes.Bit(), bytes.Bit(), bytes.Bit(), {}};
  symbols.Add(" ");
  for (const std::string& from : Several(bytes, 4, symbols)) {
    std::string to;
    for (uint32_t i = bytes.Between(0, 3); i > 0; --i) to += symbols.Next();
    if (bytes.Byte() % 8 == 0) to = std::string(kMaxRuleBytes, ' ');
    tables.rules.push_back({from, to});
  }
  return tables;
}

SentencePieceTables RandomPieces(ByteReader& bytes, SymbolMaker& symbols) {
  using Tables = SentencePieceTables;
  Tables tables;
  tables.algorithm = static_cast<Tables::Algorithm>(bytes.Between(0, 3));
  tables.space_suffix = bytes.Bit();
  tables.normaliser = RandomRules(bytes, symbols);
  if (bytes.Bit()) tables.denormaliser = RandomRules(bytes, symbols);
  symbols.Add(kSpaceMark);
  tables.unknown_surface = symbols.Next();
  tables.pieces.push_back({"<unk>", 0, Tables::Type::kUnknown});
  std::set<std::string> texts = WithParts(bytes, 12, symbols);
  texts.erase("<unk>");
  for (const std::string& text : texts) {
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

WordPieceTables RandomWordPieces(ByteReader& bytes, SymbolMaker& symbols) {
  WordPieceTables tables;
  tables.plain_letters = bytes.Bit();
  symbols.Add("##");
  std::set<std::string> pieces = {"[UNK]"};
  for (const std::string& piece : WithParts(bytes, 8, symbols)) {
    pieces.insert(bytes.Bit() ? "##" + piece : piece);
  }
  if (bytes.Bit()) pieces.insert({"[CLS]", "[SEP]"});
  tables.pieces.assign(pieces.begin(), pieces.end());
  return tables;
}

}  // namespace

SymbolMaker::SymbolMaker(ByteReader& bytes) : bytes_(bytes) {
  for (uint32_t i = bytes.Between(1, 3); i > 0; --i) {
    letters_.push_back(kAtoms[bytes.Byte() % std::size(kAtoms)]);
  }
}

const std::string& SymbolMaker::Add(std::string_view symbol) {
  auto found = std::find(made_.begin(), made_.end(), symbol);
  if (found == made_.end()) found = made_.emplace(made_.end(), symbol);
  return *found;
}

std::string SymbolMaker::AnyLetters() {
  std::string symbol;
  for (uint32_t i = bytes_.Between(1, 3); i > 0; --i) {
    symbol += kAtoms[bytes_.Byte() % std::size(kAtoms)];
  }
  return symbol;
}

std::string SymbolMaker::OwnLetters() {
  std::string symbol;
  for (uint32_t i = bytes_.Between(1, 3); i > 0; --i) {
    symbol += letters_[bytes_.Byte() % letters_.size()];
  }
  return symbol;
}

std::pair<std::string, std::string> SymbolMaker::Halves(const std::string& symbol) {
  size_t at = 1 + bytes_.Byte() % symbol.size();
  while (at < symbol.size() && (static_cast<unsigned char>(symbol[at]) & 0xC0) == 0x80) ++at;
  const std::string first = Add(symbol.substr(0, at));
  return {first, at < symbol.size() ? Add(symbol.substr(at)) : std::string()};
}

std::string SymbolMaker::Next() {
  const uint8_t how = bytes_.Byte() % 8;
  if (how == 0) return Add(AnyLetters());
  if (how < 3 || made_.empty()) return Add(OwnLetters());
  const std::string before = made_[bytes_.Byte() % made_.size()];
  if (how == 3) return Halves(before).first;
  if (how > 4 || before.size() > kLongestSymbol) return before;
  return Add(before + made_[bytes_.Byte() % made_.size()]);
}

TextTables MakeRandomTables(ByteReader& bytes, SymbolMaker& symbols) {
  TextTables tables;
  const uint8_t flags = bytes.Byte() % 8;
  tables.lower_case = flags == 0;
  tables.reads_backward = flags == 1;
  switch (bytes.Between(0, 5)) {
    case 0:
    case 1:
      tables.method = RandomMerges(bytes, symbols);
      break;
    case 2:
    case 3:
      tables.method = RandomPieces(bytes, symbols);
      break;
    case 4:
      tables.method = RandomWordPieces(bytes, symbols);
      break;
    default:
      tables.method = WordRule{static_cast<WordRule::Rule>(bytes.Between(0, 2))};
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
