// The four algorithms, on normalised text.
#include "runtime/text/sentence_pieces.h"

#include <algorithm>
#include <cfloat>
#include <utility>

#include "format/utf8.h"
#include "runtime/text/merge_queue.h"

namespace kinglet {
namespace {

using Algorithm = SentencePieceTables::Algorithm;
using Piece = SentencePieceTables::Piece;
using Type = SentencePieceTables::Type;

constexpr size_t kByteValues = 256;
constexpr uint32_t kNowhere = UINT32_MAX;
// The score of an unknown character, relative to the worst piece.
constexpr float kUnknownPenalty = 10;
// The amount by which the score of a user-defined piece is reduced.
constexpr double kUserDefinedPenalty = 0.1;

bool StandsForText(Type type) {
  return type == Type::kNormal || type == Type::kUserDefined || type == Type::kUnused;
}

// Replaces marks by spaces.
std::string WithSpaces(std::string_view marked) {
  std::string text;
  while (!marked.empty()) {
    const size_t mark = std::min(marked.find(kSpaceMark), marked.size());
    text += marked.substr(0, mark);
    marked.remove_prefix(mark);
    if (marked.empty()) break;
    text += ' ';
    marked.remove_prefix(kSpaceMark.size());
  }
  return text;
}

// The byte of a byte piece, "<0xE4>".
char ByteOf(const Piece& piece) {
  return static_cast<char>(std::stoul(piece.text.substr(3, 2), nullptr, 16));
}

}  // namespace

SentencePieces::SentencePieces(SentencePieceTables tables) : tables_(std::move(tables)) {
  const std::vector<Piece>& pieces = tables_.pieces;
  std::vector<std::pair<std::string_view, uint32_t>> matching, kept;
  std::vector<std::string_view> kept_texts;
  float lowest = FLT_MAX, highest = FLT_MIN;
  bool unused = false, inner_marks = false;
  if (tables_.byte_fallback) byte_ids_.resize(kByteValues);
  ids_.reserve(pieces.size());
  matching_.reserve(pieces.size());
  matching.reserve(pieces.size());
  for (uint32_t id = 0; id < pieces.size(); ++id) {
    const Piece& piece = pieces[id];
    ids_.emplace(piece.text, id);
    if (piece.type == Type::kUnknown) unknown_ = id;
    if (piece.type == Type::kByte && tables_.byte_fallback) {
      byte_ids_[std::stoul(piece.text.substr(3, 2), nullptr, 16)] = id;
    }
    if (piece.type == Type::kNormal) {
      lowest = std::min(lowest, piece.score);
      highest = std::max(highest, piece.score);
    }
    if (!StandsForText(piece.type)) continue;
    unused = unused || piece.type == Type::kUnused;
    inner_marks = inner_marks || piece.text.find(kSpaceMark, 1) != std::string::npos;
    matching_.emplace(piece.text, id);
    matching.emplace_back(piece.text, id);
    if (piece.type == Type::kUserDefined) {
      kept.emplace_back(piece.text, id);
      kept_texts.push_back(piece.text);
    }
  }
  best_score_ = highest;
  unknown_score_ = lowest - kUnknownPenalty;
  // With unused pieces, a merge anywhere in the text decides how a piece is split, so words are not
  // independent then.
  splits_before_marks_ = !inner_marks && !unused;
  if (tables_.algorithm == Algorithm::kUnigram) matching_trie_ = PrefixTrie(std::move(matching));
  kept_ = PrefixTrie(std::move(kept));
  if (tables_.algorithm == Algorithm::kBpe) {
    std::vector<float> scores;
    for (const Piece& piece : pieces) scores.push_back(piece.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    rank_count_ = static_cast<uint32_t>(scores.size());
    for (const Piece& piece : pieces) {
      const auto at = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>());
      ranks_.push_back(static_cast<uint32_t>(at - scores.begin()));
    }
  }
  normaliser_.emplace(tables_.normaliser, tables_.space_suffix, kept_texts);
  if (!tables_.denormaliser.rules.empty()) {
    denormaliser_.emplace(tables_.denormaliser, false, std::vector<std::string_view>());
  }
}

uint32_t SentencePieces::IdOf(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? unknown_ : found->second;
}

uint32_t SentencePieces::MatchingId(std::string_view text) const {
  const auto found = matching_.find(text);
  return found == matching_.end() ? unknown_ : found->second;
}

// The end of a symbol with which BPE and characters start: a user-defined piece, or one character.
uint32_t SentencePieces::SymbolEnd(std::string_view text, uint32_t begin, bool& frozen) const {
  const std::string_view rest = text.substr(begin);
  const size_t kept = kept_.Longest(rest).length;
  frozen = kept > 0;
  return begin + static_cast<uint32_t>(frozen ? kept : UnitLength(rest));
}

std::vector<SentencePieces::Span> SentencePieces::SplitUnigram(std::string_view text,
                                                               float& score) const {
  struct Path {
    float score = 0;
    uint32_t start = kNowhere;  // of the best piece that ends here
    uint32_t id = 0;
  };
  std::vector<Path> nodes(text.size() + 1);
  nodes[0].score = score;
  const auto offer = [&](uint32_t start, size_t length, uint32_t id, double added) {
    Path& end = nodes[start + length];
    const double candidate = added + static_cast<double>(nodes[start].score);
    if (end.start != kNowhere && candidate <= static_cast<double>(end.score)) return;
    end = {static_cast<float>(candidate), start, id};
  };
  for (uint32_t start = 0; start < text.size();) {
    const std::string_view rest = text.substr(start);
    const size_t character = UnitLength(rest);
    bool whole_character = false;
    matching_trie_.ForEachPrefix(rest, [&](size_t length, uint32_t id) {
      const Piece& piece = tables_.pieces[id];
      if (piece.type == Type::kUnused) return;
      const double added = piece.type == Type::kUserDefined
                               ? static_cast<double>(length) * best_score_ - kUserDefinedPenalty
                               : static_cast<double>(piece.score);
      offer(start, length, id, added);
      whole_character = whole_character || length == character;
    });
    if (!whole_character) offer(start, character, unknown_, unknown_score_);
    start += static_cast<uint32_t>(character);
  }
  std::vector<Span> spans;
  // A piece begins before it ends, so `end` falls.
  for (auto end = static_cast<uint32_t>(text.size()); end > 0; end = nodes[end].start) {
    spans.push_back({nodes[end].start, end, nodes[end].id});
  }
  std::reverse(spans.begin(), spans.end());
  score = nodes.back().score;
  return spans;
}

std::vector<SentencePieces::Span> SentencePieces::SplitBpe(std::string_view text) const {
  std::vector<Span> spans;
  const auto size = static_cast<uint32_t>(text.size());
  for (uint32_t begin = 0; begin < size;) {
    const size_t mark = splits_before_marks_ ? text.find(kSpaceMark, begin + 1) : text.npos;
    const uint32_t end = mark == text.npos ? size : static_cast<uint32_t>(mark);
    MergeRegion(text, begin, end, spans);
    begin = end;
  }
  return spans;
}

void SentencePieces::MergeRegion(std::string_view text, uint32_t begin, uint32_t end,
                                 std::vector<Span>& spans) const {
  struct Symbol {
    uint32_t begin, end;
    uint32_t previous, next;
    uint32_t merged;  // the piece that this symbol and the next one make
    bool frozen;
  };
  std::vector<Symbol> symbols;
  symbols.reserve(end - begin);
  for (uint32_t at = begin; at < end;) {
    bool frozen = false;
    const uint32_t stop = std::min(SymbolEnd(text.substr(0, end), at, frozen), end);
    const auto place = static_cast<uint32_t>(symbols.size());
    symbols.push_back({at, stop, place - 1, place + 1, kNowhere, frozen});
    at = stop;
  }
  symbols.back().next = kNowhere;
  // For each merge to an unused piece, which is split again: the bytes of the piece's first part.
  std::unordered_map<std::string_view, uint32_t> parts;
  MergeQueue queue(symbols.size(), rank_count_);
  const auto consider = [&](uint32_t place) {
    if (place == kNowhere) return;
    Symbol& left = symbols[place];
    left.merged = kNowhere;
    if (left.next == kNowhere || left.frozen || symbols[left.next].frozen) return;
    const Symbol& right = symbols[left.next];
    const std::string_view merged = text.substr(left.begin, right.end - left.begin);
    const auto found = matching_.find(merged);
    if (found == matching_.end()) return;
    left.merged = found->second;
    queue.Push({ranks_[found->second], place});
    if (tables_.pieces[found->second].type == Type::kUnused) {
      parts.insert_or_assign(merged, left.end - left.begin);
    }
  };
  for (uint32_t place = 0; place < symbols.size(); ++place) consider(place);
  // The loop ends, because each merge reduces the number of symbols by one and adds at most two
  // places to the queue, and between merges the queue becomes shorter.
  while (!queue.empty()) {
    const MergeQueue::Entry best = queue.Pop();
    Symbol& left = symbols[best.place];
    // Skips a stale pair, of which one symbol was merged with another neighbour since.
    if (left.merged == kNowhere || ranks_[left.merged] != best.rank) continue;
    Symbol& right = symbols[left.next];
    left.end = right.end;
    left.next = right.next;
    right.merged = kNowhere;
    if (left.next != kNowhere) symbols[left.next].previous = best.place;
    consider(left.previous);
    consider(best.place);
  }
  std::vector<Span> open;
  for (uint32_t place = 0; place != kNowhere; place = symbols[place].next) {
    open.push_back({symbols[place].begin, symbols[place].end, 0});
    // The loop ends, because parts are shorter than their piece: both symbols of a merge have
    // bytes.
    while (!open.empty()) {
      Span span = open.back();
      open.pop_back();
      const std::string_view piece = text.substr(span.begin, span.end - span.begin);
      span.id = MatchingId(piece);
      const auto split = parts.find(piece);
      if (split == parts.end()) {
        spans.push_back(span);
      } else {
        const uint32_t middle = span.begin + split->second;
        open.push_back({middle, span.end, 0});
        open.push_back({span.begin, middle, 0});
      }
    }
  }
}

std::vector<SentencePieces::Span> SentencePieces::SplitWords(std::string_view text) const {
  std::vector<Span> spans;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(kSpaceMark, begin + 1), text.size());
    spans.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end),
                     MatchingId(text.substr(begin, end - begin))});
    begin = end;
  }
  return spans;
}

std::vector<SentencePieces::Span> SentencePieces::SplitCharacters(std::string_view text) const {
  std::vector<Span> spans;
  for (uint32_t begin = 0; begin < text.size();) {
    bool frozen = false;
    const uint32_t end = SymbolEnd(text, begin, frozen);
    spans.push_back({begin, end, MatchingId(text.substr(begin, end - begin))});
    begin = end;
  }
  return spans;
}

std::vector<SentencePieces::Span> SentencePieces::SplitNormalised(std::string_view text,
                                                                  TextPart& part) const {
  switch (tables_.algorithm) {
    case Algorithm::kUnigram:
      return SplitUnigram(text, part.score);
    case Algorithm::kBpe:
      return SplitBpe(text);
    case Algorithm::kWord:
      return SplitWords(text);
    case Algorithm::kCharacter:
      return SplitCharacters(text);
  }
  return {};
}

TokenizedText SentencePieces::EncodeNormalised(NormalisedText normalised, TextPart& part) const {
  const std::vector<Span> spans = SplitNormalised(normalised.text, part);
  const std::vector<uint32_t>& origins = normalised.origins;
  TokenizedText tokenized;
  tokenized.spellings = std::move(normalised.text);
  tokenized.tokens.reserve(spans.size());
  bool after_unknown = false;
  for (const Span& span : spans) {
    const bool unknown = span.id == unknown_;
    const uint32_t begin = origins[span.begin], end = origins[span.end];
    if (unknown && tables_.byte_fallback) {
      for (uint32_t at = span.begin; at < span.end; ++at) {
        const auto byte = static_cast<unsigned char>(tokenized.spellings[at]);
        const uint32_t id = byte_ids_[byte];
        AppendToken(id, begin, at + 1 == span.end ? end : begin, tables_.pieces[id].text,
                    tokenized);
      }
    } else if (unknown && after_unknown) {
      tokenized.tokens.back().end = end;
      tokenized.tokens.back().bytes += span.end - span.begin;
    } else {
      tokenized.tokens.push_back({span.id, begin, end, span.begin, span.end - span.begin});
    }
    after_unknown = unknown;
  }
  return tokenized;
}

std::string SentencePieces::Denormalise(std::string text) const {
  if (!denormaliser_) return text;
  Result<NormalisedText> normalised = denormaliser_->Normalise(text);
  return normalised.ok() ? std::move(normalised->text) : text;
}

Spelling SentencePieces::Spell(uint32_t id) const {
  const SentencePieceTables::Piece& piece = tables_.pieces[id];
  Spelling spelling = {"", true, true};
  if (piece.type == Type::kControl || piece.type == Type::kUnknown) return spelling;
  if (piece.type == Type::kByte) {
    spelling.text = ByteOf(piece);
  } else {
    spelling.text = WithSpaces(piece.text);
  }
  return spelling;
}

std::string SentenceDecoder::Add(uint32_t id, std::optional<std::string_view> spelling) {
  const SentencePieceTables& tables = pieces_->tables();
  const SentencePieceTables::Piece& piece = tables.pieces[id];
  std::string out;
  const auto print = [&](std::string made) {
    printed_ = printed_ || !made.empty();
    if (!pieces_->denormalises()) return made;
    held_ += made;
    return std::string();
  };
  if (piece.type == Type::kByte) {
    bytes_ += ByteOf(piece);
    return print(TakeCharacters(bytes_, false));
  }
  out = print(TakeCharacters(bytes_, true));
  if (mark_seen_ || printed_) at_start_ = false;
  mark_seen_ = false;
  if (piece.type == Type::kControl) return out;
  if (piece.type == Type::kUnknown) {
    const bool named = !spelling || *spelling == piece.text;
    return out + print(named ? tables.unknown_surface : std::string(*spelling));
  }
  std::string_view rest = piece.text;
  if (at_start_ && pieces_->drops_first_space() && rest.starts_with(kSpaceMark)) {
    rest.remove_prefix(kSpaceMark.size());
    mark_seen_ = !pieces_->drops_first_spaces();
  }
  return out + print(WithSpaces(rest));
}

std::string SentenceDecoder::Finish() {
  std::string out = TakeCharacters(bytes_, true);
  if (pieces_->denormalises()) out = pieces_->Denormalise(held_ + out);
  *this = SentenceDecoder(*pieces_);
  return out;
}

}  // namespace kinglet
