// Predicts any bytes bit by bit: counters after hashed contexts, two match models and the network's
// prediction where there is one, mixed in integers, then corrected.
#ifndef KINGLET_RUNTIME_COMPRESS_BYTE_MODEL_H_
#define KINGLET_RUNTIME_COMPRESS_BYTE_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/compress/adaptive.h"
#include "runtime/compress/byte_contexts.h"
#include "runtime/compress/context_table.h"
#include "runtime/compress/match_model.h"
#include "runtime/compress/mixer.h"

namespace kinglet::compress {

// The network's prediction of the next bit.
struct Hint {
  int p = 0;           // of a one, in 2^-16ths; 0: the network predicts nothing
  size_t context = 0;  // how far the token is known; below kContexts, 0 if p is 0
  static constexpr size_t kContexts = 64;
};

class ByteModel {
 public:
  struct Options {
    size_t bytes = 0;              // of the longest text
    bool hints_are_whole = false;  // hints know all that may follow, and are trusted more
    bool fast = false;             // few contexts; whole hints are taken as they are
  };
  // Takes at most MemoryOf(bytes). Throws std::bad_alloc.
  explicit ByteModel(const Options& options);
  static uint64_t MemoryOf(size_t bytes);

  // The probability of a one in 2^-16ths: 0 < p < 2^16.
  uint32_t Predict(const Hint& hint);
  // Takes the bit that was predicted.
  void Update(bool bit);
  // Takes the byte whose bits were the last eight; `text` ends with it.
  void AddByte(std::span<const std::byte> text);

 private:
  static constexpr size_t kMostTables = ByteContexts::kCount;
  static constexpr size_t kFixed = 8;  // inputs that are not of a table
  static constexpr size_t kMostInputs = 2 * kMostTables + kFixed;
  static constexpr size_t kMostSets = 5;

  static int TableBits(size_t bytes);
  static int CorrectionBits(size_t bytes);
  void FindSlots();
  // Whether the hint alone predicts.
  bool TakesHint() const { return takes_hints_ && hint_.p != 0; }
  void UpdateMix(bool bit);

  ByteContexts contexts_;
  std::vector<size_t> chosen_contexts_;  // of each table
  std::vector<ContextTable> tables_;
  std::array<BitCounter*, kMostTables> slots_;
  std::array<size_t, kMostTables> seen_ = {};  // the entries of refined_ that predicted
  std::vector<AdaptiveBit> refined_;           // by table, then a counter without the end of p
  std::vector<AdaptiveBit> order_0_, order_1_;
  std::vector<MatchModel> matches_;
  std::vector<WeightSet> sets_;
  std::vector<WeightSet> last_set_;  // one, after these
  std::array<int32_t, kMostInputs> inputs_ = {};
  std::array<int32_t, kMostSets + 1> answers_ = {};
  Correction hint_correction_, correction_1_, correction_2_;
  int correction_bits_;
  Hint hint_;
  bool takes_hints_;  // without mixing
  int least_rate_;    // of weights with hints
  uint64_t hinted_bits_ = 0;
  int mixed_ = 0;             // odds
  unsigned bits_so_far_ = 1;  // of this byte, after a leading 1
  int bit_index_ = 0;
};

}  // namespace kinglet::compress

#endif  // KINGLET_RUNTIME_COMPRESS_BYTE_MODEL_H_
