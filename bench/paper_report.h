// A table of published numbers beside ours, for bench/papers.
#ifndef KINGLET_BENCH_PAPER_REPORT_H_
#define KINGLET_BENCH_PAPER_REPORT_H_

#include <string>

namespace kinglet {

// Collects lines, and how many numbers agree. Numbers are printed as the paper has them: the number
// of decimals says how exact they are.
class PaperReport {
 public:
  void Title(const std::string& title);
  // Ours must have the printed digits, unless a reason says why it cannot.
  void Row(const std::string& row, const char* quantity, const std::string& printed, double ours,
           const std::string& reason = "");
  // Ours must be within `tolerance`, which the reason explains.
  void Near(const std::string& row, const char* quantity, double printed, double ours,
            double tolerance, const std::string& reason);
  // A number of ours that the paper does not have.
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
