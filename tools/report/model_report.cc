#include "tools/report/model_report.h"

#include <algorithm>
#include <utility>

#include "runtime/accounting/meter.h"
#include "tools/bench/bench_measure.h"
#include "tools/inspect_report.h"
#include "tools/score_protocol.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// Tokens of a file of ids between two lines of progress.
constexpr size_t kIdChunk = 1024;

// Reads the text into `measure`, piece by piece.
Status ReadInto(TextMeasure& measure, const ReportOptions& options, const Model& model,
                const Console& console) {
  Progress progress(ProgressFormOf("", console));
  const auto add = [&](const TokenSequence& piece) {
    const Status status = measure.Add(piece);
    progress.Say(Grouped(measure.tokens()) + " tokens");
    return status;
  };
  if (!options.text.empty()) {
    return ForEachTextPiece(options.text, model.text(), add);
  }
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence all,
                           ReadIdSequence(options.ids, model.vocabulary_size()));
  for (size_t first = 0; first < all.ids.size(); first += kIdChunk) {
    TokenSequence piece;
    const auto begin = all.ids.begin() + static_cast<ptrdiff_t>(first);
    piece.ids.assign(begin,
                     begin + static_cast<ptrdiff_t>(std::min(kIdChunk, all.ids.size() - first)));
    KINGLET_RETURN_IF_ERROR(add(piece));
  }
  return Status();
}

Status MeasureTimes(const ReportOptions& options, const Console& console, ModelReport& report) {
  const Plan& plan = report.model->plan();
  const uint64_t warm_up = WarmUpTokens(plan);
  BenchSetup setup;
  setup.threads = options.run.threads;
  for (const BenchMode mode : {BenchMode::kFull, BenchMode::kScore, BenchMode::kTopK}) {
    setup.queries.push_back({mode});
  }
  setup.schedule = MakeSchedule(warm_up, options.timed);
  std::vector<uint32_t> ids = report.text.first_ids;
  const Result<BenchSchedule> of_text =
      MakeSchedule(warm_up, options.timed, ids.size(), options.input_name());
  report.timed_on_text = of_text.ok();
  if (of_text.ok()) {
    setup.schedule = *of_text;
  } else {
    ids = SampleIds(EmbeddingOf(plan), setup.schedule.Ids());
  }
  Progress progress(ProgressFormOf("", console), setup.schedule.rounds);
  KINGLET_ASSIGN_OR_RETURN(report.bench, Measure(report.model, setup, LaneIds(std::move(ids), 1),
                                                 [&](uint64_t done) { progress.Report(done); }));
  return Status();
}

void AppendRange(const LossBin& bin, JsonLine& line) {
  line.Key("from").Integer(bin.from).Key("to");
  bin.to ? line.Integer(*bin.to) : line.Null();
  line.Key("tokens").Integer(bin.tokens);
}

void AppendCache(const TextFigures& text, JsonLine& line) {
  line.Key("cache");
  if (!text.cache) {
    line.Null();
    return;
  }
  const CacheTally& cache = *text.cache;
  line.BeginObject().Key("hits").Integer(cache.hits.tokens);
  line.Key("hit_share").Number(cache.hit_share());
  line.Key("nll_network").Number(cache.all.nll_network());
  line.Key("nll_hits").Number(cache.hits.nll());
  line.Key("nll_hits_network").Number(cache.hits.nll_network());
  line.Key("nll_misses").Number(cache.misses.nll());
  line.Key("nll_misses_network").Number(cache.misses.nll_network());
  line.Key("gaps").BeginArray();
  for (const LossBin& bin : text.network_gaps) {
    line.BeginObject();
    AppendRange(bin, line);
    line.Key("nll_network").Number(bin.nll()).EndObject();
  }
  line.EndArray().EndObject();
}

void AppendPassage(const ModelReport& report, JsonLine& line) {
  const Vocabulary* const vocabulary = report.model->vocabulary();
  const auto token = [&](uint32_t id, std::string_view typed) {
    line.Key("id").Integer(id);
    if (vocabulary != nullptr) line.Token(vocabulary->Word(id), typed);
  };
  line.Key("passage").BeginArray();
  for (const PassageWord& word : report.text.passage) {
    line.BeginObject().Key("pos").Integer(word.position);
    token(word.id, word.typed);
    line.LogProbability(word.log_probability).Key("rank").Integer(word.rank);
    line.Key("top").BeginArray();
    for (const Candidate& candidate : word.best) {
      line.BeginObject();
      token(candidate.id, {});
      line.LogProbability(candidate.log_probability).EndObject();
    }
    line.EndArray();
    if (report.text.cache) {
      line.Key("network")
          .Number(word.contribution.network_log_probability)
          .Key("cache_part")
          .Number(word.contribution.cache_share);
    }
    line.EndObject();
  }
  line.EndArray();
}

}  // namespace

Result<ModelReport> MeasureModel(const ReportOptions& options, const std::string& path,
                                 const Console& console) {
  ModelReport report;
  report.path = path;
  RunOptions run = options.run;
  run.model = path;
  KINGLET_ASSIGN_OR_RETURN(report.model, OpenWholeModel(run));
  const Model& model = *report.model;
  KINGLET_RETURN_IF_ERROR(RequireNoSource(model, "report"));
  report.facts = DescribeModel(model.file());
  const uint64_t timed_ids = MakeSchedule(WarmUpTokens(model.plan()), options.timed).Ids();
  KINGLET_ASSIGN_OR_RETURN(
      TextMeasure measure,
      TextMeasure::Create(
          report.model, {options.passage, timed_ids, static_cast<uint32_t>(options.run.threads)}));
  KINGLET_RETURN_IF_ERROR(ReadInto(measure, options, model, console));
  report.text = std::move(measure).Finish();
  const std::string input_name =
      options.input_name() == "-" ? std::string(kStandardInput) : options.input_name();
  KINGLET_RETURN_IF_ERROR(RequireScored(report.text.totals, input_name));
  WarnOfUnknown(report.text.totals, input_name, model.file().text_tables() != nullptr);
  report.protocol = StreamProtocol(model, std::nullopt, 0, "reference");

  const std::vector<uint64_t> nonzeros = CountNonzeros(model.plan().weights);
  report.count =
      CountExecuted(model.plan(), nonzeros, TraitsOf(model.backend()), report.text.trace);
  report.storage = ExecutedStorageOf(model, nonzeros);
  std::vector<uint64_t> bins(EmbeddingOf(model.plan()).bins.size());
  for (const auto& [taken, tokens] : report.text.trace.paths) bins[taken.bin] += tokens;
  report.counted = CountBasisOf(
      model, StreamPathsText(report.text.tokens, input_name, FullQueryText(model.plan())), bins);
  KINGLET_RETURN_IF_ERROR(MeasureTimes(options, console, report));
  return report;
}

std::string ReportJson(const ModelReport& report) {
  const int digits = NumberDigits(*report.model);
  JsonLine line(digits), score(digits);
  line.Key("model").Text(report.path).Key("inspect").Object(InspectJson(report.model->file()));
  line.Key("count").Object(ExecutedJson(report.count, report.storage, report.counted));
  BeginStreamSummary(report.text.tokens, report.text.totals, score);
  EndSummary(report.text.totals, report.text.size, report.protocol, report.model->backend().name,
             score);
  line.Key("score").Object(score.Finish());
  for (const auto& [name, bins] :
       {std::pair("frequency", &report.text.frequency), {"gap", &report.text.gaps}}) {
    line.Key(name).BeginArray();
    for (const LossBin& bin : *bins) line.Object(LossBinJson(name, bin, digits));
    line.EndArray();
  }
  AppendCache(report.text, line);
  line.Key("bench_ids").Text(report.timed_on_text ? "text" : "made up").Key("bench").BeginArray();
  for (const BenchResult& result : report.bench) line.Object(BenchJson(result));
  line.EndArray();
  AppendPassage(report, line);
  return line.Finish();
}

}  // namespace kinglet
