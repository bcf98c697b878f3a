#include "runtime/compress/token_guide.h"

#include <algorithm>

namespace kinglet::compress {
namespace {

constexpr float kParts = 0x1p30F;  // of all tokens; each also gets one
constexpr int kMostCredit = 512;
constexpr uint32_t kSleep = 4096;
constexpr uint32_t kEndLimit = 127;

size_t KindOfByte(uint8_t byte) { return byte == ' ' ? 0 : byte == '\n' ? 1 : 2; }

}  // namespace

TokenGuide::TokenGuide(const TokenSpellings& spellings, TokenStyle style,
                       const SpecialTokens& special)
    : spellings_(&spellings),
      special_(special),
      follower_(spellings, style),
      upto_(spellings.size() + 1),
      ends_(kEndKinds * 256) {
  if (special.begin) waiting_.push_back(*special.begin);
  stays_.fill(AdaptiveBit(kOne / 16));
  if (waiting_.empty()) BeginByte();
}

void TokenGuide::SetProbabilities(std::span<const float> probabilities) {
  waiting_.clear();
  uint32_t sum = 0;
  const std::vector<uint32_t>& ids = spellings_->ids();
  for (size_t i = 0; i < ids.size(); ++i) {
    upto_[i] = sum;
    sum += 1 + static_cast<uint32_t>(static_cast<int32_t>(probabilities[ids[i]] * kParts));
  }
  upto_[ids.size()] = sum;
  BeginByte();
}

// The row of ends_ for a token that may end here.
size_t TokenGuide::EndKind() const {
  if (follower_.depth() == 0) return 2 + KindOfByte(last_byte_);
  return follower_.ends_with_mark() ? 1 : 0;
}

void TokenGuide::BeginByte() {
  bits_so_far_ = 1;
  bit_index_ = 0;
  active_ = asleep_ == 0 && !follower_.lost() && upto_.back() > 0;
  if (!active_) return;
  range_ = follower_.longer();
  const uint64_t longer = upto_[range_.high] - upto_[range_.low];
  const uint32_t depth = follower_.depth();
  ending_ = 0;
  if (depth == 0) {
    const auto stays = static_cast<uint64_t>(stays_[KindOfByte(last_byte_)].p());
    ending_ = longer * stays / (kOne - stays);
  } else if (follower_.ends_here()) {
    ending_ = upto_[range_.low] - upto_[range_.low - 1];
  }
  const uint64_t all = longer + ending_;
  const uint64_t surprise = all >> 27 > 0 ? 0 : all >> 21 > 0 ? 1 : 2;
  const uint64_t ends = ending_ == 0 ? 0 : ending_ * 2 < all ? 1 : 2;
  const uint64_t depths = depth == 0 ? (last_byte_ == ' ' ? 0 : 1) : depth < 4 ? 1 + depth : 5;
  context_ = 1 + (depths * 3 + surprise) * 3 + ends;
}

Hint TokenGuide::Predict() {
  if (!active_) return {};
  const unsigned bit_value = 128u >> bit_index_;
  const unsigned threshold = (bits_so_far_ << (8 - bit_index_) & 255) | bit_value;
  const uint32_t depth = follower_.depth();
  middle_ = range_.empty() ? range_.low : spellings_->FirstFrom(range_, depth, threshold);
  ending_one_ = ending_ * static_cast<uint64_t>(ends_[EndKind() * 256 + bits_so_far_].p()) / kOne;
  const uint64_t one = upto_[range_.high] - upto_[middle_] + ending_one_;
  const uint64_t zero = upto_[middle_] - upto_[range_.low] + (ending_ - ending_one_);
  if (one + zero == 0) return {};
  const uint64_t p = (one << 16) / (one + zero);
  return {static_cast<int>(std::clamp<uint64_t>(p, 1, kOne - 1)), context_};
}

void TokenGuide::Update(bool bit) {
  if (active_) {
    (bit ? range_.low : range_.high) = static_cast<uint32_t>(middle_);
    ending_ = bit ? ending_one_ : ending_ - ending_one_;
  }
  bits_so_far_ = bits_so_far_ << 1 | (bit ? 1 : 0);
  if (++bit_index_ == 8) EndByte(static_cast<uint8_t>(bits_so_far_));
}

void TokenGuide::EndByte(uint8_t byte) {
  const bool outside = follower_.depth() == 0;
  if (active_ && outside) stays_[KindOfByte(last_byte_)].Update(range_.empty(), kEndLimit);
  if (active_ && range_.empty() && (outside || follower_.ends_here())) {
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned before = bits_so_far_ >> (8 - i);
      ends_[EndKind() * 256 + before].Update((bits_so_far_ >> (7 - i) & 1) != 0, kEndLimit);
    }
  }
  if (asleep_ > 1 || (asleep_ == 1 && byte != ' ' && byte != '\n')) {
    asleep_ -= asleep_ > 1 ? 1 : 0;
  } else if (asleep_ == 1) {
    asleep_ = 0;
  } else {
    done_.clear();
    follower_.Add(byte, done_);
    for (const TokenFollower::Token& token : done_) {
      const auto length = static_cast<int>(token.length);
      credit_ = std::min(credit_ + (token.rank ? length : -length), kMostCredit);
      if (token.rank) {
        waiting_.push_back(spellings_->IdOf(*token.rank));
      } else if (special_.unknown) {
        waiting_.push_back(*special_.unknown);
      }
    }
    if (credit_ < -kMostCredit) {
      credit_ = 0;
      asleep_ = kSleep;
      follower_.Reset();
      waiting_.clear();
    }
  }
  last_byte_ = byte;
  if (waiting_.empty()) BeginByte();
}

}  // namespace kinglet::compress
