// kinglet convert: turns a checkpoint of a framework into a model file.
#include "converters/convert.h"

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#ifdef __GLIBC__  // defined by <string>
#include <malloc.h>
#endif

#include "format/encoding.h"
#include "tools/commands.h"
#include "tools/convert_arguments.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct CommandOptions {
  ConvertOptions convert;
  CheckpointChoice choice;
  bool json = false;
  std::string progress;  // "" or "json"
  QuantiserChoice quantisers;
};

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
// takes them from its heap, where freed memory below a live allocation does not return to the
// system: at a MicroNet's shapes that doubles the memory. A fixed threshold gives each tensor a
// mapping of its own, which is unmapped when freed.
void MapLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 17;  // glibc's initial threshold
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
#endif
}

// What to do with the file that was written.
std::string NextStep(const std::string& path, const ModelFile& file) {
  const ModelDescription& description = file.description();
  const bool words = file.vocabulary() != nullptr;
  std::string text = "wrote " + path + "\n";
  if (!words) text += "the model has ids only; --vocab FILE gives it words\n";
  const auto next = [&](const char* command, const std::string& input) {
    return text + "next: kinglet " + command + " " + path + " " + input + "\n";
  };
  const std::string input = words ? "--text FILE" : "--ids FILE";
  if (IsMaskedModel(description)) return next("fill", words ? "< FILE" : input);
  if (HasEncoder(description)) return next("translate", input);
  const bool predicts = FindBlock<AdaptiveSoftmax>(description) != nullptr;
  return predicts ? next("score", input) : next("embed", "--ids FILE");
}

Status RunConvert(const CommandOptions& options, Console& console) {
  MapLargeBlocks();
  ConvertOptions convert = options.convert;
  TakeQuantisers(options.quantisers, convert);
  TakeCheckpoints(options.choice, convert);
  Progress progress(ProgressFormOf(options.progress, console));
  convert.progress = [&](const std::string& text) { progress.Say(text); };
  KINGLET_ASSIGN_OR_RETURN(const ConvertSummary summary, Convert(convert));
  if (options.json) {
    console.out.Write(JsonSummary(summary));
    return Status();
  }
  KINGLET_ASSIGN_OR_RETURN(const auto file, ModelFile::Open(convert.output));
  console.out.Write(TerminalText(SummaryText(summary) + NextStep(convert.output, *file)));
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
      .Placeholder("");
  command.Add("-o,--output", convert.output, "model file to write").Required().Placeholder("M.kgl");
  AddCheckpointOptions(command, options->choice, convert);
  AddWordOptions(command, convert);
  command.Add("--bits", convert.bits, "quantise weights to N bits")
      .Between(kMinBits, kMaxBits)
      .Placeholder("N");
  AddRoundingOptions(command, options->quantisers);
  command
      .Add("--calibrate", convert.calibration_text,
           "quantise activations too, with the ranges measured on this text (for a model without a "
           "vocabulary: its ids; with an encoder: sentence pairs)")
      .Placeholder("FILE");
  command
      .Add("--activation-bits", convert.activation_bits,
           "quantise activations to N bits (default: those of --bits)")
      .Between(kMinBits, kMaxBits)
      .Placeholder("N");
  AddRangeOptions(command, options->quantisers, convert);
  AddNetworkOptions(command, convert);
  command
      .Add("--prune", convert.prune,
           "set the smallest weights to zero: this fraction of each tensor")
      .Between(0.0, 1.0)
      .Placeholder("S");
  AddCacheOptions(command, convert);
  Option golden = command.Add(
      "--golden", convert.golden,
      "golden values to replay: lines of position<TAB>id<TAB>...<TAB>value; for a model with an "
      "encoder, or a masked model, sentence<TAB> comes first");
  Option ids =
      command.Add("--ids", convert.ids,
                  "token ids that the golden values belong to; for a model with an encoder, "
                  "one pair per line: source ids ||| target ids; for a masked model, one text per "
                  "line with [CLS] and [SEP] in it");
  golden.Needs(ids).Placeholder("FILE");
  ids.Needs(golden).Placeholder("FILE");
  command
      .Add("--segments", convert.segments,
           "the segment number of each of these ids, for a masked model (default: 0 for all)")
      .Needs(golden)
      .Placeholder("FILE");
  command.Add("--tolerance", convert.tolerance, "largest accepted difference from a golden value")
      .NonNegative()
      .Placeholder("X")
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
