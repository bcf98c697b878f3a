#include "converters/checkpoints/shard_index.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "converters/checkpoints/json_events.h"
#include "converters/checkpoints/quoted.h"

namespace kinglet {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr int kMaxIndexLevels = 16;  // of lists and objects; an index has two

// Keeps the content of "weight_map" and skips the rest.
class ShardIndexReader final : public JsonEvents {
 public:
  explicit ShardIndexReader(const std::string& path) : path_(path) {}

  bool BeginObject() override {
    if (level_ == 0 && !started_) {
      started_ = true;
    } else if (InMap()) {
      return FailInMap("an object");
    } else if (level_ == 1 && key_ == "weight_map") {
      if (has_map_) return Fail("weight_map", "one", "two");
      has_map_ = in_map_ = true;
    }
    return Deeper();
  }
  bool EndObject() override {
    if (--level_ == 1) in_map_ = false;
    return true;
  }
  bool Name(std::string& name) override {
    if (level_ == 1) key_ = name;
    if (InMap()) tensor_ = std::move(name);
    return true;
  }
  bool Text(std::string& text) override {
    if (!InMap()) return Scalar("a text");
    if (text.empty() || text.find('/') != std::string::npos || text == "..") {
      return Fail("tensor " + QuotedName(tensor_), "the name of a file in the index's folder",
                  QuotedName(text));
    }
    if (!index_.file_of.emplace(tensor_, text).second) {
      return Fail("tensor " + QuotedName(tensor_), "each tensor once", "the name again");
    }
    files_.insert(std::move(text));
    return true;
  }
  bool BeginList() override {
    if (InMap()) return FailInMap("a list");
    return Scalar("a list") && Deeper();
  }
  bool EndList() override {
    --level_;
    return true;
  }
  bool Number(std::optional<uint64_t> /*number*/) override { return Scalar("a number"); }
  bool Boolean() override { return Scalar("a bool"); }
  bool Null() override { return Scalar("null"); }
  void Broken(size_t byte) override {
    Fail("byte " + std::to_string(byte), "JSON", "another character");
  }

  Result<ShardIndex> Take() {
    if (!status_.ok()) return status_;
    if (files_.empty()) {
      Fail("weight_map", "an object of tensors' names and files",
           has_map_ ? "an empty one" : "none");
      return status_;
    }
    index_.files.assign(files_.begin(), files_.end());
    return std::move(index_);
  }

 private:
  bool InMap() const { return in_map_ && level_ == 2; }
  bool Deeper() {
    if (++level_ <= kMaxIndexLevels) return true;
    return Fail("index", "at most " + std::to_string(kMaxIndexLevels) + " levels", "more");
  }
  // A value to skip; refused as the index itself or as a file's name.
  bool Scalar(const std::string& found) {
    if (InMap()) return FailInMap(found);
    return level_ > 0 || Fail("index", "an object", found);
  }
  bool FailInMap(const std::string& found) {
    return Fail("tensor " + QuotedName(tensor_), "the name of a file", found);
  }
  bool Fail(const std::string& where, const std::string& expected, const std::string& found) {
    if (status_.ok()) {
      status_ = Status::Refusal(KINGLET_INVALID_CHECKPOINT, path_, where, expected, found);
    }
    return false;
  }

  const std::string& path_;
  ShardIndex index_;
  std::set<std::string> files_;
  std::string key_, tensor_;
  int level_ = 0;
  bool started_ = false, has_map_ = false, in_map_ = false;
  Status status_;
};

}  // namespace

bool LooksLikeShardIndex(const InputFile& file) {
  if (!file.path().ends_with(".index.json") || file.size() == 0) return false;
  std::byte first{};
  return file.ReadAt(0, {&first, 1}).ok() && first == std::byte{'{'};
}

Result<ShardIndex> ReadShardIndex(const InputFile& file) {
  if (file.size() > kMaxIndexBytes) {
    return Status::Refusal(KINGLET_INVALID_CHECKPOINT, file.path(), "size",
                           "at most " + std::to_string(kMaxIndexBytes) + " bytes",
                           std::to_string(file.size()));
  }
  std::string text(file.size(), '\0');
  KINGLET_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span<char>(text))));
  ShardIndexReader reader(file.path());
  ReadJson(text, reader);
  return reader.Take();
}

}  // namespace kinglet
