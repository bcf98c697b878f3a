#include "converters/checkpoints/elements.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kinglet::elements_test {
namespace {

template <class Stored>
StoredElements Elements(ElementType type, const std::vector<Stored>& stored) {
  std::vector<std::byte> bytes(stored.size() * sizeof(Stored));
  if (!bytes.empty()) std::memcpy(bytes.data(), stored.data(), bytes.size());
  return {"file", "place", type, stored.size(),
          [bytes](uint64_t offset, uint64_t count, const ByteSink& sink) {
            EXPECT_LE(offset + count, bytes.size());
            sink(std::span(bytes).subspan(offset, count));
            return Status();
          }};
}

std::vector<float> Floats(const StoredElements& elements) {
  return ReadFloats(elements, WholeView({elements.count})).value();
}
std::vector<int64_t> Integers(const StoredElements& elements) {
  return ReadIntegers(elements, WholeView({elements.count})).value();
}

TEST(Elements, FloatTypesBecomeFloat32) {
  EXPECT_EQ(Floats(Elements<double>(ElementType::kF64, {1.0 / 3, -2.5, 1e-300})),
            (std::vector<float>{0.33333334F, -2.5F, 0.0F}));
  EXPECT_EQ(Floats(Elements<float>(ElementType::kF32, {0.1F})), (std::vector<float>{0.1F}));
  // IEEE 754 half: 1, the smallest, the largest.
  EXPECT_EQ(Floats(Elements<uint16_t>(ElementType::kF16, {0x3C00, 0x0001, 0x7BFF})),
            (std::vector<float>{1.0F, 5.9604645e-8F, 65504.0F}));
  EXPECT_EQ(Floats(Elements<uint16_t>(ElementType::kBF16, {0x3F80, 0xC049})),
            (std::vector<float>{1.0F, -3.140625F}));
}

// The largest numbers, the smallest ones and NaN of "OCP 8-bit Floating Point Specification", of
// its scale type e8m0, and of the types without infinities (Noune et al., 2022).
TEST(Elements, FloatsOfAByte) {
  const auto floats = [](ElementType type, const std::vector<uint8_t>& bytes) {
    return Floats(Elements<uint8_t>(type, bytes));
  };
  EXPECT_EQ(floats(ElementType::kF8E4M3, {0x7E, 0xFE, 0x38, 0x08, 0x07, 0x01, 0x00}),
            (std::vector<float>{448, -448, 1, 0x1p-6F, 7 * 0x1p-9F, 0x1p-9F, 0}));
  EXPECT_EQ(floats(ElementType::kF8E5M2, {0x7B, 0x3C, 0x04, 0x03, 0x01, 0xFC}),
            (std::vector<float>{57344, 1, 0x1p-14F, 3 * 0x1p-16F, 0x1p-16F,
                                -std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(floats(ElementType::kF8E4M3Fnuz, {0x7F, 0x40, 0x01}),
            (std::vector<float>{240, 1, 0x1p-10F}));
  EXPECT_EQ(floats(ElementType::kF8E5M2Fnuz, {0x7F, 0x40, 0x01}),
            (std::vector<float>{57344, 1, 0x1p-17F}));
  EXPECT_EQ(floats(ElementType::kF8E8M0, {0x7F, 0x00, 0xFE}),
            (std::vector<float>{1, 0x1p-127F, 0x1p127F}));
  for (const auto& [type, byte] : {std::pair<ElementType, uint8_t>{ElementType::kF8E4M3, 0x7F},
                                   {ElementType::kF8E4M3, 0xFF},
                                   {ElementType::kF8E5M2, 0x7D},
                                   {ElementType::kF8E4M3Fnuz, 0x80},
                                   {ElementType::kF8E5M2Fnuz, 0x80},
                                   {ElementType::kF8E8M0, 0xFF}}) {
    EXPECT_TRUE(std::isnan(floats(type, {byte})[0])) << ElementName(type);
    EXPECT_FALSE(ReadIntegers(Elements<uint8_t>(type, {byte}), WholeView({1})).ok());
  }
}

TEST(Elements, IntegersAreExact) {
  const int64_t odd = (int64_t{1} << 31) + 1;  // not exact in float32
  const auto longs = Elements<int64_t>(ElementType::kI64, {odd, -odd, INT64_MIN});
  EXPECT_EQ(Integers(longs), (std::vector<int64_t>{odd, -odd, INT64_MIN}));
  EXPECT_EQ(Floats(longs)[0], 2147483648.0F);
  EXPECT_EQ(Integers(Elements<int32_t>(ElementType::kI32, {INT32_MIN, 16777217})),
            (std::vector<int64_t>{INT32_MIN, 16777217}));
  EXPECT_EQ(Integers(Elements<int16_t>(ElementType::kI16, {-32768})),
            (std::vector<int64_t>{-32768}));
  EXPECT_EQ(Integers(Elements<int8_t>(ElementType::kI8, {-128, 127})),
            (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(Integers(Elements<uint64_t>(ElementType::kU64, {4294967296})),
            (std::vector<int64_t>{4294967296}));
  EXPECT_EQ(Integers(Elements<uint32_t>(ElementType::kU32, {UINT32_MAX})),
            (std::vector<int64_t>{4294967295}));
  EXPECT_EQ(Integers(Elements<uint16_t>(ElementType::kU16, {65535})),
            (std::vector<int64_t>{65535}));
  EXPECT_EQ(Integers(Elements<uint8_t>(ElementType::kU8, {255})), (std::vector<int64_t>{255}));
  EXPECT_EQ(Integers(Elements<uint8_t>(ElementType::kBool, {0, 1, 7})),
            (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(Floats(Elements<uint8_t>(ElementType::kBool, {0, 7})), (std::vector<float>{0, 1}));
}

TEST(Elements, FloatTypesHaveNoIntegers) {
  for (const ElementType type :
       {ElementType::kF64, ElementType::kF32, ElementType::kF16, ElementType::kBF16}) {
    StoredElements elements = Elements<uint64_t>(type, {0});
    EXPECT_EQ(ReadIntegers(elements, WholeView({1})).status().message(),
              "file: place: expected integers, found elements of a float type");
  }
}

TEST(Elements, ViewsPickTheirEntries) {
  const auto ramp = Elements<uint8_t>(ElementType::kU8, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  using Values = std::vector<int64_t>;
  EXPECT_EQ(*ReadIntegers(ramp, WholeView({3, 4})), (Values{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  // In Fortran order entry [i, j, k] is element i + 2 (j + 2 k).
  EXPECT_EQ(*ReadIntegers(ramp, WholeView({2, 2, 3}, true)),
            (Values{0, 4, 8, 2, 6, 10, 1, 5, 9, 3, 7, 11}));
  EXPECT_EQ(*ReadIntegers(ramp, {1, {2, 2}, {6, 2}}), (Values{1, 3, 7, 9}));
  EXPECT_EQ(*ReadIntegers(ramp, {11, {}, {}}), (Values{11}));
  EXPECT_EQ(*ReadIntegers(ramp, {3, {4}, {0}}), (Values{3, 3, 3, 3}));
  EXPECT_EQ(*ReadIntegers(ramp, {99, {0, 5}, {5, 1}}), Values());
}

// For all orders of the strides, gaps between them, and ends of pieces.
TEST(Elements, StridedViewsComeInPieces) {
  std::vector<uint16_t> stored(4000);
  for (size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<uint16_t>(i);
  for (const uint64_t piece : {2U, 14U, 1024U}) {
    StoredElements elements = Elements(ElementType::kU16, stored);
    elements.read = [whole = elements.read, piece](uint64_t offset, uint64_t bytes,
                                                   const ByteSink& sink) -> Status {
      for (uint64_t done = 0; done < bytes; done += piece) {
        KINGLET_RETURN_IF_ERROR(whole(offset + done, std::min(piece, bytes - done), sink));
      }
      return {};
    };
    for (const StridedView& view :
         {StridedView{5, {6, 7, 8}, {8, 48, 1}}, StridedView{0, {6, 7, 8}, {1, 500, 6}},
          StridedView{3, {9, 1, 5}, {2, 77, 100}}, StridedView{0, {1, 40}, {0, 3}},
          // Dimensions that interleave, and elements that belong to two entries.
          StridedView{0, {4, 5}, {3, 2}}, StridedView{1, {3, 4}, {0, 1}},
          StridedView{0, {10, 10}, {7, 7}}}) {
      std::vector<int64_t> expected;
      const bool deep = view.shape.size() == 3;
      for (uint64_t i = 0; i < view.shape[0]; ++i) {
        for (uint64_t j = 0; j < view.shape[1]; ++j) {
          for (uint64_t k = 0; k < (deep ? view.shape[2] : 1); ++k) {
            expected.push_back(static_cast<int64_t>(view.offset + i * view.strides[0] +
                                                    j * view.strides[1] +
                                                    (deep ? k * view.strides[2] : 0)));
          }
        }
      }
      EXPECT_EQ(ReadIntegers(elements, view).value(), expected);
    }
  }
}

TEST(Elements, NegatedViewsHaveTheOtherSign) {
  StoredElements elements = Elements<float>(ElementType::kF32, {1, -2, 0, 3});
  elements.negated = true;
  EXPECT_EQ(Floats(elements), (std::vector<float>{-1, 2, 0, -3}));
  EXPECT_EQ(*ReadFloats(elements, {0, {2, 2}, {1, 2}}), (std::vector<float>{-1, 0, 2, -3}));
  EXPECT_EQ(*ReadFloats(elements, {0, {2, 2}, {1, 1}}), (std::vector<float>{-1, 2, 2, 0}));
}

TEST(Elements, RowsOfAView) {
  const auto ramp = Elements<uint8_t>(ElementType::kU8, {0, 1, 2, 3, 4, 5});
  const StridedView columns = WholeView({3, 2}, true);
  EXPECT_EQ(*ReadIntegers(ramp, RowsOf(columns, 1, 2)), (std::vector<int64_t>{1, 4, 2, 5}));
  EXPECT_EQ(*ReadIntegers(ramp, RowsOf(columns, 3, 0)), std::vector<int64_t>());
  EXPECT_EQ(*ReadIntegers(ramp, RowsOf(WholeView({6}), 4, 1)), std::vector<int64_t>{4});
  // A stride that overflows must not wrap around to an element.
  EXPECT_FALSE(ReadIntegers(ramp, RowsOf({0, {3, 1}, {uint64_t{1} << 63, 1}}, 2, 1)).ok());
}

TEST(Elements, ViewsRepeatElements) {
  const auto two = Elements<uint8_t>(ElementType::kU8, {3, 4});
  EXPECT_EQ(*ReadIntegers(two, {0, {2, 3}, {1, 0}}), (std::vector<int64_t>{3, 3, 3, 4, 4, 4}));
  EXPECT_EQ(*ReadFloats(two, {1, {3}, {0}}), (std::vector<float>{4, 4, 4}));
}

TEST(Elements, ViewsThatLeaveTheElementsAreRefused) {
  const auto two = Elements<uint8_t>(ElementType::kU8, {0, 1});
  constexpr uint64_t kHuge = uint64_t{1} << 63;
  for (const StridedView& view :
       {StridedView{0, {3}, {1}}, StridedView{2, {1}, {1}}, StridedView{1, {2}, {1}},
        StridedView{0, {2}, {2}}, StridedView{kHuge, {1}, {1}},
        StridedView{0, {kMaxRepeated + 1}, {0}}, StridedView{0, {2, 2}, {kHuge, kHuge}},
        StridedView{0, {kHuge, 4}, {0, 0}}, StridedView{0, {2}, {1, 1}},
        StridedView{0, {2}, {UINT64_MAX}}}) {
    EXPECT_EQ(ReadIntegers(two, view).status().code(), KINGLET_INVALID_CHECKPOINT);
    EXPECT_EQ(ReadFloats(two, view).status().code(), KINGLET_INVALID_CHECKPOINT);
  }
}

TEST(Elements, ErrorsOfReadingArePassedOn) {
  StoredElements broken = Elements<uint8_t>(ElementType::kU8, {1});
  broken.read = [](uint64_t, uint64_t, const ByteSink&) {
    return Status(KINGLET_IO_ERROR, "no disk");
  };
  EXPECT_EQ(ReadFloats(broken, WholeView({1})).status().message(), "no disk");
}

TEST(Elements, CountsOverflowIntoTheLargestNumber) {
  EXPECT_EQ(CountEntries({}), 1U);
  EXPECT_EQ(CountEntries({3, 5}), 15U);
  EXPECT_EQ(CountEntries({uint64_t{1} << 40, uint64_t{1} << 40}), UINT64_MAX);
  EXPECT_EQ(CountEntries({uint64_t{1} << 40, uint64_t{1} << 40, 0}), 0U);
}

TEST(ElementTypes, AreFoundByTheNamesOfAContainer) {
  const std::vector<NamedElementType> types = {
      {"F64", ElementType::kF64}, {"F32", ElementType::kF32}, {"BOOL", ElementType::kBool}};
  EXPECT_EQ(FindElementType(types, "BOOL"), ElementType::kBool);
  EXPECT_EQ(FindElementType(types, "bool"), std::nullopt);
  EXPECT_EQ(ListNames(types), "F64, F32 or BOOL");
  EXPECT_EQ(ListNames(std::span(types).first(1)), "F64");
}

}  // namespace
}  // namespace kinglet::elements_test
