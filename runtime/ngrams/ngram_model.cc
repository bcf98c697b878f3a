#include "runtime/ngrams/ngram_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "format/bitpack.h"
#include "format/digest.h"
#include "format/input_file.h"
#include "format/little_endian.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

Status DamagedNgrams(const std::string& origin, const std::string& where,
                     const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_CORRUPT, origin, where, expected, found);
}

Status NoNgramMemory(const std::string& origin, const std::string& found) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, origin, "memory", "enough memory",
                         "none for " + found);
}

Digest128 StoredDigest(std::span<const std::byte> bytes) {
  return {LoadLittle<uint64_t>(bytes.data() + kNgramDigestAt),
          LoadLittle<uint64_t>(bytes.data() + kNgramDigestAt + sizeof(uint64_t))};
}

}  // namespace

NgramModel::NgramModel(NgramLayout layout, PageMemory memory)
    : layout_(std::move(layout)),
      memory_(std::move(memory)),
      bytes_(std::as_const(memory_).bytes()) {}

Result<std::shared_ptr<const NgramModel>> NgramModel::Open(const std::string& path) try {
  KINGLET_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  // The header is checked first, so that a large file of another kind is not read.
  std::byte start[kNgramHeaderBytes];
  const auto header = std::span(start).first(std::min<uint64_t>(file.size(), kNgramHeaderBytes));
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, header));
  KINGLET_ASSIGN_OR_RETURN(NgramLayout layout, DecodeNgramHeader(path, header, file.size()));
  PageMemory memory(file.size());
  if (!memory.valid()) return NoNgramMemory(path, BytesText(file.size()));
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, memory.bytes()));
  // A file that changed meanwhile has another header.
  KINGLET_ASSIGN_OR_RETURN(layout, DecodeNgramHeader(path, memory.bytes(), file.size()));
  return Build(path, std::move(layout), std::move(memory));
} catch (const std::bad_alloc&) {
  return NoNgramMemory(path, "the n-grams");
}

Result<std::shared_ptr<const NgramModel>> NgramModel::FromBytes(
    std::span<const std::byte> bytes) try {
  const std::string origin = "n-grams in memory";
  KINGLET_ASSIGN_OR_RETURN(NgramLayout layout, DecodeNgramHeader(origin, bytes, bytes.size()));
  PageMemory memory(bytes.size());
  if (!memory.valid()) return NoNgramMemory(origin, BytesText(bytes.size()));
  std::memcpy(memory.bytes().data(), bytes.data(), bytes.size());
  return Build(origin, std::move(layout), std::move(memory));
} catch (const std::bad_alloc&) {
  return NoNgramMemory("n-grams in memory", "the n-grams");
}

Result<std::shared_ptr<const NgramModel>> NgramModel::Build(const std::string& origin,
                                                            NgramLayout layout, PageMemory memory) {
  const std::shared_ptr<NgramModel> model(new NgramModel(std::move(layout), std::move(memory)));
  KINGLET_RETURN_IF_ERROR(model->Check(origin));
  return std::shared_ptr<const NgramModel>(model);
}

Status NgramModel::Check(const std::string& origin) {
  const Digest128 stored = StoredDigest(bytes_);
  const Digest128 found = kinglet::DigestOf(bytes_.subspan(kNgramDigestedFrom));
  if (stored != found) {
    return DamagedNgrams(origin, "digest", HexText(stored),
                         HexText(found) + " (copy the file again, or make it again)");
  }
  digest_ = HexText(stored);
  KINGLET_RETURN_IF_ERROR(CheckWords(origin));
  for (size_t i = 0; i < layout_.levels.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(CheckLevel(origin, i));
  }
  for (const auto& [word, id] :
       {std::pair("<unk>", &unknown_), {"<s>", &begin_}, {"</s>", &end_}}) {
    const std::optional<uint32_t> found_word = Find(word);
    if (!found_word)
      return DamagedNgrams(origin, "words", std::string(word) + " among them", "none");
    *id = *found_word;
  }
  return {};
}

Status NgramModel::CheckWords(const std::string& origin) const {
  const uint64_t count = header().counts[0];
  uint32_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t end = WordEnd(i);
    if (end < begin || end > header().word_bytes) {
      return DamagedNgrams(origin, Numbered("word", i),
                           "an end from " + std::to_string(begin) + " on", std::to_string(end));
    }
    begin = end;
    // WordOf(i - 1) was checked.
    if (i > 0 && WordOf(static_cast<uint32_t>(i - 1)) >= WordOf(static_cast<uint32_t>(i))) {
      return DamagedNgrams(origin, Numbered("word", i), "words in ascending order",
                           "another order");
    }
  }
  if (begin == header().word_bytes) return {};
  return DamagedNgrams(origin, "words", BytesText(header().word_bytes), BytesText(begin));
}

Status NgramModel::CheckLevel(const std::string& origin, size_t index) const {
  const NgramLevel& level = layout_.levels[index];
  const auto at = [&](uint64_t record) {
    return std::to_string(index + 1) + "-gram " + std::to_string(record);
  };
  const bool is_longest = index + 1 == layout_.levels.size();
  const uint64_t children = is_longest ? 0 : layout_.levels[index + 1].count;
  uint32_t first = 0;
  for (uint64_t i = 0; i < level.count; ++i) {
    const float probability = Probability(level, i);
    if (!(probability <= 0) || !std::isfinite(probability)) {
      return DamagedNgrams(origin, at(i), "a finite log10 probability of at most 0",
                           NumberText(double{probability}));
    }
    if (is_longest) continue;
    if (const float backoff = Backoff(level, i); !std::isfinite(backoff)) {
      return DamagedNgrams(origin, at(i), "a finite back-off weight", NumberText(double{backoff}));
    }
    const uint32_t begin = ChildField(level, i);
    if (begin != first && (i == 0 || begin < first || begin > children)) {
      return DamagedNgrams(origin, at(i), "children from " + std::to_string(first) + " on",
                           std::to_string(begin));
    }
    first = begin;
  }
  if (!is_longest && ChildField(level, level.count) != children) {
    return DamagedNgrams(origin, at(level.count), "children up to " + std::to_string(children),
                         std::to_string(ChildField(level, level.count)));
  }
  if (is_longest) return {};
  // The children of each n-gram, whose ranges are ascending now.
  const NgramLevel& next = layout_.levels[index + 1];
  for (uint64_t i = 0; i < level.count; ++i) {
    const uint32_t end = ChildField(level, i + 1);
    for (uint32_t child = ChildField(level, i), before = 0; child < end; ++child) {
      const uint32_t word = WordField(next, child);
      const bool is_first = child == ChildField(level, i);
      if (word >= header().counts[0] || (!is_first && word <= before)) {
        return DamagedNgrams(origin, std::to_string(index + 2) + "-gram " + std::to_string(child),
                             "words in ascending order", "word " + std::to_string(word));
      }
      before = word;
    }
  }
  return {};
}

uint32_t NgramModel::WordEnd(uint64_t id) const {
  return LoadLittle<uint32_t>(bytes_.data() + layout_.word_ends_at + id * sizeof(uint32_t));
}

std::string_view NgramModel::WordOf(uint32_t id) const {
  const uint32_t begin = id == 0 ? 0 : WordEnd(id - 1);
  return {reinterpret_cast<const char*>(bytes_.data()) + layout_.words_at + begin,
          WordEnd(id) - begin};
}

std::optional<uint32_t> NgramModel::Find(std::string_view word) const {
  auto begin = uint32_t{0}, end = static_cast<uint32_t>(header().counts[0]);
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const int order = WordOf(middle).compare(word);
    if (order == 0) return middle;
    (order < 0 ? begin : end) = order < 0 ? middle + 1 : middle;
  }
  return std::nullopt;
}

uint32_t NgramModel::IdOf(std::string_view word) const { return Find(word).value_or(unknown_); }

uint32_t NgramModel::FieldAt(const NgramLevel& level, uint64_t record, int offset, int bits) const {
  const uint64_t bit =
      record * static_cast<uint64_t>(level.record_bits()) + static_cast<uint64_t>(offset);
  // 32 bits that begin within a byte are within five.
  const uint64_t word = LoadWord(bytes_, level.records_at + bit / 8) >> (bit % 8);
  return static_cast<uint32_t>(word & ((uint64_t{1} << bits) - 1));
}

uint32_t NgramModel::WordField(const NgramLevel& level, uint64_t record) const {
  return FieldAt(level, record, 0, level.word_bits);
}

uint32_t NgramModel::ChildField(const NgramLevel& level, uint64_t record) const {
  return FieldAt(level, record, level.record_bits() - level.child_bits, level.child_bits);
}

float NgramModel::ValueOf(uint64_t codebook, uint32_t field) const {
  if (codebook == 0) return std::bit_cast<float>(field);
  return LoadLittle<float>(bytes_.data() + codebook + field * sizeof(float));
}

float NgramModel::Probability(const NgramLevel& level, uint64_t record) const {
  return ValueOf(level.probabilities_at,
                 FieldAt(level, record, level.word_bits, level.probability_bits));
}

float NgramModel::Backoff(const NgramLevel& level, uint64_t record) const {
  return ValueOf(level.backoffs_at, FieldAt(level, record, level.word_bits + level.probability_bits,
                                            level.backoff_bits));
}

uint32_t NgramModel::Child(size_t length, uint32_t node, uint32_t word) const {
  const NgramLevel& level = layout_.levels[length - 1];
  const NgramLevel& next = layout_.levels[length];
  uint32_t begin = ChildField(level, node), end = ChildField(level, uint64_t{node} + 1);
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    const uint32_t found = WordField(next, middle);
    if (found == word) return middle;
    (found < word ? begin : end) = found < word ? middle + 1 : middle;
  }
  return NgramState::kAbsent;
}

bool NgramModel::Matters(size_t length, uint32_t node) const {
  if (node == NgramState::kAbsent) return false;
  const NgramLevel& level = layout_.levels[length - 1];
  return Backoff(level, node) != 0 ||
         ChildField(level, node) != ChildField(level, uint64_t{node} + 1);
}

NgramState NgramModel::SentenceBegin() const {
  NgramState state;
  Score({}, begin_, state);
  return state;
}

NgramScore NgramModel::Score(const NgramState& before, uint32_t word, NgramState& after) const {
  const size_t most = header().order - 1;
  NgramScore score{double{Probability(layout_.levels[0], word)}, 1};
  NgramState next;
  if (most > 0) {
    next.nodes[0] = word;
    next.length = 1;
  }
  for (uint32_t i = 0; i < before.length; ++i) {
    if (before.nodes[i] == NgramState::kAbsent) continue;
    const uint32_t child = Child(i + 1, before.nodes[i], word);
    if (child == NgramState::kAbsent) continue;
    score = {double{Probability(layout_.levels[i + 1], child)}, i + 2};
    if (i + 1 >= most) continue;
    next.nodes[i + 1] = child;
    next.length = i + 2;
  }
  for (uint32_t i = score.length - 1; i < before.length; ++i) {
    if (before.nodes[i] != NgramState::kAbsent) {
      score.log10 += double{Backoff(layout_.levels[i], before.nodes[i])};
    }
  }
  while (next.length > 0 && !Matters(next.length, next.nodes[next.length - 1])) {
    next.nodes[--next.length] = NgramState::kAbsent;
  }
  after = next;
  return score;
}

void NgramModel::ScoreAll(const NgramState& before, std::span<double> out) const {
  // Adds the weights of the contexts of more than `length` words, in the order of Score.
  const auto backed_off = [&](double log10, uint32_t length) {
    for (uint32_t i = length; i < before.length; ++i) {
      if (before.nodes[i] == NgramState::kAbsent) continue;
      log10 += double{Backoff(layout_.levels[i], before.nodes[i])};
    }
    return log10;
  };
  for (uint32_t word = 0; word < out.size(); ++word) {
    out[word] = backed_off(double{Probability(layout_.levels[0], word)}, 0);
  }
  for (uint32_t i = 0; i < before.length; ++i) {
    const uint32_t node = before.nodes[i];
    if (node == NgramState::kAbsent) continue;
    const NgramLevel &level = layout_.levels[i], &next = layout_.levels[i + 1];
    const uint32_t end = ChildField(level, uint64_t{node} + 1);
    for (uint32_t child = ChildField(level, node); child < end; ++child) {
      out[WordField(next, child)] = backed_off(double{Probability(next, child)}, i + 1);
    }
  }
}

bool NgramModel::Accepts(const NgramState& state) const {
  if (state.length >= header().order) return false;
  for (uint32_t i = 0; i < state.nodes.size(); ++i) {
    const uint32_t node = state.nodes[i];
    if (node != NgramState::kAbsent && (i >= state.length || node >= header().counts[i])) {
      return false;
    }
  }
  return true;
}

NgramSentenceScore NgramModel::ScoreSentence(
    std::string_view text, const std::function<void(std::string_view)>& on_unknown) const {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  NgramState state = SentenceBegin();
  NgramSentenceScore sum;
  const auto add = [&](uint32_t word) {
    const double score = Score(state, word, state).log10;
    sum.log10 += score;
    sum.words += 1;
    if (word != unknown_) return;
    sum.unknown += 1;
    sum.unknown_log10 += score;
  };
  for (size_t at = 0; (at = text.find_first_not_of(kSpaces, at)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const uint32_t id = IdOf(word);
    add(id);
    if (id == unknown_ && on_unknown) on_unknown(word);
    at = end;
  }
  add(end_);
  return sum;
}

}  // namespace kinglet
