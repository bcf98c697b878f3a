#include "runtime/compress/byte_model.h"

#include <algorithm>
#include <bit>

namespace kinglet::compress {
namespace {

constexpr int kLeastTableBits = 10, kMostTableBits = 18;
constexpr size_t kRefinedOfTable = 16 * 64;
constexpr uint32_t kRefinedLimit = 255, kDirectLimit = 250;
constexpr int kSetRate = 6, kLastRate = 2;
constexpr int kHashedBits = 16;

// The entry of a counter among those of its table.
size_t RefinedPlace(BitCounter counter) {
  return static_cast<size_t>(counter & 15) << 6 | counter >> 10;
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

uint64_t ByteModel::MemoryOf(size_t bytes) {
  constexpr uint64_t kRest = uint64_t{1} << 20;
  const uint64_t table = (sizeof(BitCounter) * ContextTable::kSlotSize) << TableBits(bytes);
  return kRest + kTables * table + (uint64_t{2 * sizeof(uint32_t)} << TableBits(bytes));
}

ByteModel::ByteModel(size_t bytes)
    : tables_(kTables, ContextTable(TableBits(bytes))),
      order_0_(256),
      order_1_(65536),
      last_set_(kSets + 1, Hint::kContexts * 8, 65536 / static_cast<int>(kSets)),
      hint_correction_(Hint::kContexts * 16),
      correction_1_(65536),
      correction_2_(size_t{1} << kHashedBits) {
  refined_.reserve(kTables * kRefinedOfTable);
  for (size_t i = 0; i < kTables * kRefinedOfTable; ++i) {
    const int p = static_cast<int>(i % 64) * 1024 + 512;
    refined_.emplace_back(p);
  }
  matches_.emplace_back(8, TableBits(bytes));
  matches_.emplace_back(5, TableBits(bytes));
  constexpr int kFirstWeight = 65536 / 6;
  for (const size_t contexts : {size_t{256}, size_t{256}, Hint::kContexts * 8,
                                (MatchModel::kMostLength + 1) * 8, size_t{65536 / 8}}) {
    sets_.emplace_back(kInputs, contexts, kFirstWeight);
  }
  FindSlots();
}

// The slots of the next four bits.
void ByteModel::FindSlots() {
  const uint64_t more = bit_index_ == 0 ? 0 : bits_so_far_ * 0xD6E8FEB86659FD93u;
  for (size_t i = 0; i < kTables; ++i) {
    const uint64_t hash = contexts_.hashes()[i];
    slots_[i] = tables_[i].Find(more == 0 ? hash : Scatter(hash + more));
  }
}

uint32_t ByteModel::Predict(const Hint& hint) {
  hint_ = hint;
  const unsigned nibble = InSlot(bits_so_far_, bit_index_);
  size_t known = 0;  // contexts of bytes that were seen
  for (size_t i = 0; i < kTables; ++i) {
    const BitCounter counter = slots_[i][nibble];
    seen_[i] = i * kRefinedOfTable + RefinedPlace(counter);
    const int count = counter & 15;
    if (count == 0) {
      inputs_[2 * i] = inputs_[2 * i + 1] = 0;
      continue;
    }
    if (i < 7) known = i;
    const int p = refined_[seen_[i]].p();
    inputs_[2 * i] = Stretch(p);
    inputs_[2 * i + 1] = (p - kOne / 2) >> 5;
  }
  int32_t* const rest = inputs_.data() + 2 * kTables;
  rest[0] = 256;
  rest[1] = Stretch(order_0_[bits_so_far_].p());
  rest[2] = Stretch(order_1_[contexts_.last() << 8 | bits_so_far_].p());
  rest[3] = matches_[0].Odds(bits_so_far_, bit_index_);
  rest[4] = matches_[1].Odds(bits_so_far_, bit_index_);
  rest[5] = rest[6] = rest[7] = 0;
  if (hint.p != 0) {
    const int odds = Stretch(hint.p);
    rest[5] = odds;
    const int corrected = hint_correction_.Correct(
        odds, hint.context * 16 + static_cast<size_t>(bit_index_) + (known > 3 ? 8 : 0));
    rest[6] = Stretch(corrected);
    rest[7] = (corrected - kOne / 2) >> 5;
  }
  const auto bit_index = static_cast<size_t>(bit_index_);
  const size_t chosen[kSets] = {
      bits_so_far_, contexts_.last(), hint.context * 8 + known,
      std::max(matches_[0].Bucket(), matches_[1].Bucket()) * 8 + bit_index,
      (contexts_.last_eight() >> 8 & 0xE0) << 5 | (contexts_.last() >> 3) << 3 << 2 | bit_index};
  for (size_t i = 0; i < kSets; ++i) answers_[i] = sets_[i].Mix(inputs_, chosen[i]);
  answers_[kSets] = 256;
  mixed_ = last_set_.Mix(answers_, hint.context * 8 + bit_index);
  const int p = Squash(mixed_);
  const int p_1 = correction_1_.Correct(mixed_, contexts_.last() << 8 | bits_so_far_);
  const uint64_t hash = Scatter((contexts_.last_eight() & 0xFFFFFF) << 8 | bits_so_far_);
  const int p_2 = correction_2_.Correct(mixed_, hash >> (64 - kHashedBits));
  return static_cast<uint32_t>(std::clamp((2 * p + p_1 + p_2) / 4, 16, kOne - 16));
}

void ByteModel::Update(bool bit) {
  const unsigned nibble = InSlot(bits_so_far_, bit_index_);
  for (WeightSet& set : sets_) set.Update(inputs_, bit, kSetRate);
  last_set_.Update(answers_, bit, kLastRate);
  for (size_t i = 0; i < kTables; ++i) {
    refined_[seen_[i]].Update(bit, kRefinedLimit);
    UpdateCounter(slots_[i][nibble], bit);
  }
  order_0_[bits_so_far_].Update(bit, kDirectLimit);
  order_1_[contexts_.last() << 8 | bits_so_far_].Update(bit, kDirectLimit);
  for (MatchModel& match : matches_) match.Update(bit);
  if (hint_.p != 0) hint_correction_.Update(bit, 6);
  correction_1_.Update(bit, 6);
  correction_2_.Update(bit, 6);
  bits_so_far_ = bits_so_far_ << 1 | (bit ? 1 : 0);
  ++bit_index_;
  if (bit_index_ == 4) FindSlots();
}

void ByteModel::AddByte(std::span<const std::byte> text) {
  bits_so_far_ = 1;
  bit_index_ = 0;
  contexts_.Add(text);
  for (MatchModel& match : matches_) match.AddByte(text, contexts_.last_eight());
  FindSlots();
}

}  // namespace kinglet::compress
