// The output that the ways of scoring a text have in common: tokens, bins, and the summary's
// perplexities.
#ifndef KINGLET_TOOLS_SCORE_REPORT_H_
#define KINGLET_TOOLS_SCORE_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converters/texts/text_size.h"
#include "kinglet/status.h"
#include "runtime/model.h"
#include "runtime/scored_token.h"
#include "tools/console.h"
#include "tools/json_lines.h"
#include "tools/loss_totals.h"
#include "tools/surprisal_table.h"
#include "tools/text_bins.h"

namespace kinglet {

struct ScoreReportOptions {
  bool json = false;
  bool tokens = false;     // print each token
  bool hex = false;        // with its exact bits
  bool surprisal = false;  // print a table of words (surprisal_table.h), and no summary
  bool log10 = false;  // the unit of the log-probabilities that are printed, but not of the bits
  BinOptions bins;
};

class ScoreReport {
 public:
  // The model and the console outlive the report. Errors: those of TextBins::Create.
  static Result<ScoreReport> Create(const ScoreReportOptions& options, const Model& model,
                                    Console& console);

  // Begins another text, with a fresh state. `name` and `number` ("line", 3) are printed before its
  // tokens.
  void BeginText(const char* name, uint64_t number);
  // A token of the text that was fed, but not scored; not a token that precedes every text.
  void Skip(uint32_t id);
  // The token at `position` of the text. `typed`: how an unknown word was typed.
  void Add(uint64_t position, uint32_t id, const ScoredToken& token, std::string_view typed = {});

  bool is_table() const { return table_.has_value(); }
  const LossTotals& text() const { return text_; }  // since BeginText
  const LossTotals& all() const { return all_; }

  // `logprob` in the unit that is printed.
  double InUnit(double logprob) const;
  JsonLine NewLine() const { return JsonLine(digits_); }

  // Ends the table, or prints the bins, the summary that `line` begins, and a warning on standard
  // error if many words are unknown. `size` is the size of the scored text, if the text is known.
  // KINGLET_INVALID_ARGUMENT, naming `input_name`, if nothing could be scored; then nothing is
  // printed.
  Status Finish(JsonLine& line, const std::string& input_name, const std::optional<TextSize>& size,
                const std::string& protocol);
  // Finish for people: prints the facts in `head`, then the summary.
  Status Finish(const std::string& head, const std::string& input_name,
                const std::optional<TextSize>& size, const std::string& protocol);

 private:
  ScoreReport(const ScoreReportOptions& options, const Model& model, Console& console);
  void PrintToken(uint64_t position, uint32_t id, const ScoredToken& token, std::string_view typed);
  void PrintBins();
  Status FinishTable(const std::string& input_name);

  ScoreReportOptions options_;
  const Model* model_;
  Console* console_;
  int digits_;
  std::optional<uint32_t> unknown_;
  std::optional<TextBins> bins_;
  std::optional<SurprisalTable> table_;
  std::optional<std::pair<const char*, uint64_t>> number_;
  LossTotals text_, all_;
};

}  // namespace kinglet

#endif  // KINGLET_TOOLS_SCORE_REPORT_H_
