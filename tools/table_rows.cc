#include "tools/table_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "runtime/accounting/micronet.h"
#include "runtime/special_tokens.h"
#include "tools/bench/bench_measure.h"
#include "tools/count_report.h"
#include "tools/stream_losses.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// A text as a model scores it.
struct TableText {
  LossTotals totals;
  TextSize size;
};

// A model's texts, of which the perplexities are computed when their unit is known.
struct TableModel {
  std::shared_ptr<const Model> model;
  std::array<std::optional<TableText>, 2> texts;  // validation, test
};

bool SameVocabulary(const Model& a, const Model& b) {
  if (a.vocabulary_size() != b.vocabulary_size()) return false;
  for (uint32_t id = 0; id < a.vocabulary_size(); ++id) {
    if (a.vocabulary()->Word(id) != b.vocabulary()->Word(id)) return false;
  }
  return true;
}

// Whether a text cannot be read by this model, although another one may read it.
bool IsOfModel(const Status& status) {
  return status.code() == KINGLET_UNSUPPORTED || status.code() == KINGLET_UNKNOWN_WORD;
}

class RowMeasure {
 public:
  RowMeasure(const TableOptions& options, const Console& console, Table& table)
      : options_(options), console_(console), table_(table) {}

  // Measures all but the perplexities, whose unit depends on all models.
  Result<TableModel> AddRow(const std::string& path) {
    RunOptions run = options_.run;
    run.model = path;
    TableModel measured;
    KINGLET_ASSIGN_OR_RETURN(measured.model, OpenWholeModel(run));
    const Model& model = *measured.model;
    const std::vector<uint64_t> nonzeros = CountNonzeros(model.plan().weights);
    const ExecutedStorage storage = ExecutedStorageOf(model, nonzeros);
    row_ = ModelRow{path, storage.total, {}, {}, storage.file_size, {}, {}, {}, {}};
    Status reads = RequireNoSource(model, "table");
    std::vector<uint64_t> bins;
    if (!reads.ok()) {
      Note("ppl, us_per_token, words, operations, score", reads);
    } else {
      bins.resize(EmbeddingOf(model.plan()).bins.size());
      KINGLET_RETURN_IF_ERROR(ScoreTexts(measured, bins));
      Count(model, nonzeros, bins);
      KINGLET_RETURN_IF_ERROR(Time(measured.model));
    }
    table_.rows.push_back(std::move(row_));
    return measured;
  }

 private:
  void Note(const std::string& columns, const Status& status) {
    table_.notes.push_back(row_.model + ": " + columns + ": " + status.message());
  }

  // Counts the bins of the validation text's tokens too.
  Status ScoreTexts(TableModel& measured, std::vector<uint64_t>& bins) {
    for (const bool test : {false, true}) {
      const std::string& path = test ? options_.test : options_.text;
      if (path.empty()) continue;
      std::vector<uint64_t> counted(bins.size());
      Result<TableText> text = ScoreText(measured.model, path, counted);
      if (!text.ok() && !IsOfModel(text.status())) return text.status();
      if (text.ok()) {
        measured.texts[test ? 1 : 0] = *std::move(text);
        if (!test) bins = std::move(counted);
      } else {
        Note(test ? "test_ppl" : "ppl", text.status());
      }
    }
    return Status();
  }

  Result<TableText> ScoreText(const std::shared_ptr<const Model>& model, const std::string& path,
                              std::vector<uint64_t>& bins) const {
    KINGLET_RETURN_IF_ERROR(RequireWords(path, model->text()));
    Progress progress(ProgressFormOf("", console_));
    const std::optional<uint32_t> unknown = SpecialTokensOf(*model).unknown;
    TableText text;
    const auto add = [&](uint32_t id, std::optional<double> log_probability) {
      ++bins[BinOf(model->plan(), id)];
      if (log_probability) text.totals.Add(*log_probability, id == unknown);
    };
    KINGLET_ASSIGN_OR_RETURN(const StreamLosses losses,
                             StreamLosses::Read(model, static_cast<uint32_t>(options_.run.threads),
                                                {path, ""}, add, [&](uint64_t tokens) {
                                                  progress.Say(row_.model + ", " + path + ": " +
                                                               Grouped(tokens) + " tokens");
                                                }));
    text.size = losses.size().value_or(TextSize());
    KINGLET_RETURN_IF_ERROR(RequireScored(text.totals, path));
    WarnOfUnknown(text.totals, row_.model + ", " + path, model->file().text_tables() != nullptr);
    return text;
  }

  void Count(const Model& model, std::span<const uint64_t> nonzeros, std::vector<uint64_t> bins) {
    const Plan& plan = model.plan();
    const bool counted = std::any_of(bins.begin(), bins.end(), [](uint64_t n) { return n > 0; });
    if (!counted && NeedsBinCounts(plan)) {
      Note("words, operations, score",
           Status::Refusal(KINGLET_INVALID_ARGUMENT, "micronet-2019", "bin frequencies",
                           "a text that the model reads", "none"));
      return;
    }
    if (!counted) bins.front() = 1;  // all bins cost the same
    const Result<MicronetCount> count = CountMicronet2019(plan, nonzeros, bins);
    if (!count.ok()) {
      Note("words, operations, score", count.status());
      return;
    }
    row_.words = count->storage.TotalSize();
    row_.operations = count->operations.WeightedTotal();
    row_.score = count->Score();
  }

  Status Time(const std::shared_ptr<const Model>& model) {
    BenchSetup setup;
    setup.threads = options_.run.threads;
    setup.queries = {{BenchMode::kFull}};
    setup.schedule = MakeSchedule(WarmUpTokens(model->plan()), options_.timed);
    LaneIds ids(SampleIds(EmbeddingOf(model->plan()), setup.schedule.Ids()), 1);
    Progress progress(ProgressFormOf("", console_), setup.schedule.rounds);
    KINGLET_ASSIGN_OR_RETURN(
        const std::vector<BenchResult> results,
        kinglet::Measure(model, setup, ids, [&](uint64_t done) { progress.Report(done); }));
    row_.us_per_token = results.front().us_per_token.p50;
    return Status();
  }

  const TableOptions& options_;
  const Console& console_;
  Table& table_;
  ModelRow row_;
};

// Decides the unit of all perplexities and computes them.
void AddPerplexities(const std::vector<TableModel>& models, Table& table) {
  const Model* first = nullptr;
  for (const TableModel& measured : models) {
    if (!measured.texts[0] && !measured.texts[1]) continue;
    if (first == nullptr) first = measured.model.get();
    if (!SameVocabulary(*first, *measured.model)) table.per_word = true;
  }
  std::string unknown;
  for (size_t i = 0; i < models.size(); ++i) {
    ModelRow& row = table.rows[i];
    for (const bool test : {false, true}) {
      const std::optional<TableText>& text = models[i].texts[test ? 1 : 0];
      if (!text) continue;
      const uint64_t units = table.per_word ? text->size.words : text->totals.scored();
      (test ? row.test_ppl : row.ppl) = std::exp(text->totals.LossPer(units));
      if (test) continue;
      unknown += (unknown.empty() ? "" : ", ") + Grouped(text->totals.unknown()) + " of " +
                 Grouped(text->totals.scored()) + " by " + row.model;
    }
  }
  if (!table.per_word) return;
  table.notes.push_back(
      "perplexities are per word, since the models' vocabularies differ; unknown "
      "words, which count as one word each: " +
      unknown);
}

}  // namespace

Result<Table> MeasureTable(const TableOptions& options, const Console& console) {
  Table table;
  table.has_test = !options.test.empty();
  std::vector<TableModel> models;
  RowMeasure measure(options, console, table);
  for (const std::string& path : options.models) {
    KINGLET_ASSIGN_OR_RETURN(TableModel measured, measure.AddRow(path));
    models.push_back(std::move(measured));
  }
  AddPerplexities(models, table);
  return table;
}

}  // namespace kinglet
