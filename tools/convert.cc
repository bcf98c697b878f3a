// kinglet convert: a training code's checkpoint becomes a model file.
#include "converters/convert.h"

#include <memory>
#include <string>

#ifdef __GLIBC__  // which <string> has defined
#include <malloc.h>
#endif

#include "format/encoding.h"
#include "tools/commands.h"
#include "tools/json_lines.h"

namespace kinglet {
namespace {

struct CommandOptions {
  ConvertOptions convert;
  bool json = false;
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

// Tensors come and go one by one. glibc takes all but the first from one heap, where what is freed
// below something that stays is lost: twice the memory at a MicroNet's shapes. Mapped one by one,
// they go back to the system.
void MapLargeBlocks() {
#ifdef __GLIBC__
  constexpr int kLarge = 1 << 17;  // where glibc starts, before it adapts
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
#endif
}

Status RunConvert(const CommandOptions& options, Console& console) {
  MapLargeBlocks();
  ConvertOptions convert = options.convert;
  Progress progress(console.errors_are_terminal);
  convert.progress = [&progress](const std::string& text) { progress.Say(text); };
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
  command.Add("CHECKPOINT", convert.checkpoint, "a file or a folder").Required().Called("");
  command.Add("-o,--output", convert.output, "the model file to write").Required().Called("M.kgl");
  command.Add("--family", convert.family, "training code (default: recognised)").Called("F");
  command.Add("--config", convert.config, "configuration (default: beside the checkpoint)")
      .Called("FILE");
  command.Add("--vocab", convert.vocabulary, "one token per line in id order").Called("FILE");
  command.Add("--bits", convert.bits, "quantise weights to N bits")
      .Between(kMinBits, kMaxBits)
      .Called("N");
  command
      .Add("--calibrate", convert.calibration_text,
           "quantise activations too, for the ranges seen on this text (with an encoder: pairs)")
      .Called("TEXT");
  command.Add("--recipe", convert.recipe,
              "JSON that names blocks, tensors and passes, docs/RECIPES.md (default: "
              "model.recipe.json beside model.pt)");
  command
      .Add("--keep-define", convert.define_cache_rows,
           "keep a DeFINE unit in the model and cache N of its rows")
      .Called("N");
  command
      .Add("--mem-len", convert.memory_length,
           "memory of a Transformer-XL, or last position of an OpenNMT model")
      .Called("N");
  command.Add("--prune", convert.prune, "fraction of smallest weights set to zero")
      .Between(0.0, 1.0)
      .Called("S");
  command.Add("--cache", convert.cache_capacity, "pairs of the neural cache, 0 removes it")
      .Called("N");
  command.Add("--cache-theta", convert.cache_theta, "sharpness of the cache").Called("T");
  command.Add("--cache-lambda", convert.cache_lambda, "weight of the cache").Called("L");
  Option golden = command.Add(
      "--golden", convert.golden,
      "known answers to replay: position<TAB>id<TAB>...<TAB>value, with an encoder behind "
      "sentence<TAB>");
  Option ids = command.Add("--ids", convert.ids,
                           "the token ids the known answers belong to; with an encoder "
                           "source ids ||| target ids, a pair on each line");
  golden.Needs(ids).Called("G");
  ids.Needs(golden).Called("I");
  command.Add("--tolerance", convert.tolerance, "largest difference to a known answer")
      .NonNegative()
      .Called("X")
      .ShowDefault();
  command.AddFlag("--json", options->json, "print JSON Lines");
  command.Footer(
      "Example:\n  kinglet convert models/ -o model.kgl --vocab vocab.txt --bits 9 "
      "--calibrate text.txt");
  return {command, [] { return Status(); },
          [options](Console& console) { return RunConvert(*options, console); }};
}

}  // namespace kinglet
