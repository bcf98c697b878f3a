#include "converters/checkpoints/tensor_bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/converters/checkpoints/bundle_files.h"
#include "tests/converters/checkpoints/container_files.h"
#include "tests/converters/synthetic.h"

namespace kinglet::tensor_bundle_test {
namespace {

const std::string kIndex = "m.index";
std::string ShardName(uint64_t shard, uint64_t shards) {
  return "m.data-0000" + std::to_string(shard) + "-of-0000" + std::to_string(shards);
}

// A checkpoint of one data file, or of others that a test writes.
class TensorBundleTest : public testing::Test {
 protected:
  // Adds a variable after the others.
  void Add(const std::string& name, uint64_t type, std::vector<uint64_t> shape,
           const std::string& bytes, const std::string& more = "") {
    entries_[name] = {type, std::move(shape), 0, data_.size(), bytes, more};
    data_ += bytes;
  }
  std::string Index() const {
    std::vector<std::pair<std::string, std::string>> stored = {{"", header_}};
    for (const auto& [name, entry] : entries_) stored.emplace_back(name, entry.Stored());
    return OneBlockTable(stored);
  }
  Result<TensorBundle> Open(const std::string& index) const {
    folder_.Write(ShardName(0, 1), data_);
    return OpenTensorBundle(OpenInput(folder_.Write(kIndex, index)));
  }
  Result<TensorBundle> Open() const { return Open(Index()); }
  // The error after the index's path, or "accepted".
  std::string Refused(const std::string& index) const {
    const auto bundle = Open(index);
    if (bundle.ok()) return "accepted";
    EXPECT_EQ(bundle.status().code(), KINGLET_INVALID_CHECKPOINT) << bundle.status().message();
    const std::string path = folder_.Path(kIndex) + ": ";
    EXPECT_TRUE(bundle.status().message().starts_with(path)) << bundle.status().message();
    return bundle.status().message().substr(path.size());
  }
  std::string Refused() const { return Refused(Index()); }

  const TemporaryFolder folder_;
  std::string header_ = BundleHeader(1);
  std::map<std::string, BundleEntry> entries_;
  std::string data_;
};

TEST_F(TensorBundleTest, ReadsEveryTypeOfNumbers) {
  Add("f32", 1, {2, 1}, FixedBytes(0x3f800000, 4) + FixedBytes(0xc0000000, 4));
  Add("f64", 2, {1}, FixedBytes(0x3fe0000000000000, 8));
  Add("i32", 3, {2}, FixedBytes(7, 4) + FixedBytes(UINT32_MAX, 4));
  Add("u8", 4, {3}, std::string("\x01\x80\xff"));
  Add("i16", 5, {1}, FixedBytes(0x8000, 2));
  Add("i8", 6, {1}, std::string("\x80"));
  Add("step", 9, {}, FixedBytes(uint64_t{1} << 40, 8));
  Add("bool", 10, {2}, std::string("\x00\x01", 2));
  Add("bf16", 14, {1}, FixedBytes(0x3fc0, 2));
  Add("u16", 17, {1}, FixedBytes(0xffff, 2));
  Add("f16", 19, {1}, FixedBytes(0x3e00, 2));
  Add("u32", 22, {1}, FixedBytes(UINT32_MAX, 4));
  Add("empty", 1, {0, 5}, "");
  Add("text", 7, {1}, "abc");
  Add("_CHECKPOINTABLE_OBJECT_GRAPH", 7, {}, "graph");
  const auto bundle = Open();
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  const CheckpointTensors& tensors = bundle->tensors;
  EXPECT_EQ(tensors.size(), 14u);
  EXPECT_EQ(bundle->files.size(), 2u);
  using Shape = std::vector<uint64_t>;
  using Floats = std::vector<float>;
  using Integers = std::vector<int64_t>;
  EXPECT_EQ(Named(tensors, "f32").shape, (Shape{2, 1}));
  EXPECT_EQ(FloatsOf(tensors, "f32"), (Floats{1, -2}));
  EXPECT_EQ(FloatsOf(tensors, "f64"), Floats{0.5F});
  EXPECT_EQ(IntegersOf(tensors, "i32"), (Integers{7, -1}));
  EXPECT_EQ(IntegersOf(tensors, "u8"), (Integers{1, 128, 255}));
  EXPECT_EQ(IntegersOf(tensors, "i16"), Integers{-32768});
  EXPECT_EQ(IntegersOf(tensors, "i8"), Integers{-128});
  EXPECT_EQ(Named(tensors, "step").shape, Shape());
  EXPECT_EQ(IntegersOf(tensors, "step"), Integers{int64_t{1} << 40});
  EXPECT_EQ(IntegersOf(tensors, "bool"), (Integers{0, 1}));
  EXPECT_EQ(FloatsOf(tensors, "bf16"), Floats{1.5F});
  EXPECT_EQ(IntegersOf(tensors, "u16"), Integers{65535});
  EXPECT_EQ(FloatsOf(tensors, "f16"), Floats{1.5F});
  EXPECT_EQ(IntegersOf(tensors, "u32"), Integers{UINT32_MAX});
  EXPECT_EQ(FloatsOf(tensors, "empty"), Floats());
  EXPECT_NE(Named(tensors, "text")
                .values()
                .status()
                .message()
                .find("variable 'text': expected numbers, found type 7 of types.proto"),
            std::string::npos);
  EXPECT_EQ(*ReadFiniteRows(Named(tensors, "f32"), 1, 1), Floats{-2});
}

TEST_F(TensorBundleTest, ReadsSeveralDataFiles) {
  header_ = BundleHeader(3);
  const std::string ones = FixedBytes(0x3f800000, 4), twos = FixedBytes(0x40000000, 4);
  entries_["a"] = {1, {1}, 0, 0, ones};
  entries_["b"] = {1, {1}, 2, 4, twos};
  entries_["c"] = {1, {1}, 2, 0, ones};
  EXPECT_EQ(Open().status().code(), KINGLET_NOT_FOUND);
  folder_.Write(ShardName(0, 3), ones);
  folder_.Write(ShardName(1, 3), "");
  folder_.Write(ShardName(2, 3), ones + twos);
  const auto bundle = Open();
  ASSERT_TRUE(bundle.ok()) << bundle.status().message();
  EXPECT_EQ(bundle->files.size(), 4u);
  EXPECT_EQ(FloatsOf(bundle->tensors, "b"), std::vector<float>{2});
  EXPECT_EQ(FloatsOf(bundle->tensors, "c"), std::vector<float>{1});
}

TEST_F(TensorBundleTest, RefusalsNameTheVariable) {
  const std::string one = FixedBytes(0x3f800000, 4);
  Add("w", 1, {1}, one);
  EXPECT_EQ(Refused(), "accepted");
  data_[0] ^= 1;
  EXPECT_EQ(Refused(),
            "tensor bundle: variable 'w': expected bytes with their checksum, found another "
            "checksum (the file is truncated or damaged: copy or download it again)");
  data_[0] ^= 1;
  const auto with = [&](const BundleEntry& entry) {
    entries_["w"] = entry;
    return Refused();
  };
  EXPECT_EQ(with({1, {2}, 0, 0, one}),
            "tensor bundle: variable 'w': expected the bytes that its shape takes, found 4");
  EXPECT_NE(with({1, {UINT64_MAX}, 0, 0, one}).find("expected sizes from 0, found one below 0"),
            std::string::npos);
  EXPECT_NE(with({1, {INT64_MAX, INT64_MAX}, 0, 0, one}).find("bytes that its shape takes"),
            std::string::npos);
  EXPECT_NE(with({1, std::vector<uint64_t>(33, 1), 0, 0, one}).find("at most 32 dimensions"),
            std::string::npos);
  EXPECT_NE(with({1, {1}, 1, 0, one}).find("one of 1 data files, found number 1"),
            std::string::npos);
  EXPECT_NE(with({1, {1}, 0, 1, one}).find("inside the 4 of its data file, found 4 from 1"),
            std::string::npos);
  EXPECT_NE(with({1, {1}, 0, UINT64_MAX, one}).find("of its data file"), std::string::npos);
  EXPECT_NE(with({1, {1}, 0, 0, one, BytesField(7, "x")}).find("found one saved in slices"),
            std::string::npos);
  EXPECT_NE(with({1, {1}, 0, 0, one, BytesField(2, VarintField(3, 1))}).find("an unknown one"),
            std::string::npos);
  EXPECT_NE(with({1, {1}, 0, 0, one, "\x08"}).find("a message, found other bytes"),
            std::string::npos);
  entries_["w"] = entries_["v"] = {1, {1}, 0, 0, one};
  EXPECT_EQ(Refused(), "tensor bundle: variable 'w': expected bytes of its own, found some of 'v'");
}

TEST_F(TensorBundleTest, HeadersThatCannotBeRead) {
  const auto with = [&](const std::string& header) {
    header_ = header;
    return Refused();
  };
  EXPECT_EQ(with(BundleHeader(1, VarintField(2, 1))),
            "tensor bundle: header: expected little-endian values, found big-endian ones");
  EXPECT_NE(with(BundleHeader(0)).find("1 to 512 data files, found 0"), std::string::npos);
  EXPECT_NE(with(BundleHeader(1U << 31U)).find("found 2147483648"), std::string::npos);
  EXPECT_NE(with(BundleHeader(1, BytesField(3, VarintField(2, 9)))).find("one for version 9"),
            std::string::npos);
  EXPECT_NE(with("\x08").find("header: expected a message"), std::string::npos);
  EXPECT_EQ(Refused(OneBlockTable({{"w", ""}})), "tensor bundle: header: expected one, found none");
  EXPECT_EQ(Refused(TableBytes({})), "tensor bundle: header: expected one, found none");
  EXPECT_NE(Refused("nothing").find("sorted table: byte 0"), std::string::npos);
}

TEST_F(TensorBundleTest, IsRecognisedByItsEnd) {
  const std::string content = Index();
  EXPECT_TRUE(LooksLikeTensorBundle(*OpenInput(folder_.Write("a.index", content))));
  EXPECT_FALSE(LooksLikeTensorBundle(*OpenInput(folder_.Write("a.ldb", content))));
  EXPECT_FALSE(LooksLikeTensorBundle(*OpenInput(folder_.Write("b.index", content + "x"))));
  EXPECT_FALSE(LooksLikeTensorBundle(*OpenInput(folder_.Write("c.index", ""))));
}

TEST_F(TensorBundleTest, BrokenIndexesAndShortDataAreRefusedInOneLine) {
  Add("a", 1, {3, 2}, std::string(24, '\x01'));
  Add("b", 9, {}, std::string(8, '\x02'));
  const std::string index = Index(), data = data_;
  for (size_t size = 0; size < index.size(); size += 3) {
    EXPECT_NE(Refused(index.substr(0, size)), "accepted");
  }
  for (size_t size = 0; size < data.size(); ++size) {
    data_ = data.substr(0, size);
    EXPECT_NE(Refused(index), "accepted");
  }
  data_ = data;
  std::mt19937_64 random(5);
  for (int i = 0; i < 300; ++i) {
    // With sound checksums of the blocks, so that damage reaches their content.
    auto changed = entries_["a"].Stored();
    changed[random() % changed.size()] = static_cast<char>(random());
    const auto bundle = Open(OneBlockTable({{"", header_}, {"a", changed}}));
    if (bundle.ok()) {
      ReadEverything(bundle->tensors, 24);
    } else {
      EXPECT_EQ(bundle.status().message().find('\n'), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace kinglet::tensor_bundle_test
