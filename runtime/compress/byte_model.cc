#include "runtime/compress/byte_model.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace kinglet::compress {
namespace {

constexpr int kLeastTableBits = 10, kMostTableBits = 18;
constexpr size_t kRefinedOfTable = 32 * 64;
constexpr uint32_t kRefinedLimit = 255, kDirectLimit = 250;
// Rates of weights: without hints; with hints at first, falling by one every kRateBits bits to a
// least one, which depends on the hints; and of the last set.
constexpr int kRate = 24, kFirstHintedRate = 24, kLeastWholeRate = 4, kLeastPartRate = 20;
constexpr uint32_t kRateBits = 4096;
constexpr int kLastRate = 4;
// Orders 2 and 4, and words.
const std::vector<size_t> kFastContexts = {1, 3, 7};
constexpr size_t kHintInput = 5;  // among those that are not of a table
constexpr int kHashedBits = 16;
constexpr int kLeast = 2;  // see kMostRatio in archive_format.h

// The entry of a counter among those of its table.
size_t RefinedPlace(BitCounter counter) {
  return static_cast<size_t>(counter & 31) << 6 | counter >> 10;
}

std::vector<size_t> AllContexts() {
  std::vector<size_t> all(ByteContexts::kCount);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The counter of a slot that predicts the next bit.
unsigned InSlot(unsigned bits_so_far, int bit_index) {
  if (bit_index < 4) return bits_so_far;
  const unsigned first = 1u << (bit_index - 4);
  return first | (bits_so_far & (first - 1));
}

}  // namespace

int ByteModel::TableBits(size_t bytes) {
  return std::clamp(static_cast<int>(std::bit_width(bytes)) - 2, kLeastTableBits, kMostTableBits);
}

int ByteModel::CorrectionBits(size_t bytes) {
  return std::clamp(static_cast<int>(std::bit_width(bytes)), kLeastTableBits, kHashedBits);
}

uint64_t ByteModel::MemoryOf(size_t bytes) {
  constexpr uint64_t kRest = uint64_t{3} << 20;
  const uint64_t table = (sizeof(BitCounter) * ContextTable::kSlotSize) << TableBits(bytes);
  const uint64_t corrections = 2 * (uint64_t{Correction::kBytesOfContext} << CorrectionBits(bytes));
  return kRest + corrections + kMostTables * table +
         (uint64_t{2 * sizeof(uint32_t)} << TableBits(bytes));
}

ByteModel::ByteModel(const Options& options)
    : chosen_contexts_(options.fast ? kFastContexts : AllContexts()),
      tables_(chosen_contexts_.size(), ContextTable(TableBits(options.bytes))),
      order_0_(256),
      order_1_(65536),
      hint_correction_(Hint::kContexts * 16),
      correction_1_(size_t{1} << CorrectionBits(options.bytes)),
      correction_2_(size_t{1} << CorrectionBits(options.bytes)),
      correction_bits_(CorrectionBits(options.bytes)),
      takes_hints_(options.fast && options.hints_are_whole),
      least_rate_(options.hints_are_whole ? kLeastWholeRate : kLeastPartRate) {
  const size_t tables = tables_.size(), inputs = 2 * tables + kFixed;
  refined_.reserve(tables * kRefinedOfTable);
  for (size_t i = 0; i < tables * kRefinedOfTable; ++i) {
    const int p = static_cast<int>(i % 64) * 1024 + 512;
    refined_.emplace_back(p);
  }
  matches_.emplace_back(8, TableBits(options.bytes));
  matches_.emplace_back(5, TableBits(options.bytes));
  // Contexts come in pairs, without a hint and with one.
  std::vector<int32_t> rows[2];
  rows[0].assign(inputs, kOneWeight / 6);
  rows[1].assign(inputs, kOneWeight / 44);
  rows[1][2 * tables + kHintInput] = kOneWeight / 16 * (options.hints_are_whole ? 11 : 6);
  rows[1][2 * tables + kHintInput + 1] = kOneWeight / 6;
  const size_t contexts[kMostSets] = {Hint::kContexts * 8, 256, 256,
                                      (MatchModel::kMostLength + 1) * 8, 2048};
  const size_t sets = options.fast ? 1 : kMostSets;
  for (size_t i = 0; i < sets; ++i) sets_.emplace_back(rows, 2 * contexts[i]);
  const std::vector<int32_t> row(sets + 1, kOneWeight / static_cast<int>(sets));
  last_set_.emplace_back(std::span(&row, 1), Hint::kContexts * 8);
  FindSlots();
}

// The slots of the next four bits.
void ByteModel::FindSlots() {
  const uint64_t more = bit_index_ == 0 ? 0 : bits_so_far_ * 0xD6E8FEB86659FD93u;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const uint64_t hash = contexts_.hashes()[chosen_contexts_[i]];
    slots_[i] = tables_[i].Find(more == 0 ? hash : Scatter(hash + more));
  }
}

uint32_t ByteModel::Predict(const Hint& hint) {
  hint_ = hint;
  if (TakesHint()) return static_cast<uint32_t>(std::clamp(hint.p, kLeast, kOne - kLeast));
  const unsigned nibble = InSlot(bits_so_far_, bit_index_);
  size_t known = 0;  // contexts of bytes that were seen
  for (size_t i = 0; i < tables_.size(); ++i) {
    const BitCounter counter = slots_[i][nibble];
    seen_[i] = i * kRefinedOfTable + RefinedPlace(counter);
    if (SeenBits(counter) == 0) {
      inputs_[2 * i] = inputs_[2 * i + 1] = 0;
      continue;
    }
    if (i < 7) known = i;
    const int p = refined_[seen_[i]].p();
    inputs_[2 * i] = Stretch(p);
    inputs_[2 * i + 1] = (p - kOne / 2) >> 5;
  }
  int32_t* const rest = inputs_.data() + 2 * tables_.size();
  rest[0] = 256;
  rest[1] = Stretch(order_0_[bits_so_far_].p());
  rest[2] = Stretch(order_1_[contexts_.last() << 8 | bits_so_far_].p());
  rest[3] = matches_[0].Odds(bits_so_far_, bit_index_);
  rest[4] = matches_[1].Odds(bits_so_far_, bit_index_);
  std::fill(rest + kHintInput, rest + kFixed, 0);
  if (hint.p != 0) {
    const int odds = Stretch(hint.p);
    rest[kHintInput] = odds;
    const int corrected = hint_correction_.Correct(
        odds, hint.context * 16 + static_cast<size_t>(bit_index_) + (known > 3 ? 8 : 0));
    rest[kHintInput + 1] = Stretch(corrected);
    rest[kHintInput + 2] = (corrected - kOne / 2) >> 5;
  }
  const auto bit_index = static_cast<size_t>(bit_index_);
  const size_t chosen[kMostSets] = {
      hint.context * 8 + known, bits_so_far_, contexts_.last(),
      std::max(matches_[0].Bucket(), matches_[1].Bucket()) * 8 + bit_index,
      (contexts_.last_eight() >> 13 & 7) << 8 | contexts_.last() >> 3 << 3 | bit_index};
  const size_t hinted = hint.p != 0 ? 1 : 0;
  for (size_t i = 0; i < sets_.size(); ++i)
    answers_[i] = sets_[i].Mix(inputs_, 2 * chosen[i] + hinted);
  answers_[sets_.size()] = 256;
  mixed_ = last_set_.front().Mix(answers_, hint.context * 8 + bit_index);
  const int p = Squash(mixed_);
  const auto hashed = [&](uint64_t bytes) {
    return Scatter(bytes << 8 | bits_so_far_) >> (64 - correction_bits_);
  };
  const int p_1 = correction_1_.Correct(mixed_, hashed(contexts_.last()));
  const int p_2 = correction_2_.Correct(mixed_, hashed(contexts_.last_eight() & 0xFFFFFF));
  return static_cast<uint32_t>(std::clamp((2 * p + p_1 + p_2 + 2) / 4, kLeast, kOne - kLeast));
}

void ByteModel::Update(bool bit) {
  const unsigned nibble = InSlot(bits_so_far_, bit_index_);
  for (size_t i = 0; i < tables_.size(); ++i) UpdateCounter(slots_[i][nibble], bit);
  if (!TakesHint()) UpdateMix(bit);
  bits_so_far_ = bits_so_far_ << 1 | (bit ? 1 : 0);
  ++bit_index_;
  if (bit_index_ == 4) FindSlots();
}

void ByteModel::UpdateMix(bool bit) {
  int rate = kRate;
  if (hint_.p != 0) {
    const auto steps =
        static_cast<int>(std::min<uint64_t>(hinted_bits_++ / kRateBits, kFirstHintedRate));
    rate = std::max(kFirstHintedRate - steps, least_rate_);
  }
  for (WeightSet& set : sets_) set.Update(inputs_, bit, rate);
  last_set_.front().Update(answers_, bit, kLastRate);
  for (size_t i = 0; i < tables_.size(); ++i) refined_[seen_[i]].Update(bit, kRefinedLimit);
  order_0_[bits_so_far_].Update(bit, kDirectLimit);
  order_1_[contexts_.last() << 8 | bits_so_far_].Update(bit, kDirectLimit);
  for (MatchModel& match : matches_) match.Update(bit);
  if (hint_.p != 0) hint_correction_.Update(bit, 6);
  correction_1_.Update(bit, 6);
  correction_2_.Update(bit, 6);
}

void ByteModel::AddByte(std::span<const std::byte> text) {
  bits_so_far_ = 1;
  bit_index_ = 0;
  contexts_.Add(text);
  for (MatchModel& match : matches_) match.AddByte(text, contexts_.last_eight());
  FindSlots();
}

}  // namespace kinglet::compress
