#include "runtime/spelt_words.h"

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>
#include <variant>

namespace kinglet {

SpeltWords::SpeltWords(const Vocabulary& vocabulary, uint32_t first, uint32_t longest,
                       uint32_t unknown, std::shared_ptr<MemoryBudget> budget)
    : vocabulary_(vocabulary),
      first_(first),
      longest_(longest),
      unknown_(unknown),
      memory_(std::move(budget), 0) {
  known_ends_.reserve(vocabulary.size() - first);
  for (uint32_t id = first; id < vocabulary.size(); ++id) {
    known_ += vocabulary.Word(id).substr(0, longest);
    known_ends_.push_back(known_.size());
  }
}

namespace {

const EmbeddingBin& LastBin(const Plan& plan) {
  return std::get<EmbedRow>(plan.nodes[EmbeddingNode(plan)].op).bins.back();
}

}  // namespace

uint64_t SpeltWords::BytesOf(const Plan& plan, const Vocabulary* vocabulary) {
  if (!LastBin(plan).spelling || vocabulary == nullptr) return 0;
  // A string that grows has room for as much again.
  return 2 * vocabulary->word_bytes() +
         (sizeof(uint64_t) + sizeof(uint16_t)) * uint64_t{vocabulary->size()};
}

Result<std::unique_ptr<SpeltWords>> SpeltWords::Of(const Plan& plan, const Vocabulary* vocabulary,
                                                   std::shared_ptr<MemoryBudget> budget) {
  const EmbeddingBin& last = LastBin(plan);
  if (!last.spelling) return std::unique_ptr<SpeltWords>();
  const std::optional<uint32_t> unknown =
      vocabulary == nullptr ? std::nullopt : vocabulary->Find("<unk>");
  if (!unknown) {
    return Status::Refusal(KINGLET_INVALID_MODEL, "model", "vocabulary",
                           "words, <unk> among them, as the model reads words by their bytes",
                           vocabulary == nullptr ? "ids only" : "none of that name");
  }
  return std::unique_ptr<SpeltWords>(
      new SpeltWords(*vocabulary, last.first, last.spelling->longest, *unknown, std::move(budget)));
}

Result<uint32_t> SpeltWords::Number(std::string_view word) {
  if (word.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "spelling", "word", "at least one byte",
                           "none");
  }
  if (const std::optional<uint32_t> id = vocabulary_.Find(word)) return *id;
  word = word.substr(0, longest_);
  const std::unique_lock lock(mutex_);
  const auto found = numbers_.find(word);
  if (found != numbers_.end()) return found->second;
  // A bound of what the word takes in `others_` and `numbers_`.
  const uint64_t bytes = 128 + word.size();
  const uint64_t most = UINT32_MAX - 1 - vocabulary_.size();
  if (others_.size() >= std::min<uint64_t>(kMostWords, most) || !memory_.Grow(bytes)) {
    return Status::Refusal(
        KINGLET_OUT_OF_MEMORY, "spelling", "words beyond the vocabulary",
        "at most " + std::to_string(kMostWords) + ", and what the model's memory limit leaves",
        std::to_string(others_.size() + 1) + "; open the model again to forget them");
  }
  others_.emplace_back(word);
  const auto number = static_cast<uint32_t>(vocabulary_.size() + others_.size() - 1);
  numbers_.emplace(others_.back(), number);
  return number;
}

std::optional<SpeltWords::Word> SpeltWords::Find(uint32_t number) const {
  if (number < first_) return Word{{}, number};
  if (number < vocabulary_.size()) {
    const size_t index = number - first_;
    const uint64_t begin = index == 0 ? 0 : known_ends_[index - 1];
    return Word{std::string_view(known_).substr(begin, known_ends_[index] - begin), number};
  }
  const std::shared_lock lock(mutex_);
  const size_t index = number - vocabulary_.size();
  if (index >= others_.size()) return std::nullopt;
  return Word{others_[index], unknown_};
}

std::vector<uint16_t> SpeltWords::Lengths() const {
  std::vector<uint16_t> lengths(first_);
  uint64_t begin = 0;
  for (const uint64_t end : known_ends_) {
    lengths.push_back(static_cast<uint16_t>(end - begin));
    begin = end;
  }
  return lengths;
}

}  // namespace kinglet
