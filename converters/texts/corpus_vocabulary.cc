#include "converters/texts/corpus_vocabulary.h"

#include <algorithm>
#include <functional>
#include <new>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "converters/texts/word_splitter.h"

namespace kinglet {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Words as they appear, with their counts.
class WordCounts {
 public:
  void Add(std::string_view word, uint64_t times = 1) {
    auto place = places_.find(word);
    if (place == places_.end()) {
      place = places_.emplace(word, words_.size()).first;
      words_.push_back({std::string(word), 0});
    }
    words_[place->second].second += times;
  }

  // Orders by falling count; words of one count by `before`.
  template <class Before>
  std::vector<std::string> Ordered(const Before& before) {
    std::stable_sort(words_.begin(), words_.end(), [&](const Word& a, const Word& b) {
      return a.second != b.second ? a.second > b.second : before(a.first, b.first);
    });
    return Words();
  }

  std::vector<std::string> Words() {
    std::vector<std::string> words;
    for (Word& word : words_) words.push_back(std::move(word.first));
    return words;
  }

  bool empty() const { return words_.empty(); }

 private:
  using Word = std::pair<std::string, uint64_t>;
  std::vector<Word> words_;
  std::unordered_map<std::string, size_t, TextHash, std::equal_to<>> places_;
};

Status CountWords(const std::vector<std::string>& paths, bool ends_of_lines, WordCounts& counts) {
  for (const std::string& path : paths) {
    KINGLET_RETURN_IF_ERROR(ForEachWord(path, [&](std::string_view word) -> Status {
      if (ends_of_lines || word != kEndOfLine) counts.Add(word);
      return {};
    }));
  }
  return {};
}

// Python's text.replace("\n", "<eos>").split().
void CountFused(std::string_view text, WordCounts& counts) {
  std::string word;
  while (!text.empty()) {
    size_t length = SpaceLength(text);
    if (text.front() == '\n') {
      word += kEndOfLine;
    } else if (length == 0) {
      length = 1;
      word += text.front();
    } else if (!word.empty()) {
      counts.Add(std::exchange(word, std::string()));
    }
    text.remove_prefix(length);
  }
  if (!word.empty()) counts.Add(word);
}

Result<std::vector<std::string>> OrderedWords(const std::vector<std::string>& paths,
                                              WordOrder order, WordCounts& counts) {
  switch (order) {
    case WordOrder::kUnknown:
    case WordOrder::kFirstAppearance:
      KINGLET_RETURN_IF_ERROR(CountWords(paths, true, counts));
      return counts.Words();
    case WordOrder::kByCount: {
      KINGLET_RETURN_IF_ERROR(CountWords(paths, false, counts));
      if (counts.empty()) return std::vector<std::string>();
      std::vector<std::string> words =
          counts.Ordered([](const std::string&, const std::string&) { return false; });
      words.insert(words.begin(), std::string(kEndOfLine));
      return words;
    }
    case WordOrder::kByCountThenCharacters:
      break;
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(paths.front()));
  CountFused(text, counts);
  // UTF-8 sorts as the characters do.
  return counts.Ordered([](const std::string& a, const std::string& b) { return a < b; });
}

}  // namespace

Result<std::vector<std::string>> VocabularyFromTexts(const std::vector<std::string>& paths,
                                                     WordOrder order) try {
  WordCounts counts;
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::string> words, OrderedWords(paths, order, counts));
  if (!words.empty()) return words;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "vocabulary", paths.front(),
                         "a text with at least one word", "none");
} catch (const std::bad_alloc&) {
  return Status::Refusal(KINGLET_OUT_OF_MEMORY, "vocabulary", paths.front(), "memory for the words",
                         "none");
}

}  // namespace kinglet
