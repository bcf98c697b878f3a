#include "tools/score_report.h"

#include <cmath>
#include <cstdio>

#include "converters/texts/text_reader.h"
#include "runtime/special_tokens.h"
#include "tools/run_options.h"
#include "tools/token_text.h"

namespace kinglet {

Result<ScoreReport> ScoreReport::Create(const ScoreReportOptions& options, const Model& model,
                                        Console& console) {
  ScoreReport report(options, model, console);
  if (options.surprisal) {
    KINGLET_ASSIGN_OR_RETURN(report.table_, SurprisalTable::Create(model, console));
  }
  if (!options.bins.by.empty()) {
    KINGLET_ASSIGN_OR_RETURN(report.bins_, TextBins::Create(options.bins, model));
  }
  return report;
}

ScoreReport::ScoreReport(const ScoreReportOptions& options, const Model& model, Console& console)
    : options_(options),
      model_(&model),
      console_(&console),
      digits_(NumberDigits(model)),
      unknown_(SpecialTokensOf(model).unknown) {}

void ScoreReport::BeginText(const char* name, uint64_t number) {
  number_ = {name, number};
  text_ = LossTotals();
  if (bins_) bins_->BeginText();
  if (table_) table_->BeginLine(number);
}

void ScoreReport::Skip(uint32_t id) {
  if (bins_) bins_->Skip(id);
  if (table_) table_->Add(id, nullptr, {});
}

void ScoreReport::Add(uint64_t position, uint32_t id, const ScoredToken& token,
                      std::string_view typed) {
  const bool unknown = id == unknown_;
  const double value = token.log_probability;
  text_.Add(value, unknown);
  all_.Add(value, unknown);
  if (bins_) bins_->Add(id, value, typed);
  if (table_) table_->Add(id, &token, typed);
  if (options_.tokens) PrintToken(position, id, token, typed);
}

double ScoreReport::InUnit(double logprob) const {
  return options_.log10 ? logprob / std::log(10.0) : logprob;
}

void ScoreReport::PrintToken(uint64_t position, uint32_t id, const ScoredToken& token,
                             std::string_view typed) {
  const auto& [value, place] = token;
  const Vocabulary* vocabulary = model_->vocabulary();
  if (options_.json) {
    JsonLine line = NewLine();
    if (number_) line.Key(number_->first).Integer(number_->second);
    line.Key("pos").Integer(position).Key("id").Integer(id);
    if (vocabulary != nullptr) line.Token(vocabulary->Word(id), typed);
    line.LogProbability(InUnit(value));
    if (options_.hex) line.Key("hex").Text(HexBits(value, *model_));
    if (place.rank) line.Key("rank").Integer(*place.rank);
    if (place.interval) {
      line.Key("interval").BeginArray();
      line.Integer(place.interval->low).Integer(place.interval->high).EndArray();
    }
    console_->out.Write(line.Finish());
    return;
  }
  std::string line;
  char text[64];
  if (number_) {
    std::snprintf(text, sizeof(text), "%8llu ", static_cast<unsigned long long>(number_->second));
    line += text;
  }
  std::snprintf(text, sizeof(text), "%8llu %8u %12s", static_cast<unsigned long long>(position), id,
                ShortNumber(InUnit(value)).c_str());
  line += text;
  if (options_.hex) line += "  " + HexBits(value, *model_);
  if (place.rank) {
    std::snprintf(text, sizeof(text), "  %8u", *place.rank);
    line += text;
  }
  if (place.interval) {
    std::snprintf(text, sizeof(text), "  [%llu, %llu)",
                  static_cast<unsigned long long>(place.interval->low),
                  static_cast<unsigned long long>(place.interval->high));
    line += text;
  }
  if (vocabulary != nullptr) line += "  " + DisplayToken(vocabulary->Word(id), typed);
  console_->out.Write(line + "\n");
}

void ScoreReport::PrintBins() {
  if (!bins_) return;
  const std::string& by = options_.bins.by;
  const std::string unit = options_.bins.whole_words ? "word" : "token";
  for (const LossBin& bin : bins_->Bins()) {
    if (options_.json) {
      console_->out.Write(LossBinJson(by, bin, digits_));
      continue;
    }
    console_->out.Write(by + " " + bin.Range() + ": " + ShortNumber(bin.nll()) + " nats per " +
                        unit + ", " + Grouped(bin.tokens) + " " + unit + "s\n");
  }
}

Status ScoreReport::FinishTable(const std::string& input_name) {
  table_->Finish();
  KINGLET_RETURN_IF_ERROR(RequireScored(all_, input_name));
  return console_->out.Flush();
}

Status ScoreReport::Finish(JsonLine& line, const std::string& input_name,
                           const std::optional<TextSize>& size, const std::string& protocol) {
  if (table_) return FinishTable(input_name);
  KINGLET_RETURN_IF_ERROR(RequireScored(all_, input_name));
  PrintBins();
  EndSummary(all_, size, protocol, model_->backend().name, line);
  console_->out.Write(line.Finish());
  KINGLET_RETURN_IF_ERROR(console_->out.Flush());
  WarnOfUnknown(all_, input_name, model_->file().text_tables() != nullptr);
  return Status();
}

Status ScoreReport::Finish(const std::string& head, const std::string& input_name,
                           const std::optional<TextSize>& size, const std::string& protocol) {
  if (table_) return FinishTable(input_name);
  KINGLET_RETURN_IF_ERROR(RequireScored(all_, input_name));
  PrintBins();
  const auto print = [this](const char* name, const std::string& value) {
    console_->out.Write(FactLine(name, value));
  };
  const auto number = ShortNumber;
  console_->out.Write(head);
  print("scored", Grouped(all_.scored()));
  print("nll", number(all_.nll()) + " nats per token");
  print("perplexity", number(std::exp(all_.nll())));
  print("unknown words", Grouped(all_.unknown()) + ", share " + number(all_.unknown_share()));
  print("without them", number(std::exp(all_.nll_without_unknown())));
  if (size) {
    print("per word",
          number(std::exp(all_.LossPer(size->words))) + ", " + Grouped(size->words) + " words");
    print("bits", number(InBits(all_.LossPer(size->bytes))) + " per byte, " +
                      number(InBits(all_.LossPer(size->characters))) + " per character");
  }
  print("protocol", protocol);
  KINGLET_RETURN_IF_ERROR(console_->out.Flush());
  WarnOfUnknown(all_, input_name, model_->file().text_tables() != nullptr);
  return Status();
}

}  // namespace kinglet
