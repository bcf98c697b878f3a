#include "converters/texts/vocabulary_json.h"

#include <utility>

#include "converters/sources/json_events.h"

namespace kinglet {
namespace {

class WordListReader final : public JsonEvents {
 public:
  explicit WordListReader(const std::string& path) : path_(path) {}

  bool BeginObject() override { return Refuse("an object"); }
  bool Name(std::string& /*name*/) override { return false; }
  bool EndObject() override { return false; }
  bool BeginList() override {
    if (std::exchange(open_, true)) return Refuse("a list");
    return true;
  }
  bool EndList() override { return true; }
  bool Text(std::string& text) override {
    if (!open_) return Refuse("a string");
    if (text.empty()) return Refuse("an empty string");
    words_.push_back(std::move(text));
    return true;
  }
  bool Number(std::optional<uint64_t> /*number*/) override { return Refuse("a number"); }
  bool Boolean() override { return Refuse("a truth value"); }
  bool Null() override { return Refuse("null"); }
  void Broken(size_t byte) override {
    status_ = Refusal("byte " + std::to_string(byte), "a JSON array of strings", "no JSON");
  }

  Result<std::vector<std::string>> Finish() {
    KINGLET_RETURN_IF_ERROR(status_);
    if (words_.empty()) return Refusal("JSON", "at least one word", "none");
    return std::move(words_);
  }

 private:
  Status Refusal(const std::string& where, const std::string& expected,
                 const std::string& found) const {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, where, expected, found);
  }
  // Ends the reading.
  bool Refuse(const std::string& found) {
    status_ = open_ ? Refusal("entry " + std::to_string(words_.size()), "a word", found)
                    : Refusal("JSON", "an array of strings", found);
    return false;
  }

  const std::string& path_;
  bool open_ = false;
  std::vector<std::string> words_;
  Status status_;
};

}  // namespace

Result<std::vector<std::string>> ParseVocabularyJson(const std::string& path,
                                                     std::string_view text) {
  WordListReader reader(path);
  ReadJson(text, reader);
  return reader.Finish();
}

}  // namespace kinglet
