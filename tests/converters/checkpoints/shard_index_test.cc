#include "converters/checkpoints/shard_index.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/converters/files.h"

namespace kinglet::shard_index_test {
namespace {

using Strings = std::vector<std::string>;

Result<ShardIndex> Read(const std::string& content) {
  const TemporaryFile file(content, ".index.json");
  const auto input = InputFile::Open(file.path());
  EXPECT_TRUE(input.ok());
  auto index = ReadShardIndex(*input);
  if (index.ok()) return index;
  EXPECT_EQ(index.status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_EQ(index.status().message().substr(0, file.path().size()), file.path());
  return Status(KINGLET_INVALID_CHECKPOINT, index.status().message().substr(file.path().size()));
}

std::string Refusal(const std::string& content) {
  const auto index = Read(content);
  return index.ok() ? "accepted" : index.status().message();
}

TEST(ShardIndex, ListsFilesAndTensors) {
  const auto index = Read(R"({"metadata": {"total_size": 12, "deep": [{"weight_map": [1, {}]}]},
      "weight_map": {"b": "two.bin", "a": "one.bin", "c": "two.bin"}, "more": null})");
  ASSERT_TRUE(index.ok()) << index.status().message();
  EXPECT_EQ(index->files, (Strings{"one.bin", "two.bin"}));
  EXPECT_EQ(index->file_of.size(), 3u);
  EXPECT_EQ(index->file_of.at("c"), "two.bin");
}

TEST(ShardIndex, IsRecognisedByNameAndContent) {
  const auto looks = [](const char* content, const char* suffix) {
    const TemporaryFile file(content, suffix);
    return LooksLikeShardIndex(*InputFile::Open(file.path()));
  };
  EXPECT_TRUE(looks("{}", ".index.json"));
  EXPECT_FALSE(looks("{}", ".json"));
  EXPECT_FALSE(looks("[]", ".index.json"));
  EXPECT_FALSE(looks("", ".index.json"));
}

TEST(ShardIndex, RefusesWhatIsNoIndex) {
  EXPECT_EQ(Refusal("{}"),
            ": weight_map: expected an object of tensors' names and files, found none");
  EXPECT_EQ(Refusal(R"({"weight_map": {}})"),
            ": weight_map: expected an object of tensors' names and files, found an empty one");
  EXPECT_NE(Refusal(R"({"weight_map": 3})").find("found none"), std::string::npos);
  EXPECT_EQ(Refusal("[]"), ": index: expected an object, found a list");
  EXPECT_EQ(Refusal(R"({"weight_map": {"a": "x"}, "weight_map": {"b": "y"}})"),
            ": weight_map: expected one, found two");
  EXPECT_EQ(Refusal(R"({"weight_map": {"a": "x", "a": "y"}})"),
            ": tensor 'a': expected each tensor once, found the name again");
  for (const char* value : {"1", "-1", "0.5", "null", "true", "[\"x\"]", "{\"b\": \"x\"}"}) {
    const std::string refusal = Refusal("{\"weight_map\": {\"a\": " + std::string(value) + "}}");
    EXPECT_EQ(refusal.find(": tensor 'a': expected the name of a file, found "), 0u) << value;
  }
}

// An index cannot make the converter read other folders.
TEST(ShardIndex, RefusesOtherFolders) {
  for (const char* name : {"", "..", "../x.bin", "/etc/passwd", "a/b"}) {
    const std::string refusal = Refusal("{\"weight_map\": {\"a\": \"" + std::string(name) + "\"}}");
    EXPECT_EQ(refusal.find(": tensor 'a': expected the name of a file in the index's folder"), 0u);
  }
}

TEST(ShardIndex, HostileText) {
  const std::string whole = R"({"m": {"n": [1.5, "x"]}, "weight_map": {"a": "one", "b": "two"}})";
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Read(whole.substr(0, size)).ok()) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x21);
    (void)Read(changed);
  }
  EXPECT_NE(Refusal("{\"a\": " + std::string(100'000, '[')).find("at most 16 levels"),
            std::string::npos);
}

}  // namespace
}  // namespace kinglet::shard_index_test
