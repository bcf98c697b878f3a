// kinglet verify: is the file undamaged, and does it still compute what it should?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "format/message_text.h"
#include "runtime/session.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/refusal_parts.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct VerifyOptions {
  std::string model;
  bool json = false;
};

struct VerifyFacts {
  std::string digest;
  uint64_t golden_values = 0;  // replayed; 0: the file has none
  double largest_difference = 0;
};

Status GoldenMismatch(const std::string& path, size_t position, double expected, double found,
                      double tolerance) {
  return Status::Refusal(KINGLET_MISMATCH, path, Numbered("golden position", position),
                         NumberText(expected) + " within " + NumberText(tolerance),
                         NumberText(found));
}

Status ReplayGolden(const std::string& path, const std::shared_ptr<const ModelFile>& file,
                    const GoldenVector& golden, VerifyFacts& facts) {
  ModelOptions model_options;
  model_options.backend = "ref64";
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::FromFile(file, model_options));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  for (size_t i = 0; i < golden.log_probabilities.size(); ++i) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(golden.ids[i]));
    KINGLET_ASSIGN_OR_RETURN(const double found, session->LogProbability(golden.ids[i + 1]));
    const double expected = golden.log_probabilities[i];
    // Equal infinities differ by nothing, though not in arithmetic.
    const double difference = found == expected ? 0.0 : std::abs(found - expected);
    if (!(difference <= golden.tolerance)) {
      return GoldenMismatch(path, i + 1, expected, found, golden.tolerance);
    }
    facts.largest_difference = std::max(facts.largest_difference, difference);
    ++facts.golden_values;
  }
  return Status();
}

Result<VerifyFacts> CheckModel(const std::string& path) {
  KINGLET_ASSIGN_OR_RETURN(const auto file, ModelFile::Open(path));
  VerifyFacts facts;
  facts.digest = file->digest();
  if (const auto& golden = file->description().golden) {
    KINGLET_RETURN_IF_ERROR(ReplayGolden(path, file, *golden, facts));
  }
  return facts;
}

std::string FailureLine(const std::string& path, const Status& status) {
  const RefusalParts parts = SplitRefusal(status.message(), path);
  JsonLine line;
  line.Key("ok").Boolean(false).Key("where").Text(parts.where);
  line.Key("expected").Text(parts.expected).Key("found").Text(parts.found);
  return line.Finish();
}

Status Verify(const VerifyOptions& options, Console& console) {
  const Result<VerifyFacts> checked = CheckModel(options.model);
  if (!checked.ok()) {
    if (options.json) console.out.Write(FailureLine(options.model, checked.status()));
    return checked.status();
  }
  const VerifyFacts& facts = *checked;
  if (options.json) {
    JsonLine line;
    line.Key("ok").Boolean(true).Key("digest").Text(facts.digest);
    line.Key("golden_values").Integer(facts.golden_values);
    if (facts.golden_values > 0) line.Key("largest_difference").Number(facts.largest_difference);
    console.out.Write(line.Finish());
    return Status();
  }
  std::string text = DisplayText(options.model) + ": undamaged, digest " + facts.digest;
  text += facts.golden_values == 0 ? "; it carries no golden values"
                                   : "; " + Grouped(facts.golden_values) +
                                         " golden values replayed, largest difference " +
                                         NumberText(facts.largest_difference);
  console.out.Write(text + "\n");
  return Status();
}

}  // namespace

Command AddVerify(CLI::App& app) {
  const auto options = std::make_shared<VerifyOptions>();
  CLI::App* verify =
      app.add_subcommand("verify", "Check every byte of a model, and replay its golden values");
  verify->add_option("model", options->model, "the model file")->required()->type_name("M.kgl");
  verify->add_flag("--json", options->json, "print JSON Lines");
  verify->footer("Example:\n  kinglet verify model.kgl && echo undamaged");
  return {verify, [] { return Status(); },
          [options](Console& console) { return Verify(*options, console); }};
}

}  // namespace kinglet
