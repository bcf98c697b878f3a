#include "bench/paper_report.h"

#include <gtest/gtest.h>

#include <string>

namespace kinglet::paper_report_test {
namespace {

TEST(PaperReport, ComparesPrintedDigits) {
  PaperReport report;
  report.Row("a", "size", "246.9", 246.933504);
  report.Row("b", "size", "1026", 1026.49);
  EXPECT_EQ(report.agreeing(), 2);
  report.Row("c", "size", "246.9", 246.951);
  report.Row("d", "size", "0.30", 0.306);
  EXPECT_EQ(report.disagreeing(), 2);
  report.Row("e", "size", "69.20", 69.300186, "one projection more");
  EXPECT_EQ(report.explained(), 1);
  report.Ours("f", "size", 12);
  EXPECT_EQ(report.agreeing() + report.explained() + report.disagreeing(), 5);
  EXPECT_NE(report.text().find("+0.051, DISAGREES"), std::string::npos) << report.text();
  EXPECT_NE(report.text().find("+0.1: one projection more"), std::string::npos) << report.text();
}

TEST(PaperReport, AReasonAgreesWithinItsTolerance) {
  PaperReport report;
  report.Near("a", "words", 1000, 1004, 5, "printed with three digits");
  EXPECT_EQ(report.agreeing(), 1);
  report.Near("a", "words", 1000, 1006, 5, "printed with three digits");
  EXPECT_EQ(report.disagreeing(), 1);
}

}  // namespace
}  // namespace kinglet::paper_report_test
