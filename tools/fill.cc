// kinglet fill: the words that a masked model expects at [MASK], and its score of each word of a
// text.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/masked_text.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/masked_lines.h"
#include "tools/run_options.h"
#include "tools/score_protocol.h"
#include "tools/score_report.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct FillOptions {
  RunOptions run;
  MaskedInput input;
  uint32_t top = 5;
  bool score = false;
  bool tokens = false;
};

class Filler {
 public:
  Filler(const FillOptions& options, const MaskTokens& words, Session& session, Console& console)
      : options_(options), words_(words), session_(session), console_(console) {}

  // The best words of each [MASK].
  Status Fill(uint64_t number, const MaskedText& text) {
    const bool any = std::find(text.ids.begin(), text.ids.end(), words_.mask) != text.ids.end();
    if (any) KINGLET_RETURN_IF_ERROR(session_.Encode(text.ids, text.segments, 0));
    for (size_t position = 0; position < text.ids.size(); ++position) {
      if (text.ids[position] != words_.mask) continue;
      KINGLET_RETURN_IF_ERROR(session_.LookAt(position));
      KINGLET_ASSIGN_OR_RETURN(const std::vector<Candidate> best, session_.TopK(options_.top));
      Write(number, position, best);
      KINGLET_RETURN_IF_ERROR(console_.out.status());
    }
    return console_.out_is_terminal || console_.input_is_terminal ? console_.out.Flush()
                                                                  : console_.out.status();
  }

 private:
  void Write(uint64_t number, uint64_t position, const std::vector<Candidate>& best) {
    const Vocabulary& vocabulary = *session_.model().vocabulary();
    if (options_.run.json) {
      JsonLine line(NumberDigits(session_.model()));
      line.Key("line").Integer(number).Key("pos").Integer(position).Key("top").BeginArray();
      for (const Candidate& word : best) {
        line.BeginObject().Key("id").Integer(word.id).Token(vocabulary.Word(word.id));
        line.LogProbability(word.log_probability).EndObject();
      }
      line.EndArray();
      console_.out.Write(line.Finish());
      return;
    }
    std::string text = std::to_string(number) + "\t" + std::to_string(position);
    for (const Candidate& word : best) {
      text +=
          "\t" + DisplayText(vocabulary.Word(word.id)) + " " + ShortNumber(word.log_probability);
    }
    console_.out.Write(text + "\n");
  }

  const FillOptions& options_;
  const MaskTokens words_;
  Session& session_;
  Console& console_;
};

// Prints the pseudo-log-likelihood of each line, and a summary.
class PseudoScorer {
 public:
  PseudoScorer(const FillOptions& options, const MaskTokens& words, Session& session,
               ScoreReport& report, Console& console)
      : options_(options), words_(words), session_(session), report_(report), console_(console) {}

  Status Score(uint64_t number, const MaskedText& text) {
    lines_ = number;
    report_.BeginText("line", number);
    for (size_t position = 0; position < text.ids.size(); ++position) {
      if (!IsScored(text.ids[position], words_)) continue;
      ScoredToken token;
      KINGLET_ASSIGN_OR_RETURN(token.log_probability,
                               MaskedLogProbability(text, position, words_.mask, session_));
      report_.Add(position, text.ids[position], token);
    }
    PrintLine(number);
    return console_.out.status();
  }

  Status Finish(const std::string& input_name) const {
    const std::string protocol =
        "lines; pseudo-log-likelihood: each token but [CLS] and [SEP] masked alone" +
        ProtocolEnd(session_.model());
    if (!options_.run.json) {
      return report_.Finish("lines         " + std::to_string(lines_) + "\n", input_name, {},
                            protocol);
    }
    JsonLine line = report_.NewLine();
    line.Key("lines").Integer(lines_).Key("tokens").Integer(report_.all().scored());
    line.Key("scored").Integer(report_.all().scored());
    line.Loss(report_.all().nll());
    return report_.Finish(line, input_name, {}, protocol);
  }

 private:
  void PrintLine(uint64_t number) {
    const LossTotals& totals = report_.text();
    if (options_.run.json) {
      JsonLine line = report_.NewLine();
      line.Key("line").Integer(number).LogProbability(totals.logprob());
      line.Key("tokens").Integer(totals.scored()).Key("oov").Integer(totals.unknown());
      line.Key("logprob_without_oov").Number(totals.logprob_without_unknown());
      console_.out.Write(line.Finish());
      return;
    }
    char text[96];
    std::snprintf(text, sizeof(text), "%8llu %12s %8llu %8llu\n",
                  static_cast<unsigned long long>(number), ShortNumber(totals.logprob()).c_str(),
                  static_cast<unsigned long long>(totals.scored()),
                  static_cast<unsigned long long>(totals.unknown()));
    console_.out.Write(text);
  }

  const FillOptions& options_;
  const MaskTokens words_;
  Session& session_;
  ScoreReport& report_;
  Console& console_;
  uint64_t lines_ = 0;
};

std::string SourceOf(const MaskedInput& input) {
  if (!input.ids.empty()) return input.ids;
  return input.text.empty() || input.text == "-" ? std::string(kStandardInput) : input.text;
}

Status Fill(const FillOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_ASSIGN_OR_RETURN(const MaskTokens words, MaskTokensOf(*model, options.run.model));
  SessionOptions session_options;
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  if (!options.score) {
    Filler filler(options, words, *session, console);
    return ForEachMaskedLine(options.input, *model, [&](uint64_t number, const MaskedText& text) {
      return filler.Fill(number, text);
    });
  }
  ScoreReportOptions report_options;
  report_options.json = options.run.json;
  report_options.tokens = options.tokens;
  KINGLET_ASSIGN_OR_RETURN(ScoreReport report,
                           ScoreReport::Create(report_options, *model, console));
  PseudoScorer scorer(options, words, *session, report, console);
  if (!options.run.json) {
    console.out.Write("    line            logprob   tokens  unknown\n");
  }
  KINGLET_RETURN_IF_ERROR(ForEachMaskedLine(
      options.input, *model,
      [&](uint64_t number, const MaskedText& text) { return scorer.Score(number, text); }));
  return scorer.Finish(SourceOf(options.input));
}

}  // namespace

Command AddFill(Arguments& program) {
  const auto options = std::make_shared<FillOptions>();
  Arguments fill = program.AddSubcommand(
      "fill", "Print the words that a masked model expects at each [MASK], or score texts");
  AddModelOptions(fill, options->run);
  AddThreads(fill, options->run.threads);
  AddMaskedInput(fill, options->input);
  fill.Add("--top", options->top, "print the K most probable words")
      .Between(uint32_t{1}, std::numeric_limits<uint32_t>::max())
      .Placeholder("K")
      .ShowDefault();
  fill.AddFlag("--score", options->score,
               "print each line's pseudo-log-likelihood: every word masked alone, in turn");
  fill.AddFlag("--tokens", options->tokens, "with --score: print each token too");
  fill.Footer("Example:\n  echo 'the [MASK] was new' | kinglet fill bert.kgl");
  return {fill, [options] { return CheckMaskedInput(options->input, "fill"); },
          [options](Console& console) { return Fill(*options, console); }};
}

}  // namespace kinglet
