#include "converters/texts/vocabulary_json.h"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "converters/checkpoints/json_events.h"
#include "converters/texts/word_list.h"
#include "format/message_text.h"

namespace kinglet {
namespace {

const char kForms[] = "an array of strings, or an object of words and their ids 0, 1, ..";

// Reads an array of words, or an object of words and ids.
class WordListReader final : public JsonEvents {
 public:
  explicit WordListReader(const std::string& path) : path_(path) {}

  bool BeginObject() override {
    if (std::exchange(open_, true)) return Refuse("an object");
    object_ = true;
    return true;
  }
  bool Name(std::string& name) override {
    if (name.empty()) return Refuse("an empty string");
    words_.push_back(std::move(name));
    return true;
  }
  bool EndObject() override { return true; }
  bool BeginList() override {
    if (std::exchange(open_, true)) return Refuse("a list");
    return true;
  }
  bool EndList() override { return true; }
  bool Text(std::string& text) override {
    if (!open_ || object_) return Refuse("a string");
    if (text.empty()) return Refuse("an empty string");
    words_.push_back(std::move(text));
    return true;
  }
  bool Number(std::optional<uint64_t> number) override {
    if (!object_ || !number) return Refuse("a number");
    ids_.push_back(*number);
    return true;
  }
  bool Boolean() override { return Refuse("a truth value"); }
  bool Null() override { return Refuse("null"); }
  void Broken(size_t byte) override {
    status_ = Refusal("byte " + std::to_string(byte), "a JSON array of strings",
                      "no JSON (write one with json.dump)");
  }

  Result<std::vector<std::string>> Finish() {
    KINGLET_RETURN_IF_ERROR(status_);
    if (words_.empty()) {
      return Refusal("JSON", "at least one word", "none (give the model's own vocabulary)");
    }
    if (!object_) return std::move(words_);
    std::optional<std::vector<std::string>> ordered = InIdOrder(words_, ids_);
    if (ordered) return *std::move(ordered);
    return Refusal("JSON", "ids 0 to " + std::to_string(words_.size() - 1) + ", each once",
                   "others (write the words as an array, in the order of the ids)");
  }

 private:
  Status Refusal(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, where, expected, found);
  }
  // Ends the reading.
  bool Refuse(const std::string& found) {
    if (!open_) {
      status_ = Refusal("JSON", kForms, found + " (write the words in such a form)");
    } else if (object_) {
      status_ = Refusal(words_.empty() ? "JSON" : "entry " + Quoted(words_.back()), "an id",
                        found + " (write the object of words and ids alone)");
    } else {
      status_ = Refusal("entry " + std::to_string(words_.size()), "a word",
                        found + " (write each word as a string)");
    }
    return false;
  }

  const std::string& path_;
  bool open_ = false, object_ = false;
  std::vector<std::string> words_;
  std::vector<uint64_t> ids_;  // of an object
  Status status_;
};

// Reads the words of a tokenizer.json: "vocab" in "model", an object of words and ids or an array
// of [word, score], and "added_tokens", objects with "id" and "content".
class TokenizerReader final : public JsonEvents {
 public:
  bool BeginObject() override { return Begin(true); }
  bool Name(std::string& name) override {
    keys_.back() = std::move(name);
    return true;
  }
  bool EndObject() override {
    if (keys_.size() == 3 && keys_[0] == "added_tokens" && added_id_ && !added_word_.empty()) {
      entries_[*added_id_] = std::exchange(added_word_, {});
    }
    return End();
  }
  bool BeginList() override {
    if (At({"model", "vocab"}) || At({"model", "vocab", ""})) word_read_ = false;
    return Begin(false);
  }
  bool EndList() override { return End(); }
  bool Text(std::string& text) override {
    if (At({"model", "vocab", "", ""}) && !std::exchange(word_read_, true)) {
      entries_[pieces_++] = std::move(text);
    } else if (At({"added_tokens", "", "content"})) {
      added_word_ = std::move(text);
    }
    return true;
  }
  bool Number(std::optional<uint64_t> number) override {
    if (!number) return true;
    if (keys_.size() == 3 && keys_[0] == "model" && keys_[1] == "vocab" && objects_[2]) {
      entries_[*number] = keys_[2];
    } else if (At({"added_tokens", "", "id"})) {
      added_id_ = number;
    }
    return true;
  }
  bool Boolean() override { return true; }
  bool Null() override { return true; }
  void Broken(size_t) override { entries_.clear(); }

  // Whether there are entries, and the first id without a word.
  bool any() const { return !entries_.empty(); }
  uint64_t FirstMissing() const {
    uint64_t id = 0;
    for (const auto& [known, word] : entries_) {
      if (known != id || word.empty()) break;
      ++id;
    }
    return id;
  }

  // The words, if their ids are 0 to n - 1.
  std::optional<std::vector<std::string>> Words() {
    std::vector<std::string> words;
    for (auto& [id, word] : entries_) {
      if (id != words.size() || word.empty()) return std::nullopt;
      words.push_back(std::move(word));
    }
    return words.empty() ? std::nullopt : std::optional(std::move(words));
  }

 private:
  static constexpr size_t kMaxLevels = 64;
  // Whether the value that comes is at this path; "" is an item of a list.
  bool At(std::initializer_list<std::string_view> path) const {
    return std::equal(keys_.begin(), keys_.end(), path.begin(), path.end());
  }
  bool Begin(bool object) {
    keys_.emplace_back();
    objects_.push_back(object);
    return keys_.size() < kMaxLevels;
  }
  bool End() {
    keys_.pop_back();
    objects_.pop_back();
    return true;
  }

  std::vector<std::string> keys_;  // of the containers that are open
  std::vector<bool> objects_;
  std::map<uint64_t, std::string> entries_;
  uint64_t pieces_ = 0;  // of an array
  std::optional<uint64_t> added_id_;
  std::string added_word_;
  bool word_read_ = false;
};

}  // namespace

Result<std::vector<std::string>> ParseVocabularyJson(const std::string& path,
                                                     std::string_view text) {
  TokenizerReader tokenizer;
  ReadJson(text, tokenizer);
  const uint64_t missing = tokenizer.FirstMissing();
  if (auto words = tokenizer.Words()) return *std::move(words);
  if (tokenizer.any()) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path, "model/vocab and added_tokens",
                           "a word of each id from 0",
                           "none of id " + std::to_string(missing) +
                               " (write the words as a JSON array, in the order of the ids)");
  }
  WordListReader reader(path);
  ReadJson(text, reader);
  return reader.Finish();
}

}  // namespace kinglet
