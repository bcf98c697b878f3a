#include "runtime/typing/typing_vocabulary.h"

#include <algorithm>
#include <cmath>
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

Status CheckAlphabet(const WordList& words) {
  const size_t kinds = words.Alphabet().size();
  if (kinds <= WordTrie::kMostLetterKinds) return {};
  return RefuseModel("at most " + std::to_string(WordTrie::kMostLetterKinds) + " letters",
                     std::to_string(kinds));
}

}  // namespace

Result<std::shared_ptr<const TypingVocabulary>> TypingVocabulary::Of(
    std::shared_ptr<const Model> model) {
  const ModelDescription& description = model->file().description();
  if (HasEncoder(description) || IsMaskedModel(description) || model->plan().clusters.empty()) {
    return RefuseModel("a language model", "one that does not predict the next word");
  }
  if (model->vocabulary() == nullptr) {
    return RefuseModel("one whose file has the texts of words", "ids only");
  }
  if (model->text() != nullptr && model->text()->reads_backward()) {
    return RefuseModel("one that reads forward", "one that reads a text from its end");
  }
  const Vocabulary& vocabulary = *model->vocabulary();
  if (vocabulary.word_bytes() > Spellings::kMostBytes) {
    return RefuseModel(
        "words of at most " + std::to_string(Spellings::kMostBytes) + " bytes together",
        std::to_string(vocabulary.word_bytes()));
  }
  std::shared_ptr<TypingVocabulary> made(new TypingVocabulary);
  const bool has_pieces = model->text() != nullptr && model->text()->splits_words();
  uint64_t bytes = WordTrie::BytesOf(vocabulary.size(), vocabulary.word_bytes());
  if (has_pieces) bytes = 2 * bytes + vocabulary.size() * sizeof(std::string);
  KINGLET_ASSIGN_OR_RETURN(made->memory_, ClaimMemory(model->budget(), bytes, "typing", "words"));
  const SpecialTokens special = SpecialTokensOf(*model);
  made->unknown_ = special.unknown;
  if (has_pieces) {
    made->pieces_ = std::make_shared<PieceVocabulary>(*model);
    made->model_ = std::move(model);
    return std::shared_ptr<const TypingVocabulary>(std::move(made));
  }
  WordList words, joining;
  words.Reserve(vocabulary.size(), vocabulary.word_bytes());
  std::vector<bool> joins(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const Spelling spelling = Spellings::OfToken(*model, special, id);
    const bool is_spaced = !spelling.joins_before || spelling.text.starts_with(' ');
    const std::string text = spelling.text.substr(spelling.joins_before && is_spaced ? 1 : 0);
    const Letters letters = LowerLetters(text);
    if (!IsTyped(text, letters)) continue;
    joins[id] = !is_spaced;
    words.Add(letters, id);
    if (joins[id]) joining.Add(letters, id);
  }
  KINGLET_RETURN_IF_ERROR(CheckAlphabet(words));
  words.Sort();
  joining.Sort();
  made->letters_ = LetterModel(words);
  // No letters are no word.
  const double listed =
      std::exp(made->letters_.LogProbability({})) + made->letters_.ProbabilityOfAny(words);
  made->log_unlisted_ = std::log1p(-std::min(listed, 0.999));
  made->trie_ = WordTrie(words);
  made->model_ = std::move(model);
  if (joining.size() == 0) return std::shared_ptr<const TypingVocabulary>(std::move(made));
  made->joining_trie_ = WordTrie(joining);
  for (uint32_t entry = 0; entry < made->trie_.entries(); ++entry) {
    made->joins_.push_back(joins[made->trie_.value(entry)]);
    if (made->joins_.back()) made->joining_.push_back(entry);
  }
  return std::shared_ptr<const TypingVocabulary>(std::move(made));
}

std::string TypingVocabulary::Text(uint32_t id) const {
  return model_->text() != nullptr ? model_->text()->Spell(id).text
                                   : model_->vocabulary()->Word(id);
}

bool TypingVocabulary::IsListed(LettersView lower) const {
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
