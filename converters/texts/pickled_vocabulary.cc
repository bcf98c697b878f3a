#include "converters/texts/pickled_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "converters/checkpoints/checkpoint.h"
#include "converters/checkpoints/pickle.h"
#include "converters/texts/word_list.h"

namespace kinglet {
namespace {

using std::string_view_literals::operator""sv;

// How pickles start: opcode PROTO of protocol 2 and up; protocol 0 with an object, a list, a dict.
constexpr std::array kStarts = {"\x80"sv, "ccopy_reg\n_reconstructor\n"sv, "(lp0\n"sv, "(dp0\n"sv};
constexpr uint64_t kLongestStart = 32;

// An object's attributes, or a dict itself.
const PickleNode& AttributesOf(const PickleNode& node) {
  const auto* object = node.As<PickleObject>();
  return object != nullptr && object->state != nullptr ? *object->state : node;
}

constexpr std::string_view kHint = " (write the words as a JSON array of strings, by id)";
// The attributes whose value is another object with the words.
constexpr std::array kHolders = {"vocab"sv, "dictionary"sv};
// The attributes with the words by id: Transformer-XL's, torchtext's and fastai's,
// pytorch/examples', flair's.
constexpr std::array kByIds = {"idx2sym"sv, "itos"sv, "idx2word"sv, "idx2item"sv};
constexpr std::array kUnknownIds = {"unk_idx"sv, "unk_index"sv, "unk_id"sv};

// The words of a list, of a dict from words to ids, or of a dict from ids to words.
class WordsOfNode {
 public:
  WordsOfNode(const std::string& path, std::string where) : path_(path), where_(std::move(where)) {}

  Result<std::vector<std::string>> Read(const PickleNode& node) {
    if (const auto* list = node.As<PickleList>()) {
      for (const PickleNode* item : list->items) {
        KINGLET_RETURN_IF_ERROR(AddWord(*item));
      }
    } else if (const auto* dict = node.As<PickleDict>()) {
      for (const auto& [key, value] : dict->items) {
        const bool word_first = value->Integer().has_value();
        KINGLET_RETURN_IF_ERROR(AddWord(word_first ? *key : *value));
        const std::optional<int64_t> id = (word_first ? value : key)->Integer();
        if (!id) {
          return Refuse(Entry(), "a word and its id", value->Describe());
        }
        ids_.push_back(static_cast<uint64_t>(*id));
      }
    }
    if (words_.empty()) return Refuse(where_, "at least one word", node.Describe());
    if (node.As<PickleList>() != nullptr) return std::move(words_);
    std::optional<std::vector<std::string>> ordered = InIdOrder(words_, ids_);
    if (ordered) return *std::move(ordered);
    return Refuse(where_, "ids 0 to " + std::to_string(words_.size() - 1) + ", each once",
                  "others");
  }

 private:
  Status Refuse(const std::string& where, const std::string& expected,
                const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, where, expected,
                           found + std::string(kHint));
  }
  std::string Entry() const { return "entry " + std::to_string(ids_.size()) + " of " + where_; }
  Status AddWord(const PickleNode& node) {
    const auto* bytes = node.As<PickleBytes>();  // flair's words
    const std::string* word = bytes != nullptr ? &bytes->value : node.As<std::string>();
    if (word == nullptr || word->empty()) {
      return Refuse("entry " + std::to_string(words_.size()) + " of " + where_, "a word",
                    word == nullptr ? node.Describe() : "an empty string");
    }
    words_.push_back(*word);
    return {};
  }

  const std::string& path_;
  std::string where_;
  std::vector<std::string> words_;
  std::vector<uint64_t> ids_;
};

// The words and the unknown word's id in the state (version, integers, texts, tensors) of
// torchtext's Vocab from version 0.9 on; nullptr for other nodes.
const PickleList* TorchtextState(const PickleNode& node) {
  const auto* state = node.As<PickleList>();
  if (state == nullptr || state->items.size() != 4) return nullptr;
  const bool fits = state->items[0]->As<std::string>() != nullptr &&
                    state->items[1]->As<PickleList>() != nullptr &&
                    state->items[2]->As<PickleList>() != nullptr;
  return fits ? state : nullptr;
}

bool HoldsWords(const PickleNode& node) {
  if (const auto* list = node.As<PickleList>()) {
    return !list->items.empty() && list->items.front()->As<std::string>() != nullptr;
  }
  const auto* dict = node.As<PickleDict>();
  if (dict == nullptr || dict->items.empty()) return false;
  const auto& [key, value] = dict->items.front();
  return key->Integer() || value->Integer();
}

}  // namespace

Result<PickledVocabulary> WordsOfPickle(const std::string& path, const PickleNode& root) {
  const PickleNode* attributes = &AttributesOf(root);
  for (const std::string_view holder : kHolders) {
    const NodeRef inside = attributes->Find(holder);
    if (inside == nullptr || inside->As<int64_t>() != nullptr) continue;
    attributes = &AttributesOf(*inside);
    break;
  }
  PickledVocabulary vocabulary;
  for (const std::string_view key : kUnknownIds) {
    const NodeRef node = attributes->Find(key);
    if (node == nullptr || !node->Integer()) continue;
    vocabulary.unknown = static_cast<uint64_t>(*node->Integer());
  }
  const PickleNode* words = nullptr;
  std::string_view where = "the pickle";
  for (const std::string_view key : kByIds) {
    const NodeRef node = attributes->Find(key);
    if (words != nullptr || node == nullptr || node->As<int64_t>() != nullptr) continue;
    words = node;
    where = key;
  }
  if (const PickleList* state = TorchtextState(*attributes)) {
    const auto unknown = state->items[1]->Integers();
    if (unknown && unknown->size() == 1) {
      vocabulary.unknown = static_cast<uint64_t>(unknown->front());
    }
    words = state->items[2];
  } else if (words == nullptr && HoldsWords(*attributes)) {
    words = attributes;
  }
  if (words != nullptr) {
    KINGLET_ASSIGN_OR_RETURN(vocabulary.words, WordsOfNode(path, std::string(where)).Read(*words));
    return vocabulary;
  }
  return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "vocabulary",
                         "a list of words, a dict of words and ids, or an object with 'idx2sym', "
                         "'itos', 'idx2word' or "
                         "'idx2item'",
                         attributes->Describe() + std::string(kHint));
}

bool LooksPickled(const InputFile& file) {
  if (file.path().ends_with(".pkl") || Checkpoint::Recognises(file)) return true;
  std::string start(std::min<uint64_t>(file.size(), kLongestStart), '\0');
  if (!file.ReadAt(0, std::as_writable_bytes(std::span<char>(start))).ok()) return false;
  return std::any_of(kStarts.begin(), kStarts.end(),
                     [&start](std::string_view begin) { return start.starts_with(begin); });
}

Result<PickledVocabulary> ReadPickledVocabulary(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(InputFile opened, InputFile::Open(path));
  const auto file = std::make_shared<const InputFile>(std::move(opened));
  if (Checkpoint::Recognises(*file)) {
    KINGLET_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(file));
    return WordsOfPickle(path, checkpoint->root());
  }
  const Result<PickleGraph> graph = ReadPickle(PickleIn(*file), 0);
  if (!graph.ok()) return InFile(path, graph.status());
  return WordsOfPickle(path, *graph->root);
}

}  // namespace kinglet
