#include "runtime/compress/range_coder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "converters/splitmix.h"

namespace kinglet::compress::range_coder_test {
namespace {

TEST(RangeCoder, ReadsBitsAndIntervalsAgainInTheBitsThatTheyHave) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SplitMix64 random(seed);
    struct Decision {
      bool is_bit, bit;
      uint32_t one;
      Interval interval;
    };
    std::vector<Decision> decisions(random.Below(400));
    std::vector<std::byte> bytes;
    RangeWriter writer(bytes);
    double bits = 0;
    for (Decision& decision : decisions) {
      decision.is_bit = random.Below(4) != 0;
      if (decision.is_bit) {
        // Often next to certain, where carries are.
        decision.one =
            random.Below(2) == 0 ? 1 + random.Below(65535) : (random.Below(2) == 0 ? 65535 : 1);
        decision.bit = random.Below(65536) < decision.one;
        writer.Bit(decision.bit, decision.one);
        const double p = decision.one / 65536.0;
        bits -= std::log2(decision.bit ? p : 1 - p);
      } else {
        const uint64_t low = random.Below(UINT32_MAX);
        const uint64_t high =
            low + 1 + random.Below(static_cast<uint32_t>((uint64_t{1} << 32) - low - 1));
        decision.interval = {low, high};
        writer.Write(decision.interval);
        bits -= std::log2(static_cast<double>(high - low) / 0x1p32);
      }
    }
    writer.Finish();
    EXPECT_LE(static_cast<double>(bytes.size()), bits * 1.001 / 8 + 2) << seed;
    RangeReader reader(bytes);
    for (const Decision& decision : decisions) {
      if (decision.is_bit) {
        ASSERT_EQ(reader.Bit(decision.one), decision.bit) << seed;
      } else {
        const uint32_t point = reader.Point();
        ASSERT_GE(point, decision.interval.low) << seed;
        ASSERT_LT(point, decision.interval.high) << seed;
        reader.Take(decision.interval);
      }
    }
  }
}

TEST(RangeCoder, ReadsAnyBytes) {
  SplitMix64 random(1);
  for (int i = 0; i < 100; ++i) {
    std::vector<std::byte> bytes(random.Below(30));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.Below(256));
    RangeReader reader(bytes);
    for (int j = 0; j < 200; ++j) {
      if (random.Below(2) == 0) {
        static_cast<void>(reader.Bit(1 + random.Below(65535)));
      } else {
        const uint64_t point = reader.Point();
        reader.Take({point, point + 1});
      }
    }
  }
}

}  // namespace
}  // namespace kinglet::compress::range_coder_test
