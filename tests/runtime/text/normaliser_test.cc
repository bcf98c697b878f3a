#include "runtime/text/normaliser.h"

#include <gtest/gtest.h>

namespace kinglet::normaliser_test {
namespace {

NormaliserTables Rules(bool dummy, bool trim, bool escape) {
  return {dummy, trim, escape, {{"A", "a"}, {"AB", "<two>"}, {"\t", " "}, {"z", ""}}};
}

std::string Of(const NormaliserTables& tables, std::string_view text, bool suffix = false) {
  const auto made = Normaliser(tables, suffix, {"KEEP A"}).Normalise(text);
  EXPECT_TRUE(made.ok());
  EXPECT_EQ(made->origins.size(), made->text.empty() ? 0 : made->text.size() + 1);
  return made->text;
}

TEST(Normaliser, AppliesTheLongestRuleAndTidiesSpaces) {
  const NormaliserTables plain = Rules(false, false, false), tidy = Rules(true, true, false);
  EXPECT_EQ(Of(plain, "xABAz A"), "x<two>a a");
  EXPECT_EQ(Of(plain, " KEEP A\t"), " KEEP A ");
  EXPECT_EQ(Of(plain, "\xC3(\xF0\x9F"), "\xEF\xBF\xBD(\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Of(tidy, " \t a  \t b\t"), " a b");
  EXPECT_EQ(Of(tidy, " \t "), "");
  EXPECT_EQ(Of(tidy, ""), "");
  EXPECT_EQ(Of(tidy, "b a ", true), "b a ");
  EXPECT_EQ(Of(Rules(true, false, true), "b "),
            "\xE2\x96\x81"
            "b\xE2\x96\x81");
}

TEST(Normaliser, KnowsWhereBytesComeFrom) {
  const NormaliserTables tables = Rules(true, true, true);
  const auto made = Normaliser(tables, false, {}).Normalise("  AB b  ");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->text,
            "\xE2\x96\x81<two>\xE2\x96\x81"
            "b");
  EXPECT_EQ(made->origins, (std::vector<uint32_t>{2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 5, 6}));
}

}  // namespace
}  // namespace kinglet::normaliser_test
