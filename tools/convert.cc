// kinglet convert: turns a checkpoint of a training code into a model file.
#include "converters/convert.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#ifdef __GLIBC__  // defined by <string>
#include <malloc.h>
#endif

#include "format/encoding.h"
#include "tools/commands.h"
#include "tools/convert_arguments.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"

namespace kinglet {
namespace {

struct CommandOptions {
  ConvertOptions convert;
  CheckpointChoice choice;
  bool json = false;
  std::string progress;  // "" or "json"
  std::string scale_by{kScaleByNames[0]}, round_by = "nearest", calibrate_by{kRangeRuleNames[0]};
};

// The enumerator of a name. REQUIRES: the name is one of them.
template <class Enum, size_t kCount>
Enum Named(const std::array<std::string_view, kCount>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

template <size_t kCount>
std::vector<std::string> Texts(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

std::string JsonSummary(const ConvertSummary& summary) {
  JsonLine line;
  line.Key("family").Text(summary.family).Key("tensors").Integer(summary.tensors);
  line.Key("parameters").Integer(summary.parameters);
  line.Key("nonzero_parameters").Integer(summary.nonzero_parameters);
  line.Key("checkpoint_size").Integer(summary.checkpoint_bytes);
  line.Key("file_size").Integer(summary.file_bytes);
  line.Key("ratio").Number(static_cast<double>(summary.file_bytes) /
                           static_cast<double>(summary.checkpoint_bytes));
  line.Key("bytes").BeginObject();
  for (const auto& [part, bytes] : summary.bytes_by_part) line.Key(part).Integer(bytes);
  line.EndObject().Key("notes").BeginArray();
  for (const std::string& note : summary.notes) line.Text(note);
  line.EndArray().Key("digest").Text(summary.digest);
  if (summary.golden_positions) {
    line.Key("golden_values").Integer(*summary.golden_positions);
    line.Key("largest_difference").Number(summary.golden_largest_difference);
  }
  return line.Finish();
}

// Conversion allocates and frees tensors one by one. After the first, glibc's adaptive threshold
// takes them from its heap, where a freed block below a live one does not return to the system: at
// a MicroNet's shapes that doubles the memory. A fixed threshold keeps each tensor in a mapping of
// its own, which is unmapped when freed.
void MapLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 17;  // glibc's initial threshold
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
#endif
}

Status RunConvert(const CommandOptions& options, Console& console) {
  MapLargeBlocks();
  ConvertOptions convert = options.convert;
  convert.scale_by = Named<ScaleBy>(kScaleByNames, options.scale_by);
  convert.calibrate_by = Named<RangeRule::By>(kRangeRuleNames, options.calibrate_by);
  convert.error_feedback = options.round_by == "feedback";
  TakeCheckpoints(options.choice, convert);
  Progress progress(ProgressFormOf(options.progress, console));
  convert.progress = [&](const std::string& text) { progress.Say(text); };
  KINGLET_ASSIGN_OR_RETURN(const ConvertSummary summary, Convert(convert));
  console.out.Write(options.json ? JsonSummary(summary) : SummaryText(summary));
  return Status();
}

}  // namespace

Command AddConvert(Arguments& program) {
  const auto options = std::make_shared<CommandOptions>();
  ConvertOptions& convert = options->convert;
  Arguments command =
      program.AddSubcommand("convert", "Turn a trained checkpoint into a model file");
  command.Add("CHECKPOINT", options->choice.checkpoints, "checkpoint file or folder")
      .Required()
      .Called("");
  command.Add("-o,--output", convert.output, "model file to write").Required().Called("M.kgl");
  AddCheckpointOptions(command, options->choice, convert);
  AddWordOptions(command, convert);
  command.Add("--bits", convert.bits, "quantise weights to N bits")
      .Between(kMinBits, kMaxBits)
      .Called("N");
  command
      .Add("--scale-by", options->scale_by,
           "scale a row of weights by its largest entry, or so that their squared error is least")
      .OneOf(Texts(kScaleByNames))
      .ShowDefault();
  command
      .Add("--round-by", options->round_by,
           "round each weight to the nearest integer, or so that the products on the text of "
           "--calibrate change least")
      .OneOf({"nearest", "feedback"})
      .ShowDefault();
  command
      .Add("--calibrate", convert.calibration_text,
           "quantise activations too, with the ranges measured on this text (for a model with an "
           "encoder: sentence pairs)")
      .Called("FILE");
  command
      .Add("--activation-bits", convert.activation_bits,
           "quantise activations to N bits (default: those of --bits)")
      .Between(kMinBits, kMaxBits)
      .Called("N");
  command
      .Add("--calibrate-by", options->calibrate_by,
           "ranges of activations: the largest value, a percentile of the values, or of least "
           "squared error")
      .OneOf(Texts(kRangeRuleNames))
      .ShowDefault();
  command
      .Add("--percentile", convert.percentile,
           "for --calibrate-by percentile: P percent of the values are not clipped (default: "
           "99.99)")
      .Called("P");
  AddNetworkOptions(command, convert);
  command
      .Add("--prune", convert.prune,
           "set the smallest weights to zero: this fraction of each tensor")
      .Between(0.0, 1.0)
      .Called("S");
  AddCacheOptions(command, convert);
  Option golden = command.Add(
      "--golden", convert.golden,
      "golden values to replay: lines of position<TAB>id<TAB>...<TAB>value; for a model with an "
      "encoder, sentence<TAB> comes first");
  Option ids =
      command.Add("--ids", convert.ids,
                  "token ids that the golden values belong to; for a model with an encoder, "
                  "one pair per line: source ids ||| target ids");
  golden.Needs(ids).Called("FILE");
  ids.Needs(golden).Called("FILE");
  command.Add("--tolerance", convert.tolerance, "largest accepted difference from a golden value")
      .NonNegative()
      .Called("X")
      .ShowDefault();
  command.AddFlag("--json", options->json, "print JSON Lines");
  AddProgress(command, options->progress);
  command.Footer(
      "Example:\n  kinglet convert models/ -o model.kgl --vocab vocab.txt --bits 9 "
      "--calibrate text.txt");
  return {command, [options] { return CheckAverage("convert", options->choice); },
          [options](Console& console) { return RunConvert(*options, console); }};
}

}  // namespace kinglet
