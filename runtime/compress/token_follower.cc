#include "runtime/compress/token_follower.h"

#include <utility>

namespace kinglet::compress {
namespace {

// Longer words are unknown.
constexpr size_t kLongestToken = 256;

bool IsWhite(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

bool IsMark(unsigned byte) { return byte < 128 && (byte | 32) - 'a' >= 26 && byte - '0' >= 10; }

}  // namespace

TokenFollower::TokenFollower(const TokenSpellings& spellings, TokenStyle style)
    : spellings_(&spellings), style_(style), range_(spellings.all()) {}

void TokenFollower::Reset() {
  range_ = spellings_->all();
  begun_.clear();
  lost_ = false;
  best_length_ = 0;
}

bool TokenFollower::ends_with_mark() const {
  return !begun_.empty() && IsMark(static_cast<uint8_t>(begun_.back()));
}

// Adds a byte to the token if some token continues so.
bool TokenFollower::Extend(uint8_t byte) {
  if (lost_) return false;
  TokenSpellings::Range next = longer();
  const uint32_t depth = this->depth();
  next.low = spellings_->FirstFrom(next, depth, byte);
  next.high = spellings_->FirstFrom(next, depth, byte + 1u);
  if (next.empty()) return false;
  range_ = next;
  begun_.push_back(static_cast<char>(byte));
  return true;
}

void TokenFollower::Split(std::vector<Token>& done) {
  const std::string rest = begun_.substr(best_length_);
  done.push_back({best_rank_, best_length_});
  Reset();
  for (const char byte : rest) Add(static_cast<uint8_t>(byte), done);
}

void TokenFollower::FinishWord(std::vector<Token>& done) {
  while (!begun_.empty()) {
    if (!lost_ && ends_here()) {
      done.push_back({range_.low, depth()});
      Reset();
    } else if (best_length_ > 0) {
      Split(done);
    } else {
      done.push_back({std::nullopt, depth()});
      Reset();
    }
  }
}

void TokenFollower::AddToWords(uint8_t byte, std::vector<Token>& done) {
  if (IsWhite(byte)) {
    FinishWord(done);
    if (byte == '\n' && Extend(byte)) FinishWord(done);
    return;
  }
  const bool between = style_ == TokenStyle::kTyped && !begun_.empty() &&
                       (IsMark(byte) || (ends_with_mark() && begun_ != "'"));
  if (between && !lost_ && ends_here()) {
    best_rank_ = range_.low;
    best_length_ = depth();
  }
  if (Extend(byte)) return;
  if (between) {
    FinishWord(done);
    if (Extend(byte)) return;
  }
  lost_ = true;
  if (begun_.size() < kLongestToken) begun_.push_back(static_cast<char>(byte));
}

void TokenFollower::AddToPieces(uint8_t byte, std::vector<Token>& done) {
  if (Extend(byte)) {
    if (!ends_here()) return;
    best_rank_ = range_.low;
    best_length_ = depth();
    if (longer().empty()) Split(done);
    return;
  }
  if (best_length_ > 0) {
    Split(done);
    AddToPieces(byte, done);
  } else if (!begun_.empty()) {
    done.push_back({std::nullopt, depth()});
    Reset();
    AddToPieces(byte, done);
  } else {
    done.push_back({std::nullopt, 1});
  }
}

void TokenFollower::Add(uint8_t byte, std::vector<Token>& done) {
  if (style_ == TokenStyle::kPieces) {
    AddToPieces(byte, done);
  } else {
    AddToWords(byte, done);
  }
}

}  // namespace kinglet::compress
