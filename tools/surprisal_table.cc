#include "tools/surprisal_table.h"

#include <string>
#include <utility>

#include "tools/loss_totals.h"
#include "tools/run_options.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

// A value that is missing, as R reads it.
constexpr const char* kMissing = "NA";

}  // namespace

Result<SurprisalTable> SurprisalTable::Create(const Model& model, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(WholeWords words, WholeWords::Create(model));
  return SurprisalTable(model, std::move(words), console);
}

void SurprisalTable::BeginLine(uint64_t number) {
  is_of_lines_ = true;
  BeginSentence(number);
}

void SurprisalTable::BeginSentence(uint64_t number) {
  Print(words_.Finish());
  sentence_ = number;
  printed_ = 0;
}

void SurprisalTable::Add(uint32_t id, const ScoredToken* scored, std::string_view typed) {
  Print(words_.Add(id, scored, typed));
  if (!is_of_lines_ && id == end_of_line_) BeginSentence(sentence_ + 1);
}

void SurprisalTable::Print(const std::optional<WholeWord>& word) {
  if (!word) return;
  if (!std::exchange(has_names_, true)) {
    console_->out.Write(
        "sentence_id\ttoken_id\ttoken\tsurprisal\tentropy\trank\tpieces\tunknown\n");
  }
  const auto number = [this](const std::optional<double>& value) {
    return value ? NumberText(*value, *model_) : std::string(kMissing);
  };
  console_->out.Write(
      std::to_string(sentence_) + "\t" + std::to_string(++printed_) + "\t" +
      DisplayText(word->text) + "\t" +
      number(word->log_probability ? std::optional(0.0 - InBits(*word->log_probability))
                                   : std::nullopt) +
      "\t" + number(word->entropy ? std::optional(InBits(*word->entropy)) : std::nullopt) + "\t" +
      (word->rank ? std::to_string(*word->rank) : kMissing) + "\t" + std::to_string(word->pieces) +
      "\t" + (word->is_unknown ? "1" : "0") + "\n");
}

}  // namespace kinglet
