// kinglet sensitivity: what pruning, quantising or coding each tensor of a model costs.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "converters/convert_options.h"
#include "format/limits.h"
#include "tools/commands.h"
#include "tools/convert_arguments.h"
#include "tools/option_lists.h"
#include "tools/run_options.h"
#include "tools/sensitivity_file.h"
#include "tools/sensitivity_run.h"

namespace kinglet {
namespace {

struct SensitivityCommand {
  CheckpointChoice choice;
  QuantiserChoice quantisers;
  ConvertOptions convert;
  std::string text, ids, output, progress;
  std::vector<std::string> tensors;
  std::string sparsities = "0.3,0.4,0.5,0.6,0.7,0.8,0.9", bits = "2,3,4,5,6,7,8,9", codes, sums,
              slim, hashed, ranks;
  int rest_bits = 9;
  size_t threads = 1;
};

// An option that is not given has no values.
std::vector<std::string> SplitAtCommas(const std::string& text) {
  return text.empty() ? std::vector<std::string>() : SplitAt(',', text);
}

Status ReadCodes(const char* option, const std::string& text, CodeForm form,
                 std::vector<TensorChange>& changes) {
  for (const std::string& part : SplitAtCommas(text)) {
    CodesChange change;
    change.form = form;
    const size_t times = part.find('x');
    if (times == std::string::npos ||
        !ReadWhole(std::string_view(part).substr(0, times), change.positions) ||
        !ReadWhole(std::string_view(part).substr(times + 1), change.sub_vectors) ||
        change.positions == 0 || change.positions > kMaxExtent ||
        change.sub_vectors < change.positions || change.sub_vectors > kMaxDimension) {
      return RefuseList(option, "POSITIONSxSUBVECTORS, at least a sub-vector for each position",
                        part);
    }
    changes.emplace_back(change);
  }
  return {};
}

// The changes that each tensor gets, in the order of the options.
Result<std::vector<TensorChange>> ReadChanges(const SensitivityCommand& command) {
  std::vector<TensorChange> changes;
  for (const std::string& part : SplitAtCommas(command.sparsities)) {
    SparsityChange change;
    if (!ReadWhole(part, change.fraction) || !(change.fraction >= 0 && change.fraction < 1)) {
      return RefuseList("--sparsities", "fractions from 0 to below 1, separated by commas", part);
    }
    changes.emplace_back(change);
  }
  for (const std::string& part : SplitAtCommas(command.bits)) {
    BitsChange change;
    if (!ReadWhole(part, change.bits) || change.bits < kMinBits || change.bits > kMaxBits) {
      return RefuseList("--bits", BitsText() + ", separated by commas", part);
    }
    changes.emplace_back(change);
  }
  for (const auto& [option, text, form] :
       {std::tuple("--codes", &command.codes, CodeForm::kProduct),
        std::tuple("--sums", &command.sums, CodeForm::kSum),
        std::tuple("--slim", &command.slim, CodeForm::kSlim),
        std::tuple("--hashed", &command.hashed, CodeForm::kHashed)}) {
    KINGLET_RETURN_IF_ERROR(ReadCodes(option, *text, form, changes));
  }
  for (const std::string& part : SplitAtCommas(command.ranks)) {
    RankChange change;
    if (!ReadWhole(part, change.rank) || change.rank == 0 || change.rank > kMaxExtent) {
      return RefuseList("--ranks", "ranks from 1, separated by commas", part);
    }
    changes.emplace_back(change);
  }
  for (size_t i = 0; i < changes.size(); ++i) {
    if (std::find(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(i), changes[i]) !=
        changes.begin() + static_cast<std::ptrdiff_t>(i)) {
      return RefuseList("sensitivity", "each change once", ChangeText(changes[i]));
    }
  }
  if (!changes.empty()) return changes;
  return RefuseList("sensitivity",
                    "--sparsities, --bits, --codes, --sums, --slim, --hashed or --ranks", "");
}

// Checks the quantisers as the conversion of the rest's model will.
Status CheckQuantisers(const SensitivityCommand& command) {
  ConvertOptions convert = command.convert;
  convert.bits = command.rest_bits;
  return CheckQuantisation(convert);
}

Status RunSensitivity(const SensitivityCommand& command, Console& console) {
  SensitivityCommand taken = command;
  TakeCheckpoints(command.choice, taken.convert);
  TakeQuantisers(command.quantisers, taken.convert);
  KINGLET_RETURN_IF_ERROR(CheckQuantisers(taken));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<TensorChange> changes, ReadChanges(taken));
  SensitivityRequest request;
  request.convert = taken.convert;
  request.text = taken.text;
  request.ids = taken.ids;
  request.output = taken.output;
  request.tensors = taken.tensors;
  request.changes = [&changes](const Shape&) { return changes; };
  request.rest_bits = taken.rest_bits;
  request.threads = taken.threads;
  Progress progress(ProgressFormOf(command.progress, console));
  KINGLET_ASSIGN_OR_RETURN(const SensitivityTotals totals, RunSensitivities(request, progress));
  console.out.Write(FactLine("tensors", Grouped(totals.groups)));
  console.out.Write(FactLine("changes", Grouped(totals.changes) + ", of which " +
                                            Grouped(totals.first) + " were in the file and " +
                                            Grouped(totals.not_run) + " change no value"));
  console.out.Write(FactLine("tokens", Grouped(totals.tokens)));
  char text[120];
  std::snprintf(text, sizeof text,
                "%.1f s; converting and running the whole model for every change: %.1f s",
                totals.seconds, totals.seconds_apart);
  console.out.Write(FactLine("time", text));
  KINGLET_ASSIGN_OR_RETURN(const SensitivityFile written, ReadSensitivityFile(taken.output));
  NoteUnused(written.record);
  return {};
}

Status CheckSensitivityInput(const SensitivityCommand& command) {
  KINGLET_RETURN_IF_ERROR(CheckAverage("sensitivity", command.choice));
  KINGLET_RETURN_IF_ERROR(ReadChanges(command).status());
  if (command.ids.empty() != command.text.empty()) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "sensitivity",
                         "--text FILE or --ids FILE", command.ids.empty() ? "neither" : "both");
}

}  // namespace

Command AddSensitivity(Arguments& program) {
  const auto options = std::make_shared<SensitivityCommand>();
  ConvertOptions& convert = options->convert;
  Arguments command = program.AddSubcommand(
      "sensitivity", "Measure what pruning and quantising each tensor of a checkpoint costs");
  command.Add("CHECKPOINT", options->choice.checkpoints, "checkpoint file or folder")
      .Required()
      .Placeholder("");
  command
      .Add("-o,--output", options->output,
           "JSON Lines to write; the same run's unfinished file is continued")
      .Required()
      .Placeholder("S.json");
  command.Add("--text", options->text, "text; each line end becomes <eos>")
      .Placeholder(kFileOrStandardInput);
  command.Add("--ids", options->ids, "token ids: text, separated by white space, or .npy")
      .Placeholder(kFileOrStandardInput);
  command
      .Add("--tensors", options->tensors,
           "patterns of tensors; those of a pattern change together (default: each matrix that "
           "--bits or --prune of convert takes)")
      .Placeholder("PATTERNS");
  command.Add("--sparsities", options->sparsities, "fractions of zeros, separated by commas")
      .Placeholder("S,..")
      .ShowDefault();
  command.Add("--bits", options->bits, "bits of the weights, separated by commas")
      .Placeholder("N,..")
      .ShowDefault();
  command
      .Add("--codes", options->codes,
           "product quantisation of tables: codes a row and sub-vectors in all")
      .Placeholder("POSITIONSxSUBVECTORS,..");
  command.Add("--sums", options->sums, "summed codes of tables, likewise")
      .Placeholder("POSITIONSxVECTORS,..");
  command.Add("--slim", options->slim, "codes of sub-vectors that all positions share")
      .Placeholder("POSITIONSxSUBVECTORS,..");
  command.Add("--hashed", options->hashed, "codes that a hash gives and no file stores")
      .Placeholder("POSITIONSxSUBVECTORS,..");
  command.Add("--ranks", options->ranks, "low ranks of tables, separated by commas")
      .Placeholder("R,..");
  AddCheckpointOptions(command, options->choice, convert);
  AddWordOptions(command, convert);
  AddNetworkOptions(command, convert);
  command
      .Add("--calibrate", convert.calibration_text,
           "the plan quantises activations too, with the ranges measured on this text")
      .Placeholder("FILE");
  command
      .Add("--rest-bits", options->rest_bits,
           "the plan's bits of activations and of tensors that are not measured")
      .Between(kMinBits, kMaxBits)
      .Placeholder("N")
      .ShowDefault();
  AddRoundingOptions(command, options->quantisers);
  AddRangeOptions(command, options->quantisers, convert);
  AddCacheOptions(command, convert);
  AddThreads(command, options->threads);
  AddProgress(command, options->progress);
  command.Footer(
      "Example:\n  kinglet sensitivity models/ --vocab vocab.txt --text validation.txt -o s.json");
  return {command, [options] { return CheckSensitivityInput(*options); },
          [options](Console& console) { return RunSensitivity(*options, console); }};
}

}  // namespace kinglet
