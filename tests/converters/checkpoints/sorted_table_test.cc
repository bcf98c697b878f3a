#include "converters/checkpoints/sorted_table.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/converters/checkpoints/bundle_files.h"
#include "tests/converters/checkpoints/container_files.h"
#include "tests/converters/files.h"

namespace kinglet::sorted_table_test {
namespace {

Result<std::vector<SortedTableEntry>> Read(const std::string& content) {
  const TemporaryFile file(content);
  return ReadSortedTable(*OpenInput(file.path()));
}

// The error text without "sorted table: ", or "accepted".
std::string Refused(const std::string& content) {
  const auto entries = Read(content);
  if (entries.ok()) return "accepted";
  EXPECT_EQ(entries.status().code(), KINGLET_INVALID_CHECKPOINT);
  EXPECT_TRUE(entries.status().message().starts_with("sorted table: byte "));
  return entries.status().message().substr(14);
}

// An index that TensorFlow 2.15 wrote.
TEST(SortedTable, ReadsAnIndexOfTensorFlow) {
  const auto file = OpenInput(FixturePath("tensorflow.index"));
  EXPECT_TRUE(LooksLikeSortedTable(*file));
  const auto entries = ReadSortedTable(*file);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  std::vector<std::string> keys;
  for (const SortedTableEntry& entry : *entries) keys.push_back(entry.key);
  EXPECT_EQ(
      keys,
      (std::vector<std::string>{
          "", "Model/RNN/layer_0/rnn/lstm_cell/bias", "Model/RNN/layer_0/rnn/lstm_cell/kernel",
          "Model/RNN/layer_1/rnn/lstm_cell/bias", "Model/RNN/layer_1/rnn/lstm_cell/kernel",
          "Model/global_step", "Model/kdq_emb/batch_normalization/moving_mean",
          "Model/kdq_emb/batch_normalization/moving_variance", "Model/kdq_emb/centroids_k",
          "Model/kdq_emb/centroids_v", "Model/kdq_emb/query_wemb", "Model/softmax_b",
          "Model/softmax_w", "Train/Model/Variable"}));
  EXPECT_EQ(entries->front().value, std::string("\x08\x01\x1a\x02\x08\x01", 6));
}

TEST(SortedTable, PutsKeysTogetherAcrossBlocks) {
  const auto entries =
      Read(TableBytes({BlockBytes(StoredEntry(0, "", "1") + StoredEntry(0, "apple", "2") +
                                  StoredEntry(4, "y", "") + StoredEntry(5, "ing", "4")),
                       BlockBytes(StoredEntry(0, "b", "5"))}));
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 5u);
  EXPECT_EQ((*entries)[1].key, "apple");
  EXPECT_EQ((*entries)[2].key, "apply");
  EXPECT_EQ((*entries)[3].key, "applying");
  EXPECT_EQ((*entries)[3].value, "4");
  EXPECT_EQ((*entries)[4].key, "b");
  EXPECT_TRUE(Read(TableBytes({}))->empty());
}

TEST(SortedTable, RefusalsSayWhereAndWhat) {
  const std::string sound = OneBlockTable({{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(Refused(sound), "accepted");
  EXPECT_EQ(Refused(""), "byte 0: expected 48 to 16777216 bytes, found 0");
  EXPECT_NE(Refused(sound + "x").find("expected the mark of a sorted table"), std::string::npos);
  const std::string entry = StoredEntry(0, "a", "1");
  for (const auto& [type, name] :
       {std::pair<char, std::string>{1, "snappy"}, {2, "zstd"}, {7, "compression 7"}}) {
    EXPECT_EQ(Refused(TableBytes({BlockBytes(entry, type)})),
              "byte 0: expected a block without compression, found " + name);
  }
  std::string damaged = sound;
  damaged[3] ^= 1;
  EXPECT_EQ(Refused(damaged),
            "byte 0: expected a block with its checksum, found another checksum "
            "(the file is truncated or damaged: copy or download it again)");
  const std::pair<std::string, std::string> cases[] = {
      {OneBlockTable({{"b", ""}, {"a", ""}}), "keys in ascending order, found another order"},
      {OneBlockTable({{"a", ""}, {"a", ""}}), "keys in ascending order"},
      {TableBytes({BlockBytes(entry), BlockBytes(entry)}), "keys in ascending order"},
      {TableBytes({BlockBytes("")}), "a block with an entry, found none"},
      {TableBytes({BlockBytes(StoredEntry(2, "a", "1"))}),
       "a key that shares at most 0 bytes, found 2"},
      {TableBytes({BlockBytes(std::string("\x00\x05\x01", 3) + "ab")}), "a truncated one"},
      {TableBytes({BlockBytes(std::string("\x00\x01", 2))}), "a truncated one"},
      {TableBytes({BlockBytes(entry, 0, FixedBytes(1000, 4))}),
       "restart points, found fewer bytes"},
      {TableBytes({BlockBytes(entry, 0, FixedBytes(UINT32_MAX, 4))}), "restart points"},
      {TableBytes({BlockBytes("", 0, "")}), "restart points"},
      {OneBlockTable({{std::string(5000, 'k'), ""}}), "keys of at most 4096 bytes, found 5000"}};
  for (const auto& [content, refusal] : cases) {
    EXPECT_NE(Refused(content).find(refusal), std::string::npos) << Refused(content);
  }
  // Locations outside the file.
  for (const uint64_t offset : {uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    std::string footer =
        VarintBytes(0) + VarintBytes(1) + VarintBytes(offset) + VarintBytes(UINT64_MAX - offset);
    footer.resize(40);
    EXPECT_NE(Refused(std::string(60, 'x') + footer + FixedBytes(0xdb4775248b80fb57, 8))
                  .find("expected a block inside the 60 bytes before"),
              std::string::npos);
  }
}

// Each key shares 4,000 bytes with the one before: few bytes that ask for much memory.
TEST(SortedTable, SharedKeysCannotAskForMuchMoreThanTheFile) {
  std::string entries = StoredEntry(0, std::string(4000, 'k'), "");
  for (int i = 1; i < 200; ++i) {
    entries += StoredEntry(4000, std::string(1, static_cast<char>(i)), "");
  }
  EXPECT_NE(
      Refused(TableBytes({BlockBytes(entries)})).find("16 times the file's bytes, found more"),
      std::string::npos);
}

TEST(SortedTable, BrokenFilesAreRefusedInOneLine) {
  const std::string real = Fixture("tensorflow.index");
  for (size_t size = 0; size < real.size(); size += 5) {
    EXPECT_NE(Refused(real.substr(0, size)), "accepted") << size;
  }
  // With a sound checksum, so that damage reaches the content of the block.
  const std::string entries = StoredEntry(0, "", "1") + StoredEntry(0, "apple", "22") +
                              StoredEntry(4, "y", "") + StoredEntry(5, "ing", "4444");
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    std::string changed = entries;
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const auto read = Read(TableBytes({BlockBytes(changed)}));
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
    EXPECT_TRUE(!read.ok() || read->size() <= changed.size() / 3);
  }
}

}  // namespace
}  // namespace kinglet::sorted_table_test
