#include "runtime/ngrams/ngram_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "format/digest.h"
#include "format/little_endian.h"
#include "runtime/ngrams/codebook.h"
#include "runtime/ngrams/ngram_layout.h"

namespace kinglet {
namespace {

// Writes fields of any width one after the other, as format/bitpack.h reads them.
class FieldWriter {
 public:
  explicit FieldWriter(std::byte* at) : at_(at) {}
  // REQUIRES: 0 <= bits <= 32, field < 2^bits.
  void Write(uint32_t field, int bits) {
    held_ |= uint64_t{field} << held_bits_;
    held_bits_ += bits;
    for (; held_bits_ >= 8; held_bits_ -= 8, held_ >>= 8) *at_++ = static_cast<std::byte>(held_);
  }
  void Finish() {
    if (held_bits_ > 0) *at_ = static_cast<std::byte>(held_);
  }

 private:
  std::byte* at_;
  uint64_t held_ = 0;
  int held_bits_ = 0;  // below 8 between calls
};

// The fields of one kind of value: codes of a codebook, or the floats themselves.
class ValueFields {
 public:
  // With `keeps_zero` code 0 stands for 0 alone.
  ValueFields(std::span<const float> values, uint32_t bits, bool keeps_zero)
      : has_codes_(bits > 0), keeps_zero_(keeps_zero) {
    if (!has_codes_) return;
    std::vector<float> given(values.begin(), values.end());
    if (keeps_zero) std::erase(given, 0.0F);
    const size_t size = (size_t{1} << bits) - (keeps_zero ? 1 : 0);
    codebook_ = ChooseCodebook(std::move(given), size);
  }

  uint32_t FieldOf(float value) const {
    if (!has_codes_) return std::bit_cast<uint32_t>(value);
    if (keeps_zero_ && value == 0) return 0;
    return static_cast<uint32_t>(NearestCode(codebook_, value)) + (keeps_zero_ ? 1 : 0);
  }
  // Codes beyond the values that were given stand for 0.
  void WriteCodebook(std::byte* at) const {
    if (keeps_zero_) at += sizeof(float);
    for (size_t i = 0; i < codebook_.size(); ++i) {
      StoreLittle(codebook_[i], at + i * sizeof(float));
    }
  }

 private:
  bool has_codes_, keeps_zero_;
  std::vector<float> codebook_;
};

void WriteLevel(const NgramEntries& entries, const NgramLevel& level, std::byte* file) {
  const bool has_codes = level.probabilities_at > 0, has_children = level.child_bits > 0;
  const auto bits = static_cast<uint32_t>(has_codes ? level.probability_bits : 0);
  const ValueFields probabilities(entries.probabilities, bits, false);
  const ValueFields backoffs(entries.backoffs, bits, true);
  if (has_codes) {
    probabilities.WriteCodebook(file + level.probabilities_at);
    if (has_children) backoffs.WriteCodebook(file + level.backoffs_at);
  }
  FieldWriter fields(file + level.records_at);
  for (size_t i = 0; i < level.count; ++i) {
    if (level.word_bits > 0) fields.Write(entries.words[i], level.word_bits);
    fields.Write(probabilities.FieldOf(entries.probabilities[i]), level.probability_bits);
    if (!has_children) continue;
    fields.Write(backoffs.FieldOf(entries.backoffs[i]), level.backoff_bits);
    fields.Write(entries.children[i], level.child_bits);
  }
  fields.Write(0, level.word_bits);
  fields.Write(0, level.probability_bits);
  fields.Write(0, level.backoff_bits);
  if (has_children) fields.Write(entries.children[level.count], level.child_bits);
  fields.Finish();
}

}  // namespace

Result<std::vector<std::byte>> EncodeNgrams(const NgramTable& table, uint32_t bits) {
  NgramHeader header;
  header.order = static_cast<uint32_t>(table.lengths.size());
  header.bits = bits;
  header.adds_unknown = table.adds_unknown;
  for (const std::string& word : table.words) header.word_bytes += word.size();
  if (header.word_bytes > UINT32_MAX) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "n-grams", "words", "less than 4 GiB",
                           std::to_string(header.word_bytes) + " bytes");
  }
  for (size_t i = 0; i < table.lengths.size(); ++i) {
    header.counts[i] = table.lengths[i].words.size();
  }
  KINGLET_ASSIGN_OR_RETURN(const NgramLayout layout, LayOutNgrams("n-grams", header));
  std::vector<std::byte> file(layout.file_size);
  const auto start = EncodeNgramHeader(layout);
  std::copy(start.begin(), start.end(), file.begin());
  uint32_t end = 0;
  for (size_t i = 0; i < table.words.size(); ++i) {
    const std::string& word = table.words[i];
    std::memcpy(file.data() + layout.words_at + end, word.data(), word.size());
    end += static_cast<uint32_t>(word.size());
    StoreLittle(end, file.data() + layout.word_ends_at + i * sizeof(uint32_t));
  }
  for (size_t i = 0; i < layout.levels.size(); ++i) {
    WriteLevel(table.lengths[i], layout.levels[i], file.data());
  }
  const Digest128 digest = DigestOf(std::span(file).subspan(kNgramDigestedFrom));
  StoreLittle(digest.low, file.data() + kNgramDigestAt);
  StoreLittle(digest.high, file.data() + kNgramDigestAt + sizeof(uint64_t));
  return file;
}

}  // namespace kinglet
