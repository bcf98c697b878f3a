#include "converters/network/change.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "converters/network/frequencies.h"

namespace kinglet::change_test {
namespace {

using Values = std::vector<float>;

Values Of(const Change& change, const Values& values) { return *change.Apply(values); }

TEST(Change, EachDoesWhatItsNameSays) {
  // Two heads of one row each.
  EXPECT_EQ(Of(ByHead(2, {1, 1, 1}), {1, 2, 11, 12, 21, 22}), (Values{1, 11, 21, 2, 12, 22}));
  EXPECT_EQ(Of(Scaled(2), {1, -3}), (Values{2, -6}));
  EXPECT_EQ(Of(First(2), {1, 2, 3}), (Values{1, 2}));
  EXPECT_EQ(Of(SinesFirst(4), {1, 2, 3, 4, 5, 6, 7, 8}), (Values{1, 3, 2, 4, 5, 7, 6, 8}));
  // [[1, 2]] times [[10, 20, 30], [100, 200, 300]].
  EXPECT_EQ(Of(ProductOf(1, 2, 3), {1, 2, 10, 20, 30, 100, 200, 300}), (Values{210, 420, 630}));
  const Values scaled = Of(ScaledByLast(3), {1, 2, static_cast<float>(std::log(2.0))});
  EXPECT_FLOAT_EQ(scaled.at(0), 6);
  EXPECT_FLOAT_EQ(scaled.at(1), 12);
  EXPECT_EQ(Of(Then(Scaled(2), First(1)), {1, 2}), Values{2});
}

// One head: a query, a key, two rows of values, and the norm's bias.
TEST(ZeroMemory, IsTheNormsBiasTimesEachRowOfKeysAndValues) {
  const Values bias = {10, 100};
  Values values = {7, 7, 1, 2, 3, 4, 5, 6};
  values.insert(values.end(), bias.begin(), bias.end());
  EXPECT_EQ(Of(ZeroMemory({1, 1, 2}), values), (Values{210, 430, 650}));
  // Two heads, one number a row: queries 1 2, keys 3 4, values 5 6; or 1 3 5, 2 4 6.
  EXPECT_EQ(Of(ZeroMemory({2, 1, 1, false}), {1, 2, 3, 4, 5, 6, 10}), (Values{30, 40, 50, 60}));
  EXPECT_EQ(Of(ZeroMemory({2, 1, 1, true}), {1, 3, 5, 2, 4, 6, 10}), (Values{30, 40, 50, 60}));
}

// A recipe's numbers may be anything; a function refuses values that it cannot take.
TEST(MakeChange, RefusesOtherNumbersAndValues) {
  for (const auto& [kind, numbers] :
       std::vector<std::pair<std::string, std::vector<double>>>{{"halves", {1}},
                                                                {"times", {}},
                                                                {"times", {1, 2}},
                                                                {"times", {INFINITY}},
                                                                {"by_head", {2}},
                                                                {"by_head", {0, 1}},
                                                                {"by_head", {2, 1.5}},
                                                                {"by_head", {2, -1}},
                                                                {"first", {1e300}},
                                                                {"sinusoids", {1e9, 8}},
                                                                {"sinusoids", {8}},
                                                                {"zeros", {1e9}},
                                                                {"product", {1, 2}},
                                                                {"zero_memory", {1, 1}},
                                                                {"sines_first", {NAN}},
                                                                {"fairseq_frequencies", {2}}}) {
    EXPECT_EQ(MakeChange(kind, numbers).status().code(), KINGLET_INVALID_ARGUMENT) << kind;
  }
  for (const auto& [kind, numbers, count] :
       std::vector<std::tuple<std::string, std::vector<double>, size_t>>{
           {"by_head", {2, 1, 1}, 3},
           {"times_exp_of_last", {1}, 0},
           {"sines_first", {4}, 6},
           {"sines_first", {3}, 3},
           {"product", {1, 2, 3}, 7},
           {"first", {3}, 2},
           {"zero_memory", {1, 1, 1, 0}, 5}}) {
    EXPECT_EQ(MakeChange(kind, numbers)->Apply(Values(count)).status().code(),
              KINGLET_INVALID_CHECKPOINT)
        << kind;
  }
  EXPECT_EQ(*MakeChange("sinusoids", {2, 4})->Apply({}), SinusoidTable(2, 4));
  EXPECT_EQ(*MakeChange("zeros", {2})->Apply({}), (Values{0, 0}));
  EXPECT_EQ(MakeChange("times", {0.1})->Text(), Scaled(0.1).Text());
}

// Tensors that are changed alike are stored once, so different changes need different names.
TEST(Change, DifferentChangesHaveDifferentNames) {
  const std::vector<Change> changes = {ByHead(2, {1, 1, 1}),
                                       ByHead(3, {1, 1, 1}),
                                       ByHead(2, {1, 1}),
                                       Scaled(1.0),
                                       Scaled(1.0000000001),
                                       ScaledByLast(1),
                                       ScaledByLast(2),
                                       SinesFirst(2),
                                       SinesFirst(4),
                                       First(1),
                                       First(2),
                                       ProductOf(1, 2, 3),
                                       ProductOf(1, 3, 2),
                                       ZeroMemory({1, 2, 3}),
                                       ZeroMemory({1, 2, 3, true})};
  std::set<std::string> names;
  for (const Change& change : changes) names.insert(change.Text());
  EXPECT_EQ(names.size(), changes.size());
}

}  // namespace
}  // namespace kinglet::change_test
