// The figures of one model in `kinglet report`: those of inspect, count, score and bench, from the
// functions that these commands call.
#ifndef KINGLET_TOOLS_REPORT_MODEL_REPORT_H_
#define KINGLET_TOOLS_REPORT_MODEL_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/bench_report.h"
#include "tools/console.h"
#include "tools/count_report.h"
#include "tools/model_facts.h"
#include "tools/report/text_measure.h"
#include "tools/run_options.h"

namespace kinglet {

struct ReportOptions {
  RunOptions run;  // of the first model
  std::string second, text, ids, output;
  std::string sensitivity, plan;  // files to show; may be empty
  uint64_t passage = 400;         // words shown, at most
  uint64_t timed = 0;             // steps of each mode

  const std::string& input_name() const { return text.empty() ? ids : text; }
};

struct ModelReport {
  std::string path;
  std::shared_ptr<const Model> model;
  ModelFacts facts;
  ExecutedCount count;
  ExecutedStorage storage;
  CountBasis counted;
  TextFigures text;
  std::string protocol;            // of the losses
  std::vector<BenchResult> bench;  // by mode: full, score, topk
  bool timed_on_text = false;      // otherwise on random ids
};

// Reads the text, then measures times. Errors: those of opening the model and of reading the text;
// KINGLET_UNSUPPORTED for a model that does not predict texts; KINGLET_INVALID_ARGUMENT if no token
// was scored.
Result<ModelReport> MeasureModel(const ReportOptions& options, const std::string& path,
                                 const Console& console);

// A line of JSON with the lines of the commands in it.
std::string ReportJson(const ModelReport& report);

}  // namespace kinglet

#endif  // KINGLET_TOOLS_REPORT_MODEL_REPORT_H_
