// A table of published figures next to kinglet's, for bench/papers.
#ifndef KINGLET_BENCH_PAPER_REPORT_H_
#define KINGLET_BENCH_PAPER_REPORT_H_

#include <string>

namespace kinglet {

// Collects lines, and counts the figures that agree. A figure is printed as in the paper: its
// decimals tell how exact it is.
class PaperReport {
 public:
  void Title(const std::string& title);
  // Our figure must have the printed digits, unless a reason tells why it cannot.
  void Row(const std::string& row, const char* quantity, const std::string& printed, double ours,
           const std::string& reason = "");
  // Our figure must be within `tolerance`, which the reason explains.
  void Near(const std::string& row, const char* quantity, double printed, double ours,
            double tolerance, const std::string& reason);
  // A figure of ours that the paper does not print.
  void Ours(const std::string& row, const char* quantity, double ours);
  void Line(const std::string& text) { text_ += text + "\n"; }

  const std::string& text() const { return text_; }
  int agreeing() const { return agreeing_; }
  int explained() const { return explained_; }      // that differ for the reason given
  int disagreeing() const { return disagreeing_; }  // that ought to agree

 private:
  void Add(const std::string& row, const char* quantity, const std::string& printed, double ours,
           const std::string& difference);

  std::string text_;
  int agreeing_ = 0, explained_ = 0, disagreeing_ = 0;
};

}  // namespace kinglet

#endif  // KINGLET_BENCH_PAPER_REPORT_H_
