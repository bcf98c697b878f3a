// kinglet convert: turns a checkpoint of a training code into a model file.
#include "converters/convert.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#ifdef __GLIBC__  // defined by <string>
#include <malloc.h>
#endif

#include "format/encoding.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"

namespace kinglet {
namespace {

struct CommandOptions {
  ConvertOptions convert;
  std::vector<std::string> checkpoints;
  bool average = false;
  bool json = false;
  std::string progress;  // "" or "json"
};

Status CheckAverage(const CommandOptions& options) {
  if (options.average == (options.checkpoints.size() > 1)) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "convert",
                         options.average ? "two or more checkpoints to --average"
                                         : "one checkpoint, or --average with more",
                         std::to_string(options.checkpoints.size()));
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
  convert.checkpoint = options.checkpoints.front();
  convert.averaged.assign(options.checkpoints.begin() + 1, options.checkpoints.end());
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
  command.Add("CHECKPOINT", options->checkpoints, "checkpoint file or folder")
      .Required()
      .Called("");
  command.Add("-o,--output", convert.output, "model file to write").Required().Called("M.kgl");
  command
      .Add("--family", convert.family,
           "training code that wrote the checkpoint (default: detected)")
      .Called("NAME");
  command
      .Add("--config", convert.config,
           "training configuration (default: the file beside the checkpoint)")
      .Called("FILE");
  command.AddFlag("--average", options->average, "average the values of several checkpoints");
  Option vocabulary = command.Add(
      "--vocab", convert.vocabulary,
      "vocabulary: one token per line, in id order, or a JSON array of strings (default: "
      "the token list that the training code left in the folder, if any)");
  vocabulary.Called("FILE");
  command
      .Add("--vocab-from", convert.vocabulary_texts,
           "make the vocabulary of the texts that the training code numbered its words by")
      .Excludes(vocabulary)
      .Called("FILES");
  command
      .Add("--tokenizer", convert.tokenizer,
           "how the model cuts text: a SentencePiece model, byte-pair codes, or spaces, wikitext "
           "or characters")
      .Called("FILE");
  command.AddFlag("--lowercase", convert.lower_case, "lower-case text first (with --tokenizer)");
  command.Add("--bits", convert.bits, "quantise weights to N bits")
      .Between(kMinBits, kMaxBits)
      .Called("N");
  command
      .Add("--calibrate", convert.calibration_text,
           "quantise activations too, with the ranges measured on this text (for a model with an "
           "encoder: sentence pairs)")
      .Called("FILE");
  command
      .Add("--recipe", convert.recipe,
           "JSON file that names blocks, tensors and passes, see docs/RECIPES.md (default: "
           "model.recipe.json beside model.pt)")
      .Called("FILE");
  command
      .Add("--keep-define", convert.define_cache_rows,
           "keep a DeFINE unit in the model and cache N of its rows")
      .Called("N");
  command
      .Add("--mem-len", convert.memory_length,
           "memory length of a Transformer-XL, or highest position of an OpenNMT model")
      .Called("N");
  command
      .Add("--prune", convert.prune,
           "set the smallest weights to zero: this fraction of each tensor")
      .Between(0.0, 1.0)
      .Called("S");
  command
      .Add("--cache", convert.cache_capacity, "capacity of the neural cache in pairs; 0: no cache")
      .Called("N");
  command.Add("--cache-theta", convert.cache_theta, "theta of the neural cache: sharpness")
      .Called("T");
  command
      .Add("--cache-lambda", convert.cache_lambda,
           "lambda of the neural cache: weight in the mixture")
      .Called("L");
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
  return {command, [options] { return CheckAverage(*options); },
          [options](Console& console) { return RunConvert(*options, console); }};
}

}  // namespace kinglet
