// kinglet table: models next to each other in the layout of papers' tables.
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/output_path.h"
#include "format/model_file.h"
#include "format/write_file.h"
#include "tools/bench/bench_input.h"
#include "tools/commands.h"
#include "tools/report/scatter_plot.h"
#include "tools/table_formats.h"
#include "tools/table_rows.h"
#include "tools/words.h"

namespace kinglet {
namespace {

// The file's name without folder and ending.
std::string ShortName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  constexpr std::string_view kEnding = ".kgl";
  if (name.size() > kEnding.size() && name.ends_with(kEnding)) {
    name.resize(name.size() - kEnding.size());
  }
  return name;
}

Status WritePlot(const TableOptions& options, Table& table) {
  std::vector<PlotPoint> points;
  for (const ModelRow& row : table.rows) {
    if (row.ppl && std::isfinite(*row.ppl)) {
      points.push_back({ShortName(row.model), static_cast<double>(row.bytes) / 1e6, *row.ppl});
    } else {
      table.notes.push_back(row.model + ": not in " + options.plot + ", without a perplexity");
    }
  }
  if (points.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "table", options.plot,
                           "at least one model with a perplexity", "none");
  }
  const std::string unit = table.per_word ? "perplexity per word" : "perplexity";
  const std::string svg = ScatterPlot(
      {"Size and " + unit + " on " + ShortName(options.text), "file, MB", unit}, points);
  return WriteFileAtomically(std::as_bytes(std::span(svg)), options.plot);
}

Status PrintTable(const TableOptions& options, Console& console) {
  if (!options.plot.empty()) {
    std::vector<const std::string*> inputs = {&options.text, &options.test};
    for (const std::string& model : options.models) inputs.push_back(&model);
    KINGLET_RETURN_IF_ERROR(CheckOutputPath("table", options.plot, inputs));
  }
  // A mistake in the last name should not cost the time of the models before it.
  for (const std::string* const text : {&options.text, &options.test}) {
    if (text->empty()) continue;
    KINGLET_RETURN_IF_ERROR(RefusePipe("table", *text));
    KINGLET_RETURN_IF_ERROR(OpenText(*text).status());
  }
  for (const std::string& model : options.models) {
    KINGLET_RETURN_IF_ERROR(ModelFile::Open(model).status());
  }
  KINGLET_ASSIGN_OR_RETURN(Table table, MeasureTable(options, console));
  if (!options.plot.empty()) KINGLET_RETURN_IF_ERROR(WritePlot(options, table));
  if (options.format == "markdown" || options.format == "latex") {
    console.out.Write(options.format == "latex" ? TableLatex(table) : TableMarkdown(table));
    return Status();
  }
  console.out.Write(options.format == "csv" ? TableCsv(table) : TableJson(table));
  for (const std::string& note : table.notes) PrintNote(note);
  return Status();
}

}  // namespace

Command AddTable(Arguments& program) {
  const auto options = std::make_shared<TableOptions>();
  options->timed = kUsualTimed;
  Arguments table = program.AddSubcommand(
      "table", "Compare models in one table: sizes, operations, perplexity, time");
  table.Add("M.kgl", options->models, "model files").Required().Placeholder("");
  table.Add("--backend", options->run.backend, "what computes")
      .OneOf({"ref", "ref64", "cpu", "onednn", "cuda"})
      .ShowDefault();
  AddThreads(table, options->run.threads);
  table.Add("--text", options->text, "validation text; each line end becomes <eos>")
      .Required()
      .Placeholder("FILE");
  table.Add("--test", options->test, "test text").Placeholder("FILE");
  Option format = table.Add("--format", options->format, "the table's form");
  format.OneOf({"markdown", "csv", "latex", "json"}).ShowDefault();
  table.AddFlag("--json", options->run.json, "--format json").Excludes(format);
  table.Add("--plot", options->plot, "draw sizes and perplexities").Placeholder("PLOT.svg");
  table.Add("--tokens", options->timed, "number of steps to time")
      .Between(uint64_t{1}, kMostTimed)
      .Placeholder("N")
      .ShowDefault();
  table.Footer(
      "Example:\n  kinglet table 9bit.kgl 4bit.kgl --text valid.txt --test test.txt --plot "
      "sizes.svg");
  return {table, [] { return Status(); },
          [options](Console& console) {
            if (options->run.json) options->format = "json";
            return PrintTable(*options, console);
          }};
}

}  // namespace kinglet
