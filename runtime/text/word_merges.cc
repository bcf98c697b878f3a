// subword-nmt's apply_bpe.
#include "runtime/text/word_merges.h"

#include <algorithm>

#include "format/utf8.h"
#include "runtime/text/merge_queue.h"
#include "runtime/text/normaliser.h"

namespace kinglet {
namespace {

constexpr std::string_view kWordEnd = "</w>";
constexpr uint32_t kNoSymbol = UINT32_MAX, kNoMerge = UINT32_MAX;

uint64_t PairKey(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

}  // namespace

WordMerges::WordMerges(MergeTables tables) : tables_(std::move(tables)) {
  const auto id = [&](const std::string& symbol) {
    const auto found = symbols_.try_emplace(symbol, static_cast<uint32_t>(symbols_.size())).first;
    if (found->second == made_by_.size()) made_by_.push_back(kNoMerge);
    return found->second;
  };
  for (uint32_t rank = 0; rank < tables_.merges.size(); ++rank) {
    const auto& [left, right] = tables_.merges[rank];
    const uint64_t key = PairKey(id(left), id(right));
    const uint32_t made = id(left + right);
    merges_.try_emplace(key, Merge{rank, made});
    if (made_by_[made] == kNoMerge) made_by_[made] = rank;
  }
  known_.insert(tables_.known.begin(), tables_.known.end());
}

uint32_t WordMerges::SymbolId(const std::string& symbol) const {
  const auto found = symbols_.find(symbol);
  return found == symbols_.end() ? kNoSymbol : found->second;
}

std::vector<std::string> WordMerges::MergeSymbols(std::string_view word) const {
  struct Symbol {
    uint32_t begin, end;
    uint32_t id;
    uint32_t previous, next;
  };
  std::vector<Symbol> symbols;
  const auto size = static_cast<uint32_t>(word.size());
  std::string text;
  for (uint32_t at = 0; at < size;) {
    const auto stop = at + static_cast<uint32_t>(UnitLength(word.substr(at)));
    text = word.substr(at, stop - at);
    if (stop == size && !tables_.end_apart) text += kWordEnd;
    const auto place = static_cast<uint32_t>(symbols.size());
    symbols.push_back({at, stop, SymbolId(text), place - 1, place + 1});
    at = stop;
  }
  if (tables_.end_apart) {
    const auto place = static_cast<uint32_t>(symbols.size());
    symbols.push_back({size, size, SymbolId(std::string(kWordEnd)), place - 1, place + 1});
  }
  symbols.back().next = kNoSymbol;
  MergeQueue queue(symbols.size(), tables_.merges.size());
  const auto merge_at = [&](uint32_t place) -> const Merge* {
    if (place == kNoSymbol || symbols[place].next == kNoSymbol) return nullptr;
    const uint32_t left = symbols[place].id, right = symbols[symbols[place].next].id;
    if (left == kNoSymbol || right == kNoSymbol) return nullptr;
    const auto found = merges_.find(PairKey(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  };
  const auto consider = [&](uint32_t place) {
    if (const Merge* merge = merge_at(place)) queue.Push({merge->rank, place});
  };
  for (uint32_t place = 0; place < symbols.size(); ++place) consider(place);
  // All occurrences of the best pair are merged before any new pair is looked at. The loop ends,
  // because each merge reduces the number of symbols by one and adds at most two places to the
  // queue, and between merges the queue becomes shorter.
  std::vector<uint32_t> places, merged;
  while (!queue.empty()) {
    const MergeQueue::Entry best = queue.Pop();
    const uint32_t rank = best.rank;
    places.assign(1, best.place);
    while (!queue.empty() && queue.Rank() == rank) places.push_back(queue.Pop().place);
    merged.clear();
    for (const uint32_t place : places) {
      const Merge* merge = symbols[place].id == kNoSymbol ? nullptr : merge_at(place);
      if (merge == nullptr || merge->rank != rank) continue;
      Symbol& left = symbols[place];
      Symbol& right = symbols[left.next];
      left.end = right.end;
      left.id = merge->symbol;
      left.next = right.next;
      right.id = kNoSymbol;
      if (left.next != kNoSymbol) symbols[left.next].previous = place;
      merged.push_back(place);
    }
    for (const uint32_t place : merged) {
      consider(symbols[place].previous);
      consider(place);
    }
  }
  std::vector<std::string> tokens;
  for (uint32_t place = 0; place != kNoSymbol; place = symbols[place].next) {
    const Symbol& symbol = symbols[place];
    if (symbol.begin == symbol.end && place > 0) continue;  // the word's end alone
    tokens.emplace_back(word.substr(symbol.begin, symbol.end - symbol.begin));
  }
  return tokens;
}

bool WordMerges::Known(const std::string& token, bool last) const {
  return known_.contains(last ? token : token + std::string(kJoinMark));
}

std::optional<std::pair<std::string, std::string>> WordMerges::PartsOf(const std::string& token,
                                                                       bool last) const {
  const uint32_t made = SymbolId(last ? token + std::string(kWordEnd) : token);
  if (made == kNoSymbol || made_by_[made] == kNoMerge) return std::nullopt;
  auto [left, right] = tables_.merges[made_by_[made]];
  if (last) {
    // The mark of the word's end may also be a symbol of its own (version 0.1), or in both symbols.
    if (right.size() <= kWordEnd.size() || !right.ends_with(kWordEnd)) return std::nullopt;
    right.resize(right.size() - kWordEnd.size());
  }
  return std::pair(std::move(left), std::move(right));
}

void WordMerges::SplitUnknown(const std::string& token, bool last,
                              std::vector<std::string>& tokens) const {
  struct Open {
    std::string token;
    bool last;
  };
  std::vector<Open> open = {{token, last}};
  bool whole = true;
  // The loop ends, because the two parts of a token are not empty and together are the token:
  // either the longest open token becomes shorter, or fewer open tokens have its length.
  while (!open.empty()) {
    const Open part = std::move(open.back());
    open.pop_back();
    // The token itself is unknown; known parts are kept, unknown ones are split again.
    const bool stays = !whole && Known(part.token, part.last);
    whole = false;
    auto parts = stays ? std::nullopt : PartsOf(part.token, part.last);
    if (!parts) {
      tokens.push_back(part.token);
      continue;
    }
    open.push_back({std::move(parts->second), part.last});
    open.push_back({std::move(parts->first), false});
  }
}

void WordMerges::EncodeWord(std::string_view word, uint32_t offset,
                            TokenizedText& tokenized) const {
  std::vector<std::string> tokens;
  if (UnitLength(word) == word.size()) {
    tokens.emplace_back(word);
  } else {
    std::vector<std::string> merged = MergeSymbols(word);
    for (size_t i = 0; i < merged.size(); ++i) {
      const bool last = i + 1 == merged.size();
      if (known_.empty() || Known(merged[i], last)) {
        tokens.push_back(std::move(merged[i]));
      } else {
        SplitUnknown(merged[i], last, tokens);
      }
    }
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto end = offset + static_cast<uint32_t>(tokens[i].size());
    std::string spelling = std::move(tokens[i]);
    if (i + 1 < tokens.size()) spelling += kJoinMark;
    AppendToken(kNoPieceId, offset, end, spelling, tokenized);
    offset = end;
  }
}

Result<TokenizedText> WordMerges::Encode(std::string_view text) const {
  if (text.size() >= kMaxTextBytes) return RefuseLongText(text.size());
  static constexpr std::string_view kStripped = "\r\n ";
  TokenizedText tokenized;
  const size_t end = text.find_last_not_of(kStripped) + 1;
  for (size_t at = std::min(text.find_first_not_of(kStripped), end); at < end;) {
    const size_t stop = std::min(text.find(' ', at), end);
    if (stop > at) EncodeWord(text.substr(at, stop - at), static_cast<uint32_t>(at), tokenized);
    at = stop + 1;
  }
  return tokenized;
}

}  // namespace kinglet
