#include "converters/checkpoints/checkpoint_tensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kinglet::checkpoint_tensors_test {
namespace {

Result<std::vector<float>> Read(std::vector<float> values, std::vector<uint64_t> shape) {
  return ReadFinite(
      {"w", std::move(shape), [&]() -> Result<std::vector<float>> { return values; }});
}

TEST(HasTensor, FindsNamesAndPrefixes) {
  const CheckpointTensors weights = {{"layers.0.weight", {}, {}}, {"bias", {}, {}}};
  EXPECT_TRUE(HasTensor(weights, "bias"));
  EXPECT_FALSE(HasTensor(weights, "layers.0"));
  EXPECT_TRUE(HasTensorUnder(weights, "layers.0"));
  EXPECT_FALSE(HasTensorUnder(weights, "weight"));
}

TEST(ReadFinite, GivesTheValues) {
  const auto values = Read({1, -2, 3, 4, 5, 6}, {2, 3});
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(*values, (std::vector<float>{1, -2, 3, 4, 5, 6}));
  EXPECT_EQ(Read({7}, {}).value(), std::vector<float>{7});
  EXPECT_TRUE(Read({}, {0, 4}).value().empty());
}

TEST(ReadFinite, NamesTheEntryThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Read({1, 2, NAN}, {3}).status().message(),
            "checkpoint: tensor w, entry 2: expected a finite number, found NaN");
  EXPECT_EQ(Read({infinity}, {1}).status().message(),
            "checkpoint: tensor w, entry 0: expected a finite number, found infinity");
  EXPECT_EQ(Read({0, -infinity, NAN}, {3}).status().message(),
            "checkpoint: tensor w, entry 1: expected a finite number, found -infinity");
}

TEST(ReadFinite, PassesFailuresOn) {
  const CheckpointTensor broken{
      "w", {1}, []() -> Result<std::vector<float>> { return Status(KINGLET_IO_ERROR, "no disk"); }};
  EXPECT_EQ(ReadFinite(broken).status().code(), KINGLET_IO_ERROR);
  EXPECT_EQ(Read({1, 2}, {3}).status().code(), KINGLET_INVALID_CHECKPOINT);
}

TEST(ReadFiniteRows, WithOrWithoutTheOthers) {
  CheckpointTensor tensor{"w", {3, 2}, []() -> Result<std::vector<float>> {
                            return {{0, 1, 2, 3, 4, NAN}};
                          }};
  // Without `rows` all values are read, so a value that is not finite in another row is refused
  // too.
  EXPECT_FALSE(ReadFiniteRows(tensor, 0, 2).ok());
  uint64_t rows = 2;
  tensor.rows = [&](uint64_t first, uint64_t count) -> Result<std::vector<float>> {
    EXPECT_EQ(count, 2U);
    const auto start = static_cast<float>(2 * first);
    std::vector<float> values = {start, start + 1, start + 2, first == 0 ? 3 : NAN};
    values.resize(2 * rows);
    return values;
  };
  EXPECT_EQ(ReadFiniteRows(tensor, 0, 2).value(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(ReadFiniteRows(tensor, 1, 2).status().message(),
            "checkpoint: tensor w, entry 5: expected a finite number, found NaN");
  rows = 1;
  EXPECT_EQ(ReadFiniteRows(tensor, 0, 2).status().message(),
            "checkpoint: tensor w: expected 4 values in 2 rows, found 2");
  tensor.rows = nullptr;
  tensor.values = []() -> Result<std::vector<float>> { return {{0, 1, 2, 3, 4, 5}}; };
  EXPECT_EQ(ReadFiniteRows(tensor, 1, 1).value(), (std::vector<float>{2, 3}));
  EXPECT_TRUE(ReadFiniteRows(tensor, 3, 0).value().empty());
}

TEST(SameParameter, SharesAPlaceOrEveryBit) {
  int reads = 0;
  const auto make = [&reads](std::vector<float> values, const std::string& place) {
    CheckpointTensor tensor{"w", {values.size()}, {}};
    tensor.values = [values, &reads]() -> Result<std::vector<float>> {
      ++reads;
      return values;
    };
    tensor.place = place;
    return tensor;
  };
  EXPECT_TRUE(*SameParameter(make({1, 2}, "a"), make({1, 2}, "a")));
  EXPECT_FALSE(*SameParameter(make({1, 2}, "a"), make({1, 2, 3}, "a")));
  EXPECT_EQ(reads, 0);
  EXPECT_TRUE(*SameParameter(make({1, 2}, "a"), make({1, 2}, "b")));
  EXPECT_TRUE(*SameParameter(make({1, 2}, ""), make({1, 2}, "")));
  EXPECT_FALSE(*SameParameter(make({1, 2}, ""), make({1, 3}, "")));
  EXPECT_FALSE(*SameParameter(make({0.0F}, ""), make({-0.0F}, "")));
  EXPECT_FALSE(SameParameter(make({NAN}, ""), make({NAN}, "")).ok());
}

TEST(ReadIntegers, GivesThemExact) {
  CheckpointTensor tensor{"codes", {2, 1}, {}, {}};
  EXPECT_EQ(ReadIntegers(tensor).status().message(),
            "checkpoint: tensor codes: expected integers, found floats");
  tensor.integers = []() -> Result<std::vector<int64_t>> { return {{16777217, -2147483649}}; };
  EXPECT_EQ(ReadIntegers(tensor).value(), (std::vector<int64_t>{16777217, -2147483649}));
  tensor.shape = {3};
  EXPECT_EQ(ReadIntegers(tensor).status().message(),
            "checkpoint: tensor codes: expected 3 values, found 2");
  tensor.integers = []() -> Result<std::vector<int64_t>> {
    return Status(KINGLET_IO_ERROR, "no disk");
  };
  EXPECT_EQ(ReadIntegers(tensor).status().code(), KINGLET_IO_ERROR);
}

TEST(StoredTensor, ReadsItsView) {
  const StoredElements elements = {
      "file", "place", ElementType::kU8, 4,
      [](uint64_t offset, uint64_t bytes, const ByteSink& sink) {
        std::vector<std::byte> stored = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
        sink(std::span(stored).subspan(offset, bytes));
        return Status();
      }};
  const CheckpointTensor tensor = StoredTensor("t", elements, WholeView({2, 2}, true));
  EXPECT_EQ(tensor.name, "t");
  EXPECT_EQ(tensor.shape, (std::vector<uint64_t>{2, 2}));
  EXPECT_EQ(ReadFinite(tensor).value(), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(ReadIntegers(tensor).value(), (std::vector<int64_t>{1, 3, 2, 4}));
  EXPECT_EQ(ReadFiniteRows(tensor, 1, 1).value(), (std::vector<float>{2, 4}));
}

// For tensors that can be read in parts, and for those that cannot.
TEST(ReadFiniteTransposed, PutsPartsTogether) {
  for (const uint64_t rows : {1U, 7U, 8U, 9U, 33U}) {
    for (const bool in_parts : {true, false}) {
      constexpr uint64_t kColumns = 3;
      std::vector<float> values(rows * kColumns);
      std::iota(values.begin(), values.end(), 0.0F);
      uint64_t most = 0;
      CheckpointTensor tensor = {"t", {rows, kColumns}, [values] { return values; }};
      if (in_parts) {
        tensor.rows = [&](uint64_t first, uint64_t count) -> Result<std::vector<float>> {
          most = std::max(most, count);
          const auto begin = values.begin() + static_cast<ptrdiff_t>(first * kColumns);
          return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(count * kColumns));
        };
      }
      const auto transposed = ReadFiniteTransposed(tensor);
      ASSERT_TRUE(transposed.ok());
      ASSERT_EQ(transposed->size(), values.size());
      for (uint64_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ((*transposed)[i % kColumns * rows + i / kColumns], values[i]);
      }
      EXPECT_LE(most, std::max<uint64_t>(1, rows / 8));
    }
  }
  const CheckpointTensor broken = {
      "t", {2, 2}, [] { return Result<std::vector<float>>(Status(KINGLET_IO_ERROR, "no disk")); }};
  EXPECT_EQ(ReadFiniteTransposed(broken).status().message(), "no disk");
}

TEST(CheckpointTensors, AreFoundByName) {
  const CheckpointTensors weights = {{"a", {1}, {}}, {"b", {}, {}}};
  EXPECT_TRUE(HasTensor(weights, "b"));
  EXPECT_FALSE(HasTensor(weights, "c"));
}

}  // namespace
}  // namespace kinglet::checkpoint_tensors_test
