#include "tools/run_options.h"

#include <bit>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace kinglet {
namespace {

constexpr size_t kMaxThreads = 1024;

}  // namespace

void AddModelChoice(Arguments& arguments, RunOptions& options) {
  arguments.Add("M.kgl", options.model, "model file").Required().Placeholder("");
  // All backend names are accepted here; Model::Open refuses those that this build lacks.
  arguments.Add("--backend", options.backend, "what computes")
      .OneOf({"ref", "ref64", "cpu", "onednn", "cuda"})
      .ShowDefault();
}

void AddModelOptions(Arguments& arguments, RunOptions& options) {
  AddModelChoice(arguments, options);
  arguments.AddFlag("--json", options.json, "print JSON Lines");
}

void AddProgress(Arguments& arguments, std::string& progress) {
  arguments.Add("--progress", progress, "print progress as JSON Lines on standard error")
      .OneOf({"json"});
}

ProgressForm ProgressFormOf(const std::string& progress, const Console& console) {
  if (!progress.empty()) return ProgressForm::kJson;
  return console.errors_are_terminal ? ProgressForm::kLine : ProgressForm::kNone;
}

void AddThreads(Arguments& arguments, size_t& threads) {
  arguments.Add("--threads", threads, "use up to N threads")
      .Between(size_t{1}, kMaxThreads)
      .Placeholder("N")
      .ShowDefault();
}

void AddTeamOptions(Arguments& arguments, RunOptions& options, const std::string& lanes) {
  AddThreads(arguments, options.threads);
  arguments.Add("--lanes", options.lanes, lanes)
      .Between(size_t{1}, kMaxLanes)
      .Placeholder("N")
      .ShowDefault();
}

void AddRunOptions(Arguments& arguments, RunOptions& options, const std::string& lanes) {
  AddModelOptions(arguments, options);
  AddTeamOptions(arguments, options, lanes);
}

Result<std::shared_ptr<const Model>> OpenModel(const RunOptions& options) {
  KINGLET_RETURN_IF_ERROR(FindBackend(options.backend).status());
  ModelOptions model_options;
  model_options.backend = options.backend;
  return Model::Open(options.model, model_options);
}

Result<std::shared_ptr<const Model>> OpenWholeModel(const RunOptions& options) {
  KINGLET_RETURN_IF_ERROR(FindBackend(options.backend).status());
  KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::Open(options.model));
  ModelOptions model_options;
  model_options.backend = options.backend;
  return Model::FromFile(std::move(file), model_options);
}

Status RequireNoSource(const Model& model, const std::string& command) {
  if (IsMaskedModel(model.file().description())) {
    return Status::Refusal(KINGLET_UNSUPPORTED, command, "model", "a language model",
                           "a masked model, for `fill` and `embed`");
  }
  if (!HasEncoder(model.file().description())) return Status();
  return Status::Refusal(KINGLET_UNSUPPORTED, command, "model", "a language model",
                         "one with an encoder, for `translate` and `score --pairs`");
}

int NumberDigits(const Model& model) {
  return model.backend().real_bytes == sizeof(double) ? std::numeric_limits<double>::max_digits10
                                                      : std::numeric_limits<float>::max_digits10;
}

std::string NumberText(double number, const Model& model) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.*g", NumberDigits(model), number);
  return text;
}

std::string HexBits(double value, const Model& model) {
  char text[20];
  if (model.backend().real_bytes == sizeof(double)) {
    std::snprintf(text, sizeof(text), "%016llx",
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(value)));
  } else {
    std::snprintf(text, sizeof(text), "%08x",
                  static_cast<unsigned>(std::bit_cast<uint32_t>(static_cast<float>(value))));
  }
  return text;
}

}  // namespace kinglet
