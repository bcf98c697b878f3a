// How a model cuts text, as plain values and as the bytes of one segment of the model file
// (docs/FORMAT.md, "Text tables"). runtime/text/tokenizer.h cuts with them; converters/tokenizers
// makes them of other programs' files.
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

// Changes a text character by character before it is cut (SentencePiece's normalizer_spec).
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
  bool space_suffix = false;   // the dummy space stands behind the text
  NormaliserTables normaliser;
  NormaliserTables denormaliser;  // without rules: none
  std::string unknown_surface;    // what decoding prints for the unknown piece
  std::vector<Piece> pieces;      // index = id
  bool operator==(const SentencePieceTables&) const = default;
};

// Byte-pair codes of subword-nmt (Sennrich et al. 2016) and fastBPE.
struct MergeTables {
  bool end_apart = false;  // version 0.1: "</w>" is a symbol of its own
  std::vector<std::pair<std::string, std::string>> merges;  // best first, each once
  std::vector<std::string> known;  // ascending; empty: every token may stand
  bool operator==(const MergeTables&) const = default;
};

// BERT's vocabulary: words are cut into the longest pieces, those inside a word begin with "##".
struct WordPieceTables {
  bool plain_letters = true;        // lower case, without accents
  std::vector<std::string> pieces;  // index = id; has [UNK]
  bool operator==(const WordPieceTables&) const = default;
};

// Words as they stand in the text.
struct WordRule {
  enum class Rule : uint8_t {
    kSpaces,      // what stands between white space
    kWikiText,    // the same after punctuation was cut off as in WikiText's and Moses' texts
    kCharacters,  // every character, spaces too
  };
  Rule rule = Rule::kSpaces;
  bool operator==(const WordRule&) const = default;
};

struct TextTables {
  bool lower_case = false;  // before anything else
  std::variant<SentencePieceTables, MergeTables, WordPieceTables, WordRule> cutting;
  bool operator==(const TextTables&) const = default;
};

// "SentencePiece unigram", "byte-pair codes", "WordPiece", "words between spaces".
const char* TextTablesName(const TextTables& tables);

inline constexpr size_t kMaxPieceBytes = 1024;  // of a piece, a symbol, a known token
inline constexpr size_t kMaxRuleBytes = 255;    // of either side of a normaliser's rule
// The bytes of both sides of all rules of a normaliser, for each byte that they take in the
// segment, where a rule is stored without what it shares with the one before it; and so many more.
inline constexpr size_t kMaxRuleGrowth = 8, kFreeRuleBytes = size_t{1} << 16;
inline constexpr size_t kMaxPieces = size_t{1} << 24;

// What every model's tables must be: pieces, symbols and rules UTF-8, of 1 to the largest number of
// bytes, without repetition, in order where an order is demanded; scores finite; exactly one
// unknown piece; pieces of bytes written <0x00> to <0xFF>, all 256 with byte fallback. `code` is
// the refusal's; its text starts with "tokenizer".
Status CheckTextTables(StatusCode code, const TextTables& tables);

// The segment's bytes. Errors: those of CheckTextTables, KINGLET_INVALID_ARGUMENT.
Result<std::vector<std::byte>> PackTextTables(const TextTables& tables);

// The tables of a segment, which must be exactly as PackTextTables writes them. Errors:
// KINGLET_INVALID_MODEL; KINGLET_OUT_OF_MEMORY if HeldBytes of them were more than `limit`, before
// that much is taken. Where there is no limit, they are at most 48 times the segment and 64 KiB.
Result<TextTables> ReadTextTables(std::span<const std::byte> bytes, uint64_t limit = UINT64_MAX);

// The memory that tables take, and at most what reading and checking them takes beyond them.
uint64_t HeldBytes(const TextTables& tables);

}  // namespace kinglet

#endif  // KINGLET_FORMAT_TEXT_TABLES_H_
