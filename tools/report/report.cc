// kinglet report: a page with pictures of a model's costs and of its losses on a text.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/output_path.h"
#include "format/write_file.h"
#include "tools/bench/bench_input.h"
#include "tools/commands.h"
#include "tools/report/comparison.h"
#include "tools/report/model_report.h"
#include "tools/report/report_page.h"

namespace kinglet {
namespace {

constexpr uint64_t kMostPassage = 10000;

Status Report(const ReportOptions& options, Console& console) {
  KINGLET_RETURN_IF_ERROR(CheckOutputPath("report", options.output,
                                          {&options.run.model, &options.second, &options.text,
                                           &options.ids, &options.sensitivity, &options.plan}));
  if (!options.second.empty()) KINGLET_RETURN_IF_ERROR(RefusePipe("report", options.input_name()));
  KINGLET_ASSIGN_OR_RETURN(const Planning planning,
                           ReadPlanning(options.sensitivity, options.plan));
  std::vector<ModelReport> reports;
  for (const std::string& path : {options.run.model, options.second}) {
    if (path.empty()) continue;
    KINGLET_ASSIGN_OR_RETURN(ModelReport report, MeasureModel(options, path, console));
    reports.push_back(std::move(report));
  }
  const std::string input_name =
      options.input_name() == "-" ? std::string(kStandardInput) : options.input_name();
  const std::string page = ReportPage(reports, planning, input_name);
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(std::as_bytes(std::span(page)), options.output));
  if (!options.run.json) {
    console.out.Write(FactLine("report", options.output + ", " + Grouped(page.size()) + " bytes"));
    return Status();
  }
  for (const ModelReport& report : reports) console.out.Write(ReportJson(report));
  if (reports.size() > 1) console.out.Write(ComparisonJson(reports));
  console.out.Write(PlanningJson(planning));
  return Status();
}

Status CheckReport(const ReportOptions& options) {
  if (options.text.empty() == options.ids.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "report", "--text FILE or --ids FILE",
                           options.text.empty() ? "neither" : "both");
  }
  if (options.second.empty() || options.input_name() != "-") return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "report",
                         "a file with two models, as it is read twice", kStandardInput.data());
}

}  // namespace

Command AddReport(Arguments& program) {
  const auto options = std::make_shared<ReportOptions>();
  options->timed = kUsualTimed;
  Arguments report =
      program.AddSubcommand("report", "Write a page about a model and a text, with pictures");
  AddModelOptions(report, options->run);
  report.Add("SECOND.kgl", options->second, "another model, shown next to the first")
      .Placeholder("");
  AddThreads(report, options->run.threads);
  report.Add("--text", options->text, "text; each line end becomes <eos>")
      .Placeholder(kFileOrStandardInput);
  report.Add("--ids", options->ids, "token ids: text, separated by white space, or .npy")
      .Placeholder(kFileOrStandardInput);
  report.Add("-o,--output", options->output, "page to write").Required().Placeholder("REPORT.html");
  report
      .Add("--sensitivity", options->sensitivity,
           "show the losses that `kinglet sensitivity` measured")
      .Placeholder("S.json");
  report
      .Add("--plan", options->plan,
           "show the changes that a recipe of `kinglet plan` makes to each tensor")
      .Placeholder("RECIPE.json");
  report.Add("--passage", options->passage, "most words to show one by one")
      .Between(uint64_t{0}, kMostPassage)
      .Placeholder("N")
      .ShowDefault();
  report.Add("--tokens", options->timed, "number of steps to time in each mode")
      .Between(uint64_t{1}, kMostTimed)
      .Placeholder("N")
      .ShowDefault();
  report.Footer(
      "The page needs no network and no script; --json prints its numbers too.\n\n"
      "Example:\n  kinglet report model.kgl --text test.txt -o report.html");
  return {report, [options] { return CheckReport(*options); },
          [options](Console& console) { return Report(*options, console); }};
}

}  // namespace kinglet
