// Tokenizes text as a SentencePiece model does (Kudo and Richardson 2018; unigram: Kudo 2018) and
// joins pieces again. Ties between segmentations of equal score are broken as libraries up to 0.2.1
// do: a candidate's score is summed in double precision and stored as float.
#ifndef KINGLET_RUNTIME_TEXT_SENTENCE_PIECES_H_
#define KINGLET_RUNTIME_TEXT_SENTENCE_PIECES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/text_tables.h"
#include "kinglet/status.h"
#include "runtime/text/normaliser.h"
#include "runtime/text/prefix_trie.h"
#include "runtime/text/spelling.h"
#include "runtime/text/text_part.h"
#include "runtime/text/tokenized_text.h"

namespace kinglet {

// Immutable; may be shared by threads. Does not move: look-up tables point into the pieces.
class SentencePieces {
 public:
  // REQUIRES: CheckTextTables accepts the tables.
  explicit SentencePieces(SentencePieceTables tables);
  SentencePieces(const SentencePieces&) = delete;
  SentencePieces& operator=(const SentencePieces&) = delete;

  const SentencePieceTables& tables() const { return tables_; }

  // The normalised form of a part of a text of any bytes. Errors: those of Normaliser::Normalise.
  Result<NormalisedText> Normalise(std::string_view text, uint64_t most, TextPart& part) const {
    return normaliser_->Normalise(text, most, part);
  }
  // The tokens of a normalised part. Time and memory grow with the text's length, by n log n for
  // BPE.
  TokenizedText EncodeNormalised(NormalisedText normalised, TextPart& part) const;
  Result<TokenizedText> Encode(std::string_view text) const {
    TextPart whole;
    KINGLET_ASSIGN_OR_RETURN(NormalisedText normalised, Normalise(text, kMaxTextBytes, whole));
    return EncodeNormalised(std::move(normalised), whole);
  }

  uint32_t unknown() const { return unknown_; }
  // The id of a piece of any type; the unknown piece's for any other text.
  uint32_t IdOf(std::string_view piece) const;
  // Whether a piece that may be a token is spelled like the text.
  bool IsKnown(std::string_view text) const {
    const auto found = matching_.find(text);
    return found != matching_.end() &&
           tables_.pieces[found->second].type != SentencePieceTables::Type::kUnused;
  }
  // The text that the piece adds after other pieces, with spaces in place of marks. Control pieces
  // and the unknown piece spell nothing.
  Spelling Spell(uint32_t id) const;
  // Whether the space of a text's first piece is dropped.
  bool drops_first_space() const {
    return tables_.normaliser.dummy_prefix || tables_.normaliser.trim;
  }
  // Whether the piece after a dropped space counts as the first one again.
  bool drops_first_spaces() const { return tables_.normaliser.trim; }
  // Applies the denormaliser to a text that the decoder has joined.
  std::string Denormalise(std::string text) const;
  bool denormalises() const { return denormaliser_.has_value(); }

 private:
  // A piece of normalised text.
  struct Span {
    uint32_t begin, end;
    uint32_t id;
  };
  std::vector<Span> SplitUnigram(std::string_view text, float& score) const;
  std::vector<Span> SplitBpe(std::string_view text) const;
  void MergeRegion(std::string_view text, uint32_t begin, uint32_t end,
                   std::vector<Span>& spans) const;
  std::vector<Span> SplitWords(std::string_view text) const;
  std::vector<Span> SplitCharacters(std::string_view text) const;
  std::vector<Span> SplitNormalised(std::string_view text, TextPart& part) const;
  // The id of a piece that may stand for text; the unknown piece's for any other text.
  uint32_t MatchingId(std::string_view text) const;
  uint32_t SymbolEnd(std::string_view text, uint32_t begin, bool& frozen) const;

  SentencePieceTables tables_;
  uint32_t unknown_ = 0;
  std::unordered_map<std::string_view, uint32_t> ids_;       // all pieces
  std::unordered_map<std::string_view, uint32_t> matching_;  // pieces that stand for text
  std::vector<uint32_t> byte_ids_;                           // [256]; empty without byte fallback
  PrefixTrie matching_trie_;                                 // unigram: the pieces of matching_
  PrefixTrie kept_;                                          // user-defined pieces
  std::vector<uint32_t>
      ranks_;  // by piece: the rank of its score, 0 for the highest; ties share one
  uint32_t rank_count_ = 0;
  bool splits_before_marks_ = false;  // BPE: no piece continues across the beginning of a word
  double best_score_ = 0, unknown_score_ = 0;
  std::optional<Normaliser> normaliser_, denormaliser_;
};

// Joins pieces to text, one after the other. Text that Add has returned is final and well-formed
// UTF-8; bytes of a character that is not complete yet are kept back.
class SentenceDecoder {
 public:
  // REQUIRES: `pieces` outlives the decoder.
  explicit SentenceDecoder(const SentencePieces& pieces) : pieces_(&pieces) {}

  // Adds a piece. `spelling`, if given, is the text for which an unknown piece stands. REQUIRES: id
  // is a piece's.
  std::string Add(uint32_t id, std::optional<std::string_view> spelling = std::nullopt);
  // Returns the text that was kept back; the decoder then starts again.
  std::string Finish();

 private:
  const SentencePieces* pieces_;
  std::string bytes_;     // bytes of byte pieces, not printed yet
  std::string held_;      // with a denormaliser, all text so far
  bool at_start_ = true;  // a leading space mark is dropped
  bool mark_seen_ = false;
  bool printed_ = false;
};

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_TEXT_SENTENCE_PIECES_H_
