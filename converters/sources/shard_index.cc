#include "converters/sources/shard_index.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "converters/sources/quoted.h"

namespace kinglet {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;
constexpr int kDeepest = 16;  // levels of lists and objects; an index has two

// Keeps what is under "weight_map" and passes over the rest, whatever it is.
class IndexHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit IndexHandler(const std::string& path) : path_(path) {}

  bool start_object(size_t /*elements*/) override {
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
  bool end_object() override {
    if (--level_ == 1) in_map_ = false;
    return true;
  }
  bool key(string_t& name) override {
    if (level_ == 1) key_ = name;
    if (InMap()) tensor_ = std::move(name);
    return true;
  }
  bool string(string_t& text) override {
    if (!InMap()) return Scalar("a text");
    if (text.empty() || text.find('/') != std::string::npos || text == "..") {
      return Fail("tensor " + QuotedName(tensor_), "the name of a file beside the index",
                  QuotedName(text));
    }
    if (!index_.file_of.emplace(tensor_, text).second) {
      return Fail("tensor " + QuotedName(tensor_), "each tensor once", "it again");
    }
    files_.insert(std::move(text));
    return true;
  }
  bool start_array(size_t /*elements*/) override {
    if (InMap()) return FailInMap("a list");
    return Scalar("a list") && Deeper();
  }
  bool end_array() override {
    --level_;
    return true;
  }
  bool null() override { return Scalar("null"); }
  bool boolean(bool /*value*/) override { return Scalar("a bool"); }
  bool number_integer(number_integer_t /*number*/) override { return Scalar("a number"); }
  bool number_unsigned(number_unsigned_t /*number*/) override { return Scalar("a number"); }
  bool number_float(number_float_t /*n*/, const string_t& /*text*/) override {
    return Scalar("a number");
  }
  bool binary(binary_t& /*bytes*/) override { return Scalar("bytes"); }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return Fail("byte " + std::to_string(position), "JSON", "something else");
  }

  Result<ShardIndex> Take() {
    if (!status_.ok()) return status_;
    if (files_.empty()) {
      Fail("weight_map", "an object of tensors' names and files", has_map_ ? "none in it" : "none");
      return status_;
    }
    index_.files.assign(files_.begin(), files_.end());
    return std::move(index_);
  }

 private:
  bool InMap() const { return in_map_ && level_ == 2; }
  bool Deeper() {
    if (++level_ <= kDeepest) return true;
    return Fail("index", "at most " + std::to_string(kDeepest) + " levels", "more");
  }
  // A value that says nothing, unless it stands where the index or a file's name should.
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
  IndexHandler handler(file.path());
  nlohmann::json::sax_parse(text, &handler);
  return handler.Take();
}

}  // namespace kinglet
