// kinglet plan: chooses sparsities, bits and codes for a target and writes them as a recipe.
#include "converters/planning/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "converters/convert.h"
#include "converters/convert_options.h"
#include "converters/output_path.h"
#include "converters/planning/plan_recipe.h"
#include "format/write_file.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/planned_model.h"
#include "tools/run_options.h"
#include "tools/sensitivity_file.h"
#include "tools/text_tokens.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct PlanCommand {
  std::string sensitivities, output, check, check_ids, progress;
  std::string rules = "micronet-2019";
  std::optional<double> sparsity, operations, perplexity;
  std::optional<uint64_t> size;
  bool json = false;
};

// What --check measured.
struct MeasuredPlan {
  double nll = 0, baseline_nll = 0;
  uint64_t scored = 0, bytes = 0;
  std::optional<double> standard_error;  // of the difference of both; a short text has none
  double More() const { return nll - baseline_nll; }
};

// By how many standard errors the measured loss differs from the predicted one, if by more than
// two.
std::optional<double> ErrorsOff(const MeasuredPlan& measured, double predicted_more) {
  constexpr double kMostErrors = 2;
  const double difference = std::fabs(measured.More() - predicted_more);
  if (!measured.standard_error || !(difference > kMostErrors * *measured.standard_error)) return {};
  return difference / *measured.standard_error;
}

PlanTarget TargetOf(const PlanCommand& command) {
  if (command.sparsity) return SparsityTarget{*command.sparsity};
  if (command.size) return SizeTarget{*command.size};
  if (command.operations) return OperationsTarget{*command.operations, command.rules == "executed"};
  return PerplexityTarget{*command.perplexity};
}

Result<TextLoss> CheckedLoss(const TokenInput& tokens,
                             const std::shared_ptr<const ModelFile>& file) {
  KINGLET_ASSIGN_OR_RETURN(const auto model, Model::FromFile(file, ModelOptions{}));
  return LossOfText(model, tokens, {});
}

Result<MeasuredPlan> CheckPlan(const PlanCommand& command, const SensitivityFile& file,
                               Console& console) {
  Progress progress(ProgressFormOf(command.progress, console));
  MeasuredPlan measured;
  progress.Say("converting by " + command.output);
  KINGLET_ASSIGN_OR_RETURN(const auto planned,
                           PlannedModel(file.convert, command.output, command.output));
  measured.bytes = planned->file_size();
  progress.Say("the loss of the planned model");
  // Both models have the same tokenizer.
  KINGLET_ASSIGN_OR_RETURN(const TokenInput tokens,
                           OpenTextTokens(command.check, command.check_ids, planned));
  KINGLET_ASSIGN_OR_RETURN(const TextLoss of_plan, CheckedLoss(tokens, planned));
  progress.Say("the loss of the unchanged model");
  KINGLET_ASSIGN_OR_RETURN(const auto unchanged, PlannedModel(file.convert, "", command.output));
  if (unchanged->digest() != file.digest) {
    return Status::Refusal(
        KINGLET_MISMATCH, "plan", command.sensitivities,
        "sensitivities of " + file.convert.checkpoint + " as it is, digest " + unchanged->digest(),
        "digest " + file.digest);
  }
  KINGLET_ASSIGN_OR_RETURN(const TextLoss of_unchanged, CheckedLoss(tokens, unchanged));
  measured.nll = of_plan.nll;
  measured.baseline_nll = of_unchanged.nll;
  measured.scored = of_plan.scored;
  if (of_plan.blocks.size() > 1) measured.standard_error = DifferenceError(of_plan, of_unchanged);
  return measured;
}

void PrintPlanJson(const SensitivityFile& file, const CompressionPlan& plan,
                   const std::optional<MeasuredPlan>& measured, Console& console) {
  JsonLine line;
  line.Key("predicted").BeginObject().Key("nll").Number(plan.nll);
  line.Key("ppl").Number(std::exp(plan.nll));
  line.Key("more").Number(plan.nll - file.record.nll);
  line.Key("bytes").Integer(static_cast<uint64_t>(plan.bytes));
  line.Key("sparsity").Number(plan.sparsity);
  if (plan.threshold) line.Key("threshold").Number(*plan.threshold);
  if (plan.operations) line.Key("operations").Number(*plan.operations);
  line.EndObject();
  if (measured) {
    line.Key("measured").BeginObject().Key("nll").Number(measured->nll);
    line.Key("ppl").Number(std::exp(measured->nll));
    line.Key("more").Number(measured->More()).Key("standard_error");
    if (measured->standard_error) {
      line.Number(*measured->standard_error);
    } else {
      line.Null();
    }
    line.Key("bytes").Integer(measured->bytes).Key("scored").Integer(measured->scored);
    line.EndObject();
  }
  line.Key("tensors").BeginArray();
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupPlan& group = plan.groups[i];
    line.BeginObject().Key("tensor").Text(file.record.groups[i].name);
    if (group.sparsity) line.Key("sparsity").Number(*group.sparsity);
    if (group.bits) line.Key("bits").Integer(static_cast<uint64_t>(*group.bits));
    if (group.codes) {
      line.Key("positions").Integer(group.codes->positions);
      line.Key("sub_vectors").Integer(group.codes->sub_vectors);
      AddForm(*group.codes, line);
    }
    if (group.rank) line.Key("rank").Integer(*group.rank);
    line.Key("more").Number(group.loss).Key("bytes").Number(group.bytes).EndObject();
  }
  line.EndArray();
  console.out.Write(line.Finish());
}

std::string PlanNumber(const char* format, double number) {
  char text[60];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

void PrintPlanText(const SensitivityFile& file, const CompressionPlan& plan,
                   const std::optional<MeasuredPlan>& measured, Console& console) {
  size_t width = 6;
  for (const MeasuredGroup& group : file.record.groups) {
    width = std::max(width, DisplayText(group.name).size());
  }
  const auto row = [&](const std::string& tensor, const std::string& form, const std::string& loss,
                       const std::string& bytes) {
    std::string name = DisplayText(tensor);
    name.resize(std::max(name.size(), width), ' ');
    const std::string what = form + std::string(form.size() < 24 ? 24 - form.size() : 0, ' ');
    const auto right = [](const std::string& text) {
      return std::string(text.size() < 12 ? 12 - text.size() : 0, ' ') + text;
    };
    console.out.Write(name + "  " + what + right(loss) + right(bytes) + "\n");
  };
  row("tensor", "form", "more loss", "bytes");
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    const GroupPlan& group = plan.groups[i];
    std::string form;
    if (group.codes) form = ChangeText(*group.codes);
    if (group.rank) form = ChangeText(RankChange{*group.rank});
    if (group.bits) form += (form.empty() ? "" : ", ") + ChangeText(BitsChange{*group.bits});
    if (group.sparsity) {
      form += (form.empty() ? "" : ", ") + PlanNumber("%.1f %% zeros", 100 * *group.sparsity);
    }
    row(file.record.groups[i].name, form.empty() ? "unchanged" : form,
        PlanNumber("%.6f", group.loss), Grouped(static_cast<uint64_t>(group.bytes)));
  }
  const auto fact = [&](const char* name, const std::string& value) {
    console.out.Write(FactLine(name, value));
  };
  console.out.Write("\n");
  fact("predicted", "perplexity " + PlanNumber("%.4f", std::exp(plan.nll)) + " on " + file.text +
                        ", " + PlanNumber("%+.6f nats; ", plan.nll - file.record.nll) +
                        Grouped(static_cast<uint64_t>(plan.bytes)) + " bytes, " +
                        PlanNumber("%.1f %% zeros", 100 * plan.sparsity));
  if (plan.threshold) fact("threshold", PlanNumber("%.6f nats for each tensor", *plan.threshold));
  if (plan.operations) fact("operations", PlanNumber("%.0f a token", *plan.operations));
  if (!measured) return;
  fact("measured", "perplexity " + PlanNumber("%.4f", std::exp(measured->nll)) + ", " +
                       PlanNumber("%+.6f nats; ", measured->More()) + Grouped(measured->bytes) +
                       " bytes; unchanged: perplexity " +
                       PlanNumber("%.4f", std::exp(measured->baseline_nll)));
}

Status RunPlan(const PlanCommand& command, Console& console) {
  KINGLET_RETURN_IF_ERROR(CheckOutputPath(
      "plan", command.output, {&command.sensitivities, &command.check, &command.check_ids}));
  KINGLET_ASSIGN_OR_RETURN(const SensitivityFile file, ReadSensitivityFile(command.sensitivities));
  KINGLET_ASSIGN_OR_RETURN(const CompressionPlan plan, MakePlan(file.record, TargetOf(command)));
  NoteUnused(file.record);
  KINGLET_ASSIGN_OR_RETURN(const std::string recipe,
                           PlanRecipe(file.record, plan, QuantisersOf(file.convert, command.output),
                                      file.convert.recipe));
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(std::as_bytes(std::span(recipe)), command.output));
  std::optional<MeasuredPlan> measured;
  if (!command.check.empty() || !command.check_ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(measured, CheckPlan(command, file, console));
  }
  if (measured) {
    const auto errors = ErrorsOff(*measured, plan.nll - file.record.nll);
    if (errors) {
      PrintNote("the plan loses " + PlanNumber("%+.6f nats", measured->More()) + ", predicted " +
                PlanNumber("%+.6f", plan.nll - file.record.nll) + ": " +
                PlanNumber("%.1f", *errors) +
                " standard errors off. Trust the measured loss, or measure the sensitivities on "
                "more text of the same kind");
    }
  }
  if (command.json) {
    PrintPlanJson(file, plan, measured, console);
  } else {
    PrintPlanText(file, plan, measured, console);
  }
  return Status();
}

Status CheckPlanInput(const PlanCommand& command) {
  const int targets = command.sparsity.has_value() + command.size.has_value() +
                      command.operations.has_value() + command.perplexity.has_value();
  const auto refuse = [](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "plan", expected, found);
  };
  if (targets != 1) {
    return refuse("--sparsity R, --size BYTES, --operations N or --ppl +X",
                  targets == 0 ? "none of them" : "several");
  }
  if (!command.check.empty() && !command.check_ids.empty()) {
    return refuse("--check TEXT or --check-ids FILE", "both");
  }
  if (command.sparsity && !(*command.sparsity >= 0 && *command.sparsity < 1)) {
    return refuse("a sparsity from 0 to below 1", "another");
  }
  if (command.perplexity && !(*command.perplexity >= 0 && std::isfinite(*command.perplexity))) {
    return refuse("a perplexity from +0", "another");
  }
  return Status();
}

}  // namespace

Command AddPlan(Arguments& program) {
  const auto options = std::make_shared<PlanCommand>();
  Arguments command = program.AddSubcommand(
      "plan", "Choose sparsities, bits and codes from a sensitivity file, for a target");
  command.Add("S.json", options->sensitivities, "file that `kinglet sensitivity` wrote")
      .Required()
      .Placeholder("");
  command.Add("-o,--output", options->output, "recipe to write")
      .Required()
      .Placeholder("RECIPE.json");
  command
      .Add("--sparsity", options->sparsity,
           "fraction of zeros in all tensors together, by one threshold of loss")
      .Placeholder("R");
  command.Add("--size", options->size, "largest model file").Placeholder("BYTES");
  Option operations = command.Add("--operations", options->operations, "most operations per token");
  operations.Placeholder("N");
  command
      .Add("--rules", options->rules,
           "how operations are counted; under executed only codes change the count, under "
           "micronet-2019 sparsities are chosen")
      .OneOf({"executed", "micronet-2019"})
      .Needs(operations)
      .ShowDefault();
  command
      .Add("--ppl", options->perplexity,
           "smallest model whose perplexity on the file's text rises by at most X")
      .Placeholder("+X");
  command.Add("--check", options->check, "convert by the plan and measure it on this text")
      .Placeholder(kFileOrStandardInput);
  command
      .Add("--check-ids", options->check_ids,
           "convert by the plan and measure it on these token ids")
      .Placeholder(kFileOrStandardInput);
  command.AddFlag("--json", options->json, "print JSON Lines");
  AddProgress(command, options->progress);
  command.Footer("Example:\n  kinglet plan s.json --size 1200000 -o plan.json --check test.txt");
  return {command, [options] { return CheckPlanInput(*options); },
          [options](Console& console) { return RunPlan(*options, console); }};
}

}  // namespace kinglet
