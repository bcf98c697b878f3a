#include "tests/synthesis/published_networks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/synthesis/synthetic_plan.h"

namespace kinglet::published_networks_test {
namespace {

// Worked out by hand from the papers' shapes: L layers of 4 (d^2 + d) + 4 d + 2 d f + f + d, the
// tables, the projections and the clusters.
TEST(PublishedNetworks, OfAdaptiveInputsHaveTheirParameters) {
  const std::map<std::string, uint64_t> expected = {
      {"ADP-T", 246'933'504},
      {"tied tables, own projections", 247'261'184},
      {"ADP", 291'276'800},
      {"ASM, input 256", 314'689'536},
      {"ASM, input 128", 280'287'232},
      {"ASM, input 64", 263'086'080},
      {"ASM, input 32", 254'485'504},
      {"SM 512", 476'758'016},
      {"SM 256", 339'148'800},
      {"SM-T 512", 339'673'088},
      {"SM-T 256", 270'606'336},
      {"input 64, softmax 512", 356'349'952},
      // fairseq's clusters read the hidden state, ours the head's projection of it, half as wide.
      {"adaptive, all bands 512 wide, tied", 340'199'424 - 2 * 512},
      {"BPE", 269'813'760},
      {"BPE-T", 235'676'672},
      {"CNN", 266'341'760},
      {"billion words, ADP-T", 330'828'288},
      {"billion words, ADP", 458'411'008},
      {"billion words, ASM, input 256", 532'845'056},
      {"billion words, CNN", 365'774'208},
      {"billion words, BPE", 267'786'240},
      {"billion words, BPE-T", 234'662'912},
      {"billion words, large", 465'140'224},
      {"billion words, very large", 1'026'211'584}};
  const auto rows = PublishedAdaptiveInputs();
  EXPECT_EQ(rows.size(), expected.size());
  for (const PublishedParameters& row : rows) {
    const SyntheticPlan model(Outline(row.network));
    ASSERT_TRUE(expected.contains(row.row)) << row.row;
    EXPECT_EQ(model.ParametersOf(""), expected.at(row.row)) << row.row;
  }
}

// V (n + 1), four projections and the clusters' rows; LSTM layers of 4 n (m + n) + 8 n. The two
// biases of Transformer-XL's attention, 820 values, are in none of the paper's digits.
TEST(PublishedNetworks, OfDefineHaveTheirParameters) {
  struct Expected {
    uint64_t context, ends, unit;
  };
  constexpr uint64_t kXl = 36'249'600 + 820;
  const std::map<std::string, Expected> expected = {
      {"R1", {23'357'440, 68'807'895, 0}},
      {"R2", {23'357'440, 9'253'212, 0}},
      {"R3", {23'357'440, 9'253'212, 564'224}},
      {"R4", {24'734'720, 13'895'946, 817'548}},
      {"R5", {26'243'072, 18'549'432, 1'013'564}},
      {"Transformer-XL*, n 410", {41'066'400 + 820, 110'039'085 + 1'233, 0}},
      {"Transformer-XL, n 384", {kXl, 103'079'130, 0}},
      {"DeFINE, n 384", {kXl, 103'079'130, 5'261'424}},
      {"projective, n 256", {kXl, 69'201'882, 0}},
      {"DeFINE, n 256", {kXl, 69'201'882, 5'043'456}},
      {"projective, n 128", {kXl, 34'734'810, 0}},
      {"DeFINE, n 128", {kXl, 34'734'810, 4'819'489}},
      {"projective, n 64", {kXl, 17'501'274, 0}},
      {"DeFINE, n 64", {kXl, 17'501'274, 4'714'336}}};
  const auto rows = PublishedDefine();
  EXPECT_EQ(rows.size(), expected.size());
  for (const PublishedParameters& row : rows) {
    const SyntheticPlan model(Outline(row.network));
    ASSERT_TRUE(expected.contains(row.row)) << row.row;
    const Expected& numbers = expected.at(row.row);
    EXPECT_EQ(model.ParametersOf("context."), numbers.context) << row.row;
    EXPECT_EQ(model.ParametersOf("input.") + model.ParametersOf("output."), numbers.ends)
        << row.row;
    EXPECT_EQ(model.ParametersOf("made."), numbers.unit) << row.row;
  }
}

}  // namespace
}  // namespace kinglet::published_networks_test
