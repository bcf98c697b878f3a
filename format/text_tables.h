// The tables of a model's tokenizer, as plain values and as the bytes of one segment of the model
// file (docs/FORMAT.md, "Text tables"). runtime/text/tokenizer.h tokenizes with text tables;
// converters/tokenizers makes text tables from other programs' files.
#ifndef KINGLET_FORMAT_TEXT_TABLES_H_
#define KINGLET_FORMAT_TEXT_TABLES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kinglet/status.h"

namespace kinglet {

// Changes a text character by character before tokenization (SentencePiece's normalizer_spec).
struct NormaliserTables {
  struct Rule {
    std::string from, to;
    bool operator==(const Rule&) const = default;
  };
  bool dummy_prefix = false;  // one space in front of the text
  bool trim = false;          // no space at either end, one between words
  bool escape = false;        // a space becomes U+2581
  std::vector<Rule> rules;    // by `from`, ascending as bytes; the longest that fits is applied
  bool operator==(const NormaliserTables&) const = default;
};

// A SentencePiece model (Kudo and Richardson 2018).
struct SentencePieceTables {
  enum class Algorithm : uint8_t { kUnigram, kBpe, kWord, kCharacter };
  enum class Type : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
    bool operator==(const Piece&) const = default;
  };
  Algorithm algorithm = Algorithm::kUnigram;
  bool byte_fallback = false;  // an unknown character becomes one piece for each of its bytes
  bool space_suffix = false;   // the dummy space follows the text
  NormaliserTables normaliser;
  NormaliserTables denormaliser;  // without rules: text is not denormalised
  std::string unknown_surface;    // what decoding prints for the unknown piece
  std::vector<Piece> pieces;      // index = id
  bool operator==(const SentencePieceTables&) const = default;
};

// Byte-pair codes of subword-nmt (Sennrich et al. 2016) and fastBPE.
struct MergeTables {
  bool end_apart = false;  // version 0.1: "</w>" is a symbol of its own
  std::vector<std::pair<std::string, std::string>> merges;  // best first, each once
  std::vector<std::string> known;  // ascending; empty: every token is known
  bool operator==(const MergeTables&) const = default;
};

// BERT's vocabulary: words are split into the longest pieces; pieces inside a word begin with "##".
struct WordPieceTables {
  bool plain_letters = true;        // lower case, without accents
  std::vector<std::string> pieces;  // index = id; has [UNK]
  bool operator==(const WordPieceTables&) const = default;
};

// GPT-2's byte-pair encoding (Radford et al. 2019): a text is split by a fixed rule, and the bytes
// of each part are merged to pieces. Pieces are written in the alphabet of format/byte_alphabet.h.
struct BytePieceTables {
  bool space_before = false;  // one space in front of a text that begins with another character
  std::vector<std::string> pieces;                    // index = id; has a piece for each byte
  std::vector<std::pair<uint32_t, uint32_t>> merges;  // ids, best first; both together are a piece
  std::vector<uint32_t> marks;          // ids, ascending: pieces that no text is split inside
  std::vector<uint32_t> spelled_marks;  // those of them from which text is decoded
  bool operator==(const BytePieceTables&) const = default;
};

// Words of the text itself, by a rule.
struct WordRule {
  enum class Rule : uint8_t {
    kSpaces,      // words between white space
    kWikiText,    // likewise, after punctuation was split off as in WikiText's and Moses' texts
    kCharacters,  // every character, including spaces
  };
  Rule rule = Rule::kSpaces;
  bool operator==(const WordRule&) const = default;
};

struct TextTables {
  bool lower_case = false;  // before normalisation and tokenization
  std::variant<SentencePieceTables, MergeTables, WordPieceTables, WordRule, BytePieceTables> method;
  bool reads_backward = false;  // the model reads a text's tokens from the last to the first
  bool operator==(const TextTables&) const = default;
};

// "SentencePiece unigram", "byte-pair codes", "WordPiece", "words between spaces".
const char* TextTablesName(const TextTables& tables);

inline constexpr size_t kMaxPieceBytes = 1024;  // of a piece, a symbol, a known token
inline constexpr size_t kMaxRuleBytes = 255;    // of either side of a normaliser's rule
// Both sides of all rules of a normaliser take at most kFreeRuleBytes, and kMaxRuleGrowth bytes for
// each byte that the rules take in the segment, where a rule is stored without the prefix that it
// shares with the rule before.
inline constexpr size_t kMaxRuleGrowth = 8, kFreeRuleBytes = size_t{1} << 16;
inline constexpr size_t kMaxPieces = size_t{1} << 24;

// Checks the rules for every model's tables: pieces, symbols and rules are UTF-8, of 1 to the
// largest number of bytes, without repetition, in order where an order is demanded; scores are
// finite; there is exactly one unknown piece; pieces of bytes are written <0x00> to <0xFF>, all 256
// with byte fallback. Errors: `code`; the text starts with "tokenizer".
Status CheckTextTables(StatusCode code, const TextTables& tables);

// The segment's bytes. Errors: those of CheckTextTables, KINGLET_INVALID_ARGUMENT.
Result<std::vector<std::byte>> PackTextTables(const TextTables& tables);

// The tables of a segment, which must be exactly as PackTextTables writes them. Errors:
// KINGLET_INVALID_MODEL; KINGLET_OUT_OF_MEMORY if HeldBytes of the tables were more than `limit`,
// before that much memory is taken. Without a limit, HeldBytes are at most 48 times the segment and
// 64 KiB.
Result<TextTables> ReadTextTables(std::span<const std::byte> bytes, uint64_t limit = UINT64_MAX);

// The memory that tables take, including an upper bound of what reading and checking takes in
// addition.
uint64_t HeldBytes(const TextTables& tables);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_TEXT_TABLES_H_
