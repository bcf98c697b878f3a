#include <gtest/gtest.h>

#include "converters/convert.h"

namespace kinglet::summary_test {
namespace {

TEST(SummaryText, SaysEverything) {
  ConvertSummary summary;
  summary.family = "neurips-micronet";
  summary.tensors = 84;
  summary.parameters = 2373856;
  summary.nonzero_parameters = 999;
  summary.checkpoint_bytes = 4000;
  summary.file_bytes = 1000;
  summary.bytes_by_part = {{"frame", 64}, {"codes", 936}};
  summary.notes = {"one", "two"};
  summary.golden_positions = 1399;
  summary.golden_largest_difference = 5.51e-14;
  summary.digest = "abc";
  EXPECT_EQ(SummaryText(summary),
            "neurips-micronet: 84 tensors, 2,373,856 parameters, 999 not zero\n"
            "  frame                     64\n"
            "  codes                    936\n"
            "  file                   1,000\n"
            "  checkpoint             4,000\n"
            "  ratio                 0.2500\n"
            "note: one\n"
            "note: two\n"
            "golden: 1,399 positions, largest difference 5.51e-14\n"
            "digest: abc\n");
}

TEST(SummaryText, Empty) {
  EXPECT_EQ(SummaryText({}),
            ": 0 tensors, 0 parameters, 0 not zero\n"
            "  file                       0\n"
            "  checkpoint                 0\n"
            "digest: \n");
}

}  // namespace
}  // namespace kinglet::summary_test
