// Vector functions of attention on every instruction set of this machine, against numbers worked
// out by hand or with exact arithmetic. tests/kernels/conformance_test.cc compares them with ref.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/numerics.h"
#include "kernels/ref/cache.h"
#include "tests/kernels/cpu/vector_fixture.h"
#include "tests/support/model_builder.h"

namespace kinglet::cpu::vector_attention_test {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class Vector : public testing::TestWithParam<Target> {
 protected:
  const VectorFunctions* functions_ = FindVectorFunctions(GetParam());
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Vector);

TEST_P(Vector, LargestPrefersTheFirstOfEqualZerosAndIgnoresLaterNaN) {
  for (const size_t n : {1u, 2u, 15u, 16u, 17u, 64u, 65u, 200u}) {
    for (size_t at = 0; at < n; ++at) {
      std::vector<float> x(n, -1.0f);
      x[at] = -0.0f;
      if (at + 1 < n) x[n - 1] = 0.0f;
      EXPECT_TRUE(std::signbit(functions_->largest(x.data(), n))) << n << " " << at;
      x.assign(n, kNaN);
      x[0] = -3.0f;
      x[at] = 5.0f;
      EXPECT_EQ(functions_->largest(x.data(), n), 5.0f) << n << " " << at;
    }
    std::vector<float> x(n, 7.0f);
    x[0] = kNaN;
    EXPECT_TRUE(std::isnan(functions_->largest(x.data(), n)));
  }
}

TEST_P(Vector, IntegersAddUpExactly) {
  for (const size_t count : {0u, 1u, 3u, 4u, 5u, 9u}) {
    for (const size_t n : {1u, 15u, 16u, 17u, 24u, 32u, 33u, 47u, 63u, 64u, 257u}) {
      std::vector<int16_t> rows(count * (n + 5)), x(n);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int16_t>(i * 37 % 511) - 255;
      for (size_t i = 0; i < n; ++i) x[i] = static_cast<int16_t>(i * 101 % 511) - 255;
      std::vector<float> out(count + 1, 7.0f);
      const CodeDots dots = {x.data(), out.data()};
      functions_->integer_dots({rows.data(), n + 5, count}, &dots, 1, n, 0.5f, 2.0f);
      for (size_t r = 0; r < count; ++r) {
        const auto begin = rows.begin() + static_cast<ptrdiff_t>(r * (n + 5));
        // Below 2^24, so exact in float.
        EXPECT_EQ(out[r], std::inner_product(x.begin(), x.end(), begin, 0.0f)) << n << " " << r;
      }
      EXPECT_EQ(out[count], 7.0f);
    }
  }
}

// Vectors of n codes in x, each with its part of `out`.
std::vector<CodeDots> DotsOf(const std::vector<int16_t>& x, size_t n, std::vector<float>& out) {
  const size_t vectors = x.size() / n, rows = out.size() / vectors;
  std::vector<CodeDots> dots;
  for (size_t v = 0; v < vectors; ++v) dots.push_back({x.data() + v * n, out.data() + v * rows});
  return dots;
}
// The products of each vector with each row of n codes. They are below 2^24, so exact in float.
std::vector<float> Products(const std::vector<int16_t>& rows, const std::vector<int16_t>& x,
                            size_t n) {
  std::vector<float> products;
  const auto width = static_cast<ptrdiff_t>(n);
  for (auto vector = x.begin(); vector != x.end(); vector += width) {
    for (auto row = rows.begin(); row != rows.end(); row += width) {
      products.push_back(std::inner_product(vector, vector + width, row, 0.0f));
    }
  }
  return products;
}

TEST_P(Vector, DotsOfSeveralVectorsAreThoseOfEach) {
  for (const size_t vectors : {2u, 3u, 4u, 5u, 8u, 9u}) {
    for (const size_t n : {1u, 15u, 16u, 24u, 31u, 32u, 47u, 64u, 257u}) {
      constexpr size_t kRows = 7;
      std::vector<int16_t> rows(kRows * n), x(vectors * n);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int16_t>(i * 37 % 511) - 255;
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int16_t>(i * 101 % 511) - 255;
      std::vector<float> out(vectors * kRows);
      const std::vector<CodeDots> dots = DotsOf(x, n, out);
      functions_->integer_dots({rows.data(), n, kRows}, dots.data(), vectors, n, 0.25f, 4.0f);
      EXPECT_EQ(out, Products(rows, x, n)) << vectors << " " << n;
    }
  }
}

TEST_P(Vector, DotsOfRowsInNineBitsAreThoseOfTheirCodes) {
  for (const size_t n : {1u, 15u, 16u, 17u, 63u, 64u, 65u, 256u, 2100u, 8192u}) {
    for (const size_t count : {0u, 1u, 4u, 7u}) {
      for (const size_t vectors : {1u, 4u, 5u, 8u, 11u}) {
        const NineBitRow row{n};
        std::vector<int16_t> codes(count * n), x(vectors * n);
        for (size_t i = 0; i < codes.size(); ++i) {
          codes[i] = static_cast<int16_t>(static_cast<int>(i * 37 % 512) - 256);
        }
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int16_t>(i * 101 % 11) - 5;
        // As small as possible, so that a sanitizer sees a row that is read past its end.
        std::vector<uint8_t> rows(count * row.Bytes());
        for (size_t r = 0; r < count; ++r) {
          row.Store([&](uint64_t i) { return codes[r * n + i]; }, rows.data() + r * row.Bytes());
        }
        std::vector<float> out(vectors * count);
        const std::vector<CodeDots> dots = DotsOf(x, n, out);
        functions_->nine_bit_dots({rows.data(), row, count}, dots.data(), vectors, 0.25f, 4.0f);
        EXPECT_EQ(out, Products(codes, x, n)) << n << " " << count << " " << vectors;
      }
    }
  }
}

// One of the three parts of each row, as in a ring of three heads.
struct CodedParts {
  NineBitRow row;
  size_t first;  // code of the part
  std::vector<uint8_t> bytes;
  std::vector<int16_t> codes;  // the part in each row

  CodedParts(size_t n, size_t part, size_t count) : row{3 * n}, first(part * n) {
    bytes.resize(count * row.Bytes());
    for (size_t r = 0; r < count; ++r) {
      const auto code = [&](uint64_t i) {
        return static_cast<int16_t>(static_cast<int>((r * row.count + i) * 37 % 512) - 256);
      };
      row.Store(code, bytes.data() + r * row.Bytes());
      for (size_t i = 0; i < n; ++i) codes.push_back(code(first + i));
    }
  }
  NineBitParts Parts() const {
    return {bytes.data() + first, bytes.data() + row.Padded() + first / 8, row.Bytes(),
            bytes.size() / row.Bytes()};
  }
};

TEST_P(Vector, PartsOfRowsInNineBitsAreMultipliedAddedUpAndLoaded) {
  for (const size_t n : {8u, 16u, 24u, 32u, 40u, 64u, 72u, 1024u}) {
    for (const size_t count : {0u, 1u, 2u, 3u, 97u}) {
      for (const size_t part : {0u, 1u, 2u}) {
        const CodedParts parts(n, part, count);
        std::vector<int16_t> x(5 * n), weights(count);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int16_t>(i * 101 % 11) - 5;
        for (size_t i = 0; i < count; ++i) weights[i] = static_cast<int16_t>(i * 37 % 255) - 100;

        std::vector<float> out(5 * count);
        const std::vector<CodeDots> dots = DotsOf(x, n, out);
        functions_->nine_bit_part_dots(parts.Parts(), dots.data(), 5, n, 0.25f, 4.0f);
        EXPECT_EQ(out, Products(parts.codes, x, n)) << n << " " << count << " " << part;

        std::vector<float> sums(n + 1, 7.0f);
        functions_->weighted_nine_bits(parts.Parts(), weights.data(), 0.25f, n, sums.data());
        for (size_t c = 0; c < n; ++c) {
          int32_t sum = 0;
          for (size_t r = 0; r < count; ++r) sum += parts.codes[r * n + c] * weights[r];
          ASSERT_EQ(sums[c], static_cast<float>(sum) * 0.25f) << n << " " << count << " " << c;
        }
        EXPECT_EQ(sums[n], 7.0f);

        std::vector<int16_t> loaded(count * n + 1, 77);
        functions_->load_nine_bits(parts.Parts(), n, loaded.data());
        EXPECT_EQ(loaded.back(), 77);
        loaded.pop_back();
        EXPECT_EQ(loaded, parts.codes) << n << " " << count << " " << part;
      }
    }
  }
}

TEST_P(Vector, APartThatIsStoredLeavesTheOthers) {
  for (const size_t n : {8u, 16u, 24u, 32u, 40u, 1024u}) {
    for (const size_t part : {0u, 1u, 2u}) {
      CodedParts parts(n, part, 1);
      std::vector<int16_t> codes(n);
      for (size_t i = 0; i < n; ++i)
        codes[i] = static_cast<int16_t>(static_cast<int>(i * 97 % 512) - 256);
      std::vector<uint8_t> expected = parts.bytes;
      for (size_t i = 0; i < n; ++i) parts.row.Set(expected.data(), parts.first + i, codes[i]);
      uint8_t* const signs = parts.bytes.data() + parts.row.Padded() + parts.first / 8;
      functions_->store_nine_bits(codes.data(), n, parts.bytes.data() + parts.first, signs);
      EXPECT_EQ(parts.bytes, expected) << n << " " << part;
    }
  }
}

TEST_P(Vector, WeightedCodesAddUpRowsThatLieApart) {
  for (const size_t width : {1u, 5u, 8u, 12u, 16u, 24u, 32u, 33u, 70u}) {
    for (const size_t count : {0u, 1u, 2u, 3u, 97u}) {
      const size_t stride = width + 3;
      std::vector<int16_t> values(count * stride), codes(count);
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int16_t>(i % 509) - 254;
      for (size_t i = 0; i < count; ++i) codes[i] = static_cast<int16_t>(i * 37 % 255) - 100;
      std::vector<float> out(width + 1, 7.0f);
      functions_->weighted_codes({values.data(), stride, count}, codes.data(), 0.25f, width,
                                 out.data());
      for (size_t c = 0; c < width; ++c) {
        int32_t sum = 0;
        for (size_t r = 0; r < count; ++r) sum += values[r * stride + c] * codes[r];
        ASSERT_EQ(out[c], static_cast<float>(sum) * 0.25f) << width << " " << count << " " << c;
      }
      EXPECT_EQ(out[width], 7.0f);
    }
  }
}

TEST_P(Vector, SumsOfPowersOfTwoAreExact) {
  // exp(0) = 1 exactly, so a sum of n of them is n however it is ordered.
  for (const size_t n : {0u, 1u, 31u, 32u, 33u, 1024u, 1025u, 5000u}) {
    std::vector<float> x(n, 100.0f);  // its own reference
    std::vector<float> largest(SumTiles(n)), sums(SumTiles(n));
    for (size_t b = 0; b < largest.size(); ++b) {
      const size_t first = b * kSumTile;
      largest[b] = functions_->largest(&x[first], std::min<size_t>(n - first, kSumTile));
    }
    functions_->sum_logit_tiles(x.data(), n, n < kShortSum, largest.data(), {}, sums.data());
    for (size_t b = 0; b < sums.size(); ++b) {
      EXPECT_EQ(largest[b], 100.0f);
      EXPECT_EQ(sums[b], static_cast<float>(std::min<uint64_t>(n - b * kSumTile, kSumTile)));
    }
    if (n == 0) continue;
    EXPECT_EQ(functions_->cache_weights(x.data(), n), static_cast<float>(n));
    EXPECT_EQ(std::accumulate(x.begin(), x.end(), 0.0f), static_cast<float>(n));
  }
}

TEST_P(Vector, CacheWeightsAreThoseOfTheReference) {
  TestRandom random(9);
  for (const size_t n : {1u, 7u, 16u, 100u, 3001u, 9000u}) {
    for (const float nan : {0.0f, std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(n);
      for (float& logit : x) logit = -40 * static_cast<float>(random.Unit());
      x[n / 2] += nan;
      std::vector<float> expected = x;
      const float sum = ref::WeighPairs(expected.data(), n);
      const float found = functions_->cache_weights(x.data(), n);
      EXPECT_EQ(std::isnan(found), std::isnan(nan));
      if (std::isnan(nan)) continue;
      EXPECT_EQ(found, sum);
      EXPECT_EQ(x, expected);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, Vector, testing::ValuesIn(VectorTargets()),
                         [](const auto& target) { return std::string(TargetName(target.param)); });

}  // namespace
}  // namespace kinglet::cpu::vector_attention_test
