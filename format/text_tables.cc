// The bytes of the text tables (docs/FORMAT.md, "Text tables").
#include "format/text_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "format/byte_alphabet.h"
#include "format/little_endian.h"
#include "format/message_text.h"
#include "format/overloaded.h"
#include "format/utf8.h"

namespace kinglet {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Piece = SentencePieceTables::Piece;
using Type = SentencePieceTables::Type;

constexpr size_t kByteValues = 256;
// The fewest bytes that an entry of each list takes in the segment.
constexpr size_t kLeastRule = 4, kLeastPiece = 7, kLeastMerge = 4, kLeastString = 2, kLeastIds = 8;

Status RefuseTables(StatusCode code, const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(code, "tokenizer", where, expected, found);
}

Status CheckTableText(StatusCode code, const std::string& where, std::string_view text,
                      size_t min_bytes, size_t max_bytes) {
  if (text.size() < min_bytes || text.size() > max_bytes) {
    return RefuseTables(code, where, std::to_string(min_bytes) + " to " + BytesText(max_bytes),
                        BytesText(text.size()));
  }
  if (!IsUtf8(text)) return RefuseTables(code, where, "UTF-8", Quoted(text));
  return {};
}

Status CheckRules(StatusCode code, const std::string& name, const NormaliserTables& tables) {
  for (size_t i = 0; i < tables.rules.size(); ++i) {
    const NormaliserTables::Rule& rule = tables.rules[i];
    const std::string where = name + ", " + Numbered("rule", i);
    // A rule's left side may be a part of a character: a file stores rules as bytes.
    if (rule.from.empty() || rule.from.size() > kMaxRuleBytes) {
      return RefuseTables(code, where, "1 to " + BytesText(kMaxRuleBytes),
                          BytesText(rule.from.size()));
    }
    KINGLET_RETURN_IF_ERROR(CheckTableText(code, where, rule.to, 0, kMaxRuleBytes));
    if (i > 0 && rule.from <= tables.rules[i - 1].from) {
      return RefuseTables(code, where, "rules in ascending order, each once", Quoted(rule.from));
    }
  }
  return {};
}

// `expanded`: the bytes of all rules, which take `stored` bytes of the segment.
Status CheckRuleGrowth(StatusCode code, size_t expanded, size_t stored) {
  const size_t max_bytes = kMaxRuleGrowth * stored + kFreeRuleBytes;
  if (expanded <= max_bytes) return {};
  return RefuseTables(code, "rules",
                      "at most " + BytesText(max_bytes) + ", " + std::to_string(kMaxRuleGrowth) +
                          " for each that they take here",
                      "more");
}

// Refuses texts that are empty, too long, not UTF-8 or repeated.
Status CheckDistinct(StatusCode code, const char* what, std::span<const std::string_view> texts) {
  if (texts.size() > kMaxPieces) {
    return RefuseTables(code, what, "at most " + std::to_string(kMaxPieces),
                        std::to_string(texts.size()));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(CheckTableText(code, Numbered(what, i), texts[i], 1, kMaxPieceBytes));
  }
  std::vector<std::string_view> sorted(texts.begin(), texts.end());
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice == sorted.end()) return {};
  return RefuseTables(code, what, "each once", Quoted(*twice) + " twice");
}

// The value of "<0x41>". Returns nullopt for any other text.
std::optional<size_t> ByteOfPiece(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
  return high * kDigits.size() + low;
}

Status CheckPieces(StatusCode code, const SentencePieceTables& tables) {
  std::vector<std::string_view> texts;
  texts.reserve(tables.pieces.size());
  for (const Piece& piece : tables.pieces) texts.push_back(piece.text);
  KINGLET_RETURN_IF_ERROR(CheckDistinct(code, "piece", texts));
  size_t unknown = 0, bytes = 0;
  for (size_t i = 0; i < tables.pieces.size(); ++i) {
    const Piece& piece = tables.pieces[i];
    if (!std::isfinite(piece.score)) {
      return RefuseTables(code, Numbered("piece", i) + ", score", "a finite number",
                          NumberText(piece.score));
    }
    unknown += piece.type == Type::kUnknown ? 1 : 0;
    if (piece.type != Type::kByte) continue;
    bytes += 1;
    if (!ByteOfPiece(piece.text)) {
      return RefuseTables(code, Numbered("piece", i), "a byte, <0x00> to <0xFF>",
                          Quoted(piece.text));
    }
  }
  if (unknown != 1) {
    return RefuseTables(code, "pieces", "exactly one unknown piece", std::to_string(unknown));
  }
  if (tables.byte_fallback && bytes != kByteValues) {
    return RefuseTables(code, "pieces", "all 256 bytes, for byte fallback", std::to_string(bytes));
  }
  return {};
}

Status CheckSentencePieces(StatusCode code, const SentencePieceTables& tables) {
  KINGLET_RETURN_IF_ERROR(CheckRules(code, "normaliser", tables.normaliser));
  KINGLET_RETURN_IF_ERROR(CheckRules(code, "denormaliser", tables.denormaliser));
  KINGLET_RETURN_IF_ERROR(
      CheckTableText(code, "unknown surface", tables.unknown_surface, 0, kMaxPieceBytes));
  return CheckPieces(code, tables);
}

Status CheckMerges(StatusCode code, const MergeTables& tables) {
  if (tables.merges.size() > kMaxPieces) {
    return RefuseTables(code, "merges", "at most " + std::to_string(kMaxPieces),
                        std::to_string(tables.merges.size()));
  }
  std::vector<std::pair<std::string_view, std::string_view>> sorted;
  sorted.reserve(tables.merges.size());
  for (size_t i = 0; i < tables.merges.size(); ++i) {
    const auto& [left, right] = tables.merges[i];
    for (const std::string& symbol : {std::cref(left), std::cref(right)}) {
      KINGLET_RETURN_IF_ERROR(
          CheckTableText(code, Numbered("merge", i), symbol, 1, kMaxPieceBytes));
    }
    sorted.emplace_back(left, right);
  }
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    return RefuseTables(
        code, "merges", "each once",
        Quoted(std::string(twice->first) + " " + std::string(twice->second)) + " twice");
  }
  const std::vector<std::string_view> known(tables.known.begin(), tables.known.end());
  KINGLET_RETURN_IF_ERROR(CheckDistinct(code, "known token", known));
  if (!std::is_sorted(known.begin(), known.end())) {
    return RefuseTables(code, "known tokens", "ascending order", "another");
  }
  return {};
}

Status CheckWordPieces(StatusCode code, const WordPieceTables& tables) {
  const std::vector<std::string_view> pieces(tables.pieces.begin(), tables.pieces.end());
  KINGLET_RETURN_IF_ERROR(CheckDistinct(code, "piece", pieces));
  if (std::find(pieces.begin(), pieces.end(), "[UNK]") != pieces.end()) return {};
  return RefuseTables(code, "pieces", "[UNK] among them", "none");
}

Status CheckBytePieces(StatusCode code, const BytePieceTables& tables) {
  const std::vector<std::string_view> pieces(tables.pieces.begin(), tables.pieces.end());
  KINGLET_RETURN_IF_ERROR(CheckDistinct(code, "piece", pieces));
  const auto& marks = tables.marks;
  const auto ascend = [](const std::vector<uint32_t>& ids) {
    return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
  };
  if (!ascend(marks) || (!marks.empty() && marks.back() >= pieces.size()) ||
      !ascend(tables.spelled_marks) ||
      !std::includes(marks.begin(), marks.end(), tables.spelled_marks.begin(),
                     tables.spelled_marks.end())) {
    return RefuseTables(code, "marks", "ascending ids of pieces", "another list");
  }
  std::vector<std::string_view> of_bytes;
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    if (std::binary_search(marks.begin(), marks.end(), id)) continue;
    if (!BytesOfAlphabet(pieces[id])) {
      return RefuseTables(code, Numbered("piece", id), "characters of GPT-2's alphabet of bytes",
                          Quoted(pieces[id]));
    }
    of_bytes.push_back(pieces[id]);
  }
  std::sort(of_bytes.begin(), of_bytes.end());
  const auto has = [&of_bytes](const std::string& piece) {
    return std::binary_search(of_bytes.begin(), of_bytes.end(), piece);
  };
  for (size_t byte = 0; byte < kByteValues; ++byte) {
    std::string letter;
    AppendCodePoint(ByteAlphabet()[byte], letter);
    if (has(letter)) continue;
    return RefuseTables(code, "pieces", "one for each byte", "none for " + Numbered("byte", byte));
  }
  for (size_t i = 0; i < tables.merges.size(); ++i) {
    const auto [left, right] = tables.merges[i];
    if (std::max(left, right) < pieces.size() && has(tables.pieces[left] + tables.pieces[right])) {
      continue;
    }
    return RefuseTables(code, Numbered("merge", i), "two pieces that together are a piece",
                        "another pair");
  }
  std::vector<std::pair<uint32_t, uint32_t>> sorted = tables.merges;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return {};
  return RefuseTables(code, "merges", "each once", "one twice");
}

// Memory of a text in addition to its bytes, and of an entry of a list while lists are checked.
constexpr uint64_t kPerText = 24, kPerEntry = 32;
uint64_t BytesOfText(size_t size) { return size <= std::string().capacity() ? 0 : size + kPerText; }
uint64_t BytesOfText(const std::string& text) { return BytesOfText(text.size()); }

uint64_t BytesOfTexts(const std::vector<std::string>& texts) {
  uint64_t bytes = texts.size() * (sizeof(std::string) + kPerEntry);
  for (const std::string& text : texts) bytes += BytesOfText(text);
  return bytes;
}
uint64_t BytesOfRules(const NormaliserTables& tables) {
  uint64_t bytes = tables.rules.size() * sizeof(NormaliserTables::Rule);
  for (const auto& rule : tables.rules) bytes += BytesOfText(rule.from) + BytesOfText(rule.to);
  return bytes;
}

// Length of the common prefix of two texts, in bytes.
size_t SharedBytes(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<size_t>(end - a.begin());
}

class TableWriter {
 public:
  void Byte(size_t value) { bytes_.push_back(static_cast<std::byte>(value)); }
  void Size(size_t value) {
    std::array<std::byte, sizeof(uint32_t)> word{};
    StoreLittle(static_cast<uint32_t>(value), word.data());
    bytes_.insert(bytes_.end(), word.begin(), word.end());
  }
  void Text(std::string_view text) {
    Byte(text.size() & 0xFF);
    Byte(text.size() >> 8);
    const auto raw = std::as_bytes(std::span(text.data(), text.size()));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  // A text of at most 255 bytes, without the prefix that it shares with the text before.
  void Rest(std::string_view text, std::string_view before) {
    const size_t shared = SharedBytes(text, before);
    Byte(shared);
    Byte(text.size() - shared);
    const auto raw = std::as_bytes(std::span(text.substr(shared)));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  std::vector<std::byte> Finish() { return std::move(bytes_); }

  Status status() const { return status_; }

  void Add(const NormaliserTables& tables) {
    const size_t before_all = bytes_.size();
    size_t expanded = 0;
    Byte((tables.dummy_prefix ? 1U : 0U) | (tables.trim ? 2U : 0U) | (tables.escape ? 4U : 0U));
    Size(tables.rules.size());
    NormaliserTables::Rule before;
    for (const auto& rule : tables.rules) {
      Rest(rule.from, before.from);
      Rest(rule.to, before.to);
      before = rule;
      expanded += rule.from.size() + rule.to.size();
    }
    if (status_.ok()) {
      status_ = CheckRuleGrowth(KINGLET_INVALID_ARGUMENT, expanded, bytes_.size() - before_all);
    }
  }

  void Add(const SentencePieceTables& tables) {
    Byte(static_cast<size_t>(tables.algorithm));
    Byte((tables.byte_fallback ? 1U : 0U) | (tables.space_suffix ? 2U : 0U));
    Add(tables.normaliser);
    Add(tables.denormaliser);
    Text(tables.unknown_surface);
    Size(tables.pieces.size());
    for (const Piece& piece : tables.pieces) {
      Byte(static_cast<size_t>(piece.type));
      Size(std::bit_cast<uint32_t>(piece.score));
      Text(piece.text);
    }
  }

  void Add(const MergeTables& tables) {
    Byte(tables.end_apart ? 1 : 0);
    Size(tables.merges.size());
    for (const auto& [left, right] : tables.merges) {
      Text(left);
      Text(right);
    }
    Add(tables.known);
  }

  void Add(const WordPieceTables& tables) {
    Byte(tables.plain_letters ? 1 : 0);
    Add(tables.pieces);
  }

  void Add(const BytePieceTables& tables) {
    Byte(tables.space_before ? 1 : 0);
    Add(tables.pieces);
    Size(tables.merges.size());
    for (const auto& [left, right] : tables.merges) {
      Size(left);
      Size(right);
    }
    for (const auto* ids : {&tables.marks, &tables.spelled_marks}) {
      Size(ids->size());
      for (const uint32_t id : *ids) Size(id);
    }
  }

  void Add(const WordRule& rule) { Byte(static_cast<size_t>(rule.rule)); }

 private:
  void Add(const std::vector<std::string>& texts) {
    Size(texts.size());
    for (const std::string& text : texts) Text(text);
  }

  std::vector<std::byte> bytes_;
  Status status_;
};

// Reads what TableWriter wrote. After the first fault everything reads as zero.
class TableReader {
 public:
  // Refuses tables that would take more than `limit` bytes, before allocating memory for them.
  TableReader(std::span<const std::byte> bytes, uint64_t limit) : bytes_(bytes), left_(limit) {}

  // A byte up to `largest`.
  size_t Byte(size_t largest) {
    if (!Has(1, "a byte")) return 0;
    const auto value = static_cast<size_t>(bytes_[at_]);
    if (value > largest) {
      Refuse("a number up to " + std::to_string(largest), std::to_string(value));
      return 0;
    }
    at_ += 1;
    return value;
  }

  uint32_t Word() {
    if (!Has(sizeof(uint32_t), "a number")) return 0;
    const auto value = LoadLittle<uint32_t>(bytes_.data() + at_);
    at_ += sizeof(uint32_t);
    return value;
  }

  // The length of a list whose entries take at least `least` bytes of the segment, and `held` bytes
  // of memory.
  size_t Size(size_t least, size_t held) {
    const size_t count = Word();
    if (count > (bytes_.size() - at_) / least) {
      Refuse("a list that fits the bytes after it", Numbered("a list of length", count));
      return 0;
    }
    return Take(count * held) ? count : 0;
  }

  std::string Text() {
    const size_t low = Byte(0xFF);
    const size_t size = low | Byte(0xFF) << 8;
    if (!Has(size, "a text") || !Take(BytesOfText(size))) return {};
    const auto raw = bytes_.subspan(at_, size);
    at_ += size;
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

  std::string Rest(const std::string& before) {
    const size_t shared = Byte(0xFF);
    const size_t size = Byte(0xFF);
    if (!Has(size, "a text") || !Take(BytesOfText(shared + size))) return {};
    const auto raw = bytes_.subspan(at_, size);
    std::string text = before.substr(0, shared);
    text.append(reinterpret_cast<const char*>(raw.data()), raw.size());
    if (SharedBytes(text, before) != shared) {
      Refuse("the length of the prefix that a text shares with the text before",
             std::to_string(shared) + " bytes");
      return {};
    }
    at_ += size;
    return text;
  }

  void Read(NormaliserTables& tables) {
    const size_t flags = Byte(7);
    tables.dummy_prefix = (flags & 1U) != 0;
    tables.trim = (flags & 2U) != 0;
    tables.escape = (flags & 4U) != 0;
    const size_t first = at_;
    size_t expanded = 0;
    tables.rules.resize(Size(kLeastRule, sizeof(NormaliserTables::Rule)));
    NormaliserTables::Rule before;
    for (auto& rule : tables.rules) {
      rule.from = Rest(before.from);
      rule.to = Rest(before.to);
      before = rule;
      expanded += rule.from.size() + rule.to.size();
      if (!status_.ok()) return;
      if (Status grown = CheckRuleGrowth(KINGLET_INVALID_MODEL, expanded, at_ - first);
          !grown.ok()) {
        Fail(std::move(grown));
      }
    }
  }

  void Read(SentencePieceTables& tables) {
    tables.algorithm = static_cast<Algorithm>(Byte(static_cast<size_t>(Algorithm::kCharacter)));
    const size_t flags = Byte(3);
    tables.byte_fallback = (flags & 1U) != 0;
    tables.space_suffix = (flags & 2U) != 0;
    Read(tables.normaliser);
    Read(tables.denormaliser);
    tables.unknown_surface = Text();
    tables.pieces.resize(Size(kLeastPiece, sizeof(Piece) + kPerEntry));
    for (Piece& piece : tables.pieces) {
      piece.type = static_cast<Type>(Byte(static_cast<size_t>(Type::kByte)));
      piece.score = std::bit_cast<float>(Word());
      piece.text = Text();
    }
  }

  void Read(MergeTables& tables) {
    tables.end_apart = Byte(1) != 0;
    tables.merges.resize(Size(kLeastMerge, 2 * sizeof(std::string) + kPerEntry));
    for (auto& [left, right] : tables.merges) {
      left = Text();
      right = Text();
    }
    Read(tables.known);
  }

  void Read(WordPieceTables& tables) {
    tables.plain_letters = Byte(1) != 0;
    Read(tables.pieces);
  }

  void Read(BytePieceTables& tables) {
    tables.space_before = Byte(1) != 0;
    Read(tables.pieces);
    tables.merges.resize(Size(kLeastIds, 2 * sizeof(tables.merges[0])));
    for (auto& [left, right] : tables.merges) {
      left = Word();
      right = Word();
    }
    for (auto* ids : {&tables.marks, &tables.spelled_marks}) {
      ids->resize(Size(sizeof(uint32_t), sizeof(uint32_t)));
      for (uint32_t& id : *ids) id = Word();
    }
  }

  void Read(WordRule& rule) {
    rule.rule = static_cast<WordRule::Rule>(Byte(static_cast<size_t>(WordRule::Rule::kCharacters)));
  }

  Status Finish() {
    if (status_.ok() && at_ != bytes_.size()) Refuse("the tables' end", "more bytes");
    return status_;
  }

 private:
  void Read(std::vector<std::string>& texts) {
    texts.resize(Size(kLeastString, sizeof(std::string) + kPerEntry));
    for (std::string& text : texts) text = Text();
  }

  bool Has(size_t size, const char* what) {
    if (status_.ok() && size <= bytes_.size() - at_) return true;
    Refuse(what, "the segment's end");
    return false;
  }

  bool Take(uint64_t bytes) {
    if (bytes > left_) {
      Fail(RefuseTables(
          KINGLET_OUT_OF_MEMORY, "tables", "a size within the memory limit",
          std::to_string(bytes) + " bytes more, with " + std::to_string(left_) + " left"));
      return false;
    }
    left_ -= bytes;
    return true;
  }

  void Refuse(const std::string& expected, const std::string& found) {
    Fail(RefuseTables(KINGLET_INVALID_MODEL, Numbered("byte", at_), expected, found));
  }
  void Fail(Status status) {
    if (!status_.ok()) return;
    status_ = std::move(status);
    at_ = bytes_.size();
  }

  std::span<const std::byte> bytes_;
  size_t at_ = 0;
  uint64_t left_;  // bytes of memory
  Status status_;
};

template <class Method>
void ReadTokenizer(TableReader& reader, TextTables& tables) {
  reader.Read(tables.method.emplace<Method>());
}

}  // namespace

const char* TextTablesName(const TextTables& tables) {
  return std::visit(Overloaded{[](const SentencePieceTables& pieces) {
                                 switch (pieces.algorithm) {
                                   case Algorithm::kUnigram:
                                     return "SentencePiece unigram";
                                   case Algorithm::kBpe:
                                     return "SentencePiece BPE";
                                   case Algorithm::kWord:
                                     return "SentencePiece words";
                                   case Algorithm::kCharacter:
                                     return "SentencePiece characters";
                                 }
                                 return "unknown";
                               },
                               [](const MergeTables&) { return "byte-pair codes"; },
                               [](const WordPieceTables&) { return "WordPiece"; },
                               [](const BytePieceTables&) { return "byte-level pieces"; },
                               [](const WordRule& words) {
                                 switch (words.rule) {
                                   case WordRule::Rule::kSpaces:
                                     return "words between spaces";
                                   case WordRule::Rule::kWikiText:
                                     return "words as WikiText has them";
                                   case WordRule::Rule::kCharacters:
                                     return "characters";
                                 }
                                 return "unknown";
                               }},
                    tables.method);
}

Status CheckTextTables(StatusCode code, const TextTables& tables) {
  return std::visit(
      Overloaded{
          [&](const SentencePieceTables& pieces) { return CheckSentencePieces(code, pieces); },
          [&](const MergeTables& merges) { return CheckMerges(code, merges); },
          [&](const WordPieceTables& pieces) { return CheckWordPieces(code, pieces); },
          [&](const BytePieceTables& pieces) { return CheckBytePieces(code, pieces); },
          [](const WordRule&) { return Status(); }},
      tables.method);
}

Result<std::vector<std::byte>> PackTextTables(const TextTables& tables) {
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_ARGUMENT, tables));
  TableWriter writer;
  writer.Byte(tables.method.index());
  writer.Byte((tables.lower_case ? 1U : 0U) | (tables.reads_backward ? 2U : 0U));
  std::visit([&](const auto& method) { writer.Add(method); }, tables.method);
  KINGLET_RETURN_IF_ERROR(writer.status());
  return writer.Finish();
}

uint64_t HeldBytes(const TextTables& tables) {
  return std::visit(
      Overloaded{[](const SentencePieceTables& pieces) {
                   uint64_t bytes = BytesOfRules(pieces.normaliser) +
                                    BytesOfRules(pieces.denormaliser) +
                                    BytesOfText(pieces.unknown_surface) +
                                    pieces.pieces.size() * (sizeof(Piece) + kPerEntry);
                   for (const Piece& piece : pieces.pieces) bytes += BytesOfText(piece.text);
                   return bytes;
                 },
                 [](const MergeTables& merges) {
                   uint64_t bytes = merges.merges.size() * (2 * sizeof(std::string) + kPerEntry) +
                                    BytesOfTexts(merges.known);
                   for (const auto& [left, right] : merges.merges) {
                     bytes += BytesOfText(left) + BytesOfText(right);
                   }
                   return bytes;
                 },
                 [](const WordPieceTables& pieces) { return BytesOfTexts(pieces.pieces); },
                 [](const BytePieceTables& pieces) {
                   return BytesOfTexts(pieces.pieces) +
                          pieces.merges.size() * 2 * sizeof(pieces.merges[0]) +
                          2 * pieces.marks.size() * sizeof(uint32_t);
                 },
                 [](const WordRule&) { return uint64_t{0}; }},
      tables.method);
}

Result<TextTables> ReadTextTables(std::span<const std::byte> bytes, uint64_t limit) {
  TableReader reader(bytes, limit);
  TextTables tables;
  const size_t kind = reader.Byte(std::variant_size_v<decltype(tables.method)> - 1);
  const size_t flags = reader.Byte(3);
  tables.lower_case = (flags & 1U) != 0;
  tables.reads_backward = (flags & 2U) != 0;
  if (kind == 0) ReadTokenizer<SentencePieceTables>(reader, tables);
  if (kind == 1) ReadTokenizer<MergeTables>(reader, tables);
  if (kind == 2) ReadTokenizer<WordPieceTables>(reader, tables);
  if (kind == 3) ReadTokenizer<WordRule>(reader, tables);
  if (kind == 4) ReadTokenizer<BytePieceTables>(reader, tables);
  KINGLET_RETURN_IF_ERROR(reader.Finish());
  KINGLET_RETURN_IF_ERROR(CheckTextTables(KINGLET_INVALID_MODEL, tables));
  return tables;
}

}  // namespace kinglet
