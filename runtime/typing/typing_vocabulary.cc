#include "runtime/typing/typing_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "format/blocks.h"
#include "runtime/special_tokens.h"
#include "runtime/spellings.h"
#include "runtime/text/model_text.h"

namespace kinglet::typing {
namespace {

Status RefuseModel(const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "typing", "model", expected, found);
}

bool IsTyped(const std::string& text, const Letters& letters) {
  if (text.starts_with('<') && text.ends_with('>')) return false;
  const auto is_space = [](char32_t letter) { return letter <= ' '; };
  return std::none_of(letters.begin(), letters.end(), is_space) &&
         std::any_of(letters.begin(), letters.end(), IsWordLetter);
}

}  // namespace

Result<std::shared_ptr<const TypingVocabulary>> TypingVocabulary::Of(
    std::shared_ptr<const Model> model) {
  if (HasEncoder(model->file().description()) || model->plan().clusters.empty()) {
    return RefuseModel("a language model", "one that does not predict the next word");
  }
  KINGLET_ASSIGN_OR_RETURN(const Spellings spellings, Spellings::Of(*model));
  if (model->text() != nullptr && model->text()->splits_words()) {
    return RefuseModel("one whose tokens are words", "one of pieces of words");
  }
  if (model->text() != nullptr && model->text()->reads_backward()) {
    return RefuseModel("one that reads forward", "one that reads a text from its end");
  }
  const Vocabulary& vocabulary = *model->vocabulary();
  std::shared_ptr<TypingVocabulary> made(new TypingVocabulary);
  KINGLET_ASSIGN_OR_RETURN(
      made->memory_,
      ClaimMemory(model->budget(), WordTrie::BytesOf(vocabulary.size(), vocabulary.word_bytes()),
                  "typing", "words"));
  made->unknown_ = SpecialTokensOf(*model).unknown;
  std::vector<std::pair<Letters, uint32_t>> words;
  std::vector<bool> joins(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    if (spellings.SpellsNothing(id)) continue;
    const std::string spelled = spellings.Text(id, Before::kWord);
    const bool is_spaced = spelled.starts_with(' ');
    const std::string text = spelled.substr(is_spaced ? 1 : 0);
    Letters letters = LowerLetters(text);
    if (!IsTyped(text, letters)) continue;
    joins[id] = !is_spaced;
    words.emplace_back(std::move(letters), id);
  }
  std::set<char32_t> letters;
  for (const auto& [word, id] : words) letters.insert(word.begin(), word.end());
  if (letters.size() > WordTrie::kMostLetterKinds) {
    return RefuseModel("at most " + std::to_string(WordTrie::kMostLetterKinds) + " letters",
                       std::to_string(letters.size()));
  }
  made->letters_ = LetterModel(words);
  double listed = std::exp(made->letters_.LogProbability({}));  // no letters are no word
  std::sort(words.begin(), words.end());
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0 && words[i].first == words[i - 1].first) continue;
    listed += std::exp(made->letters_.LogProbability(words[i].first));
  }
  made->log_unlisted_ = std::log1p(-std::min(listed, 0.999));
  made->trie_ = WordTrie(std::move(words));
  made->model_ = std::move(model);
  std::vector<bool> by_entry(made->trie_.entries());
  for (uint32_t entry = 0; entry < made->trie_.entries(); ++entry) {
    by_entry[entry] = joins[made->trie_.value(entry)];
  }
  if (std::find(by_entry.begin(), by_entry.end(), true) != by_entry.end()) {
    made->joins_ = std::move(by_entry);
  }
  return std::shared_ptr<const TypingVocabulary>(std::move(made));
}

std::string TypingVocabulary::Text(uint32_t id) const {
  return model_->text() != nullptr ? model_->text()->Spell(id).text
                                   : model_->vocabulary()->Word(id);
}

bool TypingVocabulary::IsListed(const Letters& lower) const {
  const uint32_t node = trie_.Find(lower);
  return node != 0 && trie_.FirstEntry(node) < trie_.FirstEntry(node + 1);
}

std::optional<uint32_t> TypingVocabulary::EntryOf(const std::string& text) const {
  const uint32_t node = trie_.Find(LowerLetters(text));
  if (node == 0) return std::nullopt;
  for (uint32_t entry = trie_.FirstEntry(node); entry < trie_.FirstEntry(node + 1); ++entry) {
    if (!Joins(entry) && Text(trie_.value(entry)) == text) return entry;
  }
  return std::nullopt;
}

}  // namespace kinglet::typing
