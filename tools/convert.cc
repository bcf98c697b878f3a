// kinglet convert: a training code's checkpoint becomes a model file.
#include "converters/convert.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

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

Status RunConvert(const CommandOptions& options, Console& console) {
  ConvertOptions convert = options.convert;
  Progress progress(console.errors_are_terminal);
  convert.progress = [&progress](const std::string& text) { progress.Say(text); };
  KINGLET_ASSIGN_OR_RETURN(const ConvertSummary summary, Convert(convert));
  console.out.Write(options.json ? JsonSummary(summary) : SummaryText(summary));
  return Status();
}

}  // namespace

Command AddConvert(CLI::App& app) {
  const auto options = std::make_shared<CommandOptions>();
  ConvertOptions& convert = options->convert;
  CLI::App* command = app.add_subcommand("convert", "Turn a trained checkpoint into a model file");
  command->add_option("CHECKPOINT", convert.checkpoint, "a file or a folder")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", convert.output, "the model file to write")
      ->required()
      ->type_name("M.kgl");
  command->add_option("--family", convert.family, "training code (default: recognised)")
      ->type_name("F");
  command->add_option("--config", convert.config, "configuration (default: beside the checkpoint)")
      ->type_name("FILE");
  command->add_option("--vocab", convert.vocabulary, "one token per line in id order")
      ->type_name("FILE");
  command->add_option("--bits", convert.bits, "quantise weights to N bits")
      ->check(CLI::Range(kMinBits, kMaxBits).description(""))
      ->type_name("N");
  command
      ->add_option("--calibrate", convert.calibration_text,
                   "quantise activations too, for the ranges seen on this text")
      ->type_name("TEXT");
  command->add_option("--recipe", convert.recipe,
                      "JSON that names blocks, tensors and passes (docs/RECIPES.md)");
  command
      ->add_option("--keep-define", convert.define_cache_rows,
                   "keep a DeFINE unit in the model and cache N of its rows")
      ->type_name("N");
  command
      ->add_option("--mem-len", convert.memory_length,
                   "memory of a Transformer-XL, or last position of an OpenNMT model")
      ->type_name("N");
  command->add_option("--prune", convert.prune, "fraction of smallest weights set to zero")
      ->check(CLI::Range(0.0, 1.0).description(""))
      ->type_name("S");
  command->add_option("--cache", convert.cache_capacity, "pairs of the neural cache, 0 removes it")
      ->type_name("N");
  command->add_option("--cache-theta", convert.cache_theta, "sharpness of the cache")
      ->type_name("T");
  command->add_option("--cache-lambda", convert.cache_lambda, "weight of the cache")
      ->type_name("L");
  CLI::Option* golden = command->add_option(
      "--golden", convert.golden,
      "known answers to replay: position<TAB>id<TAB>...<TAB>value, with an encoder behind "
      "sentence<TAB>");
  CLI::Option* ids =
      command->add_option("--ids", convert.ids,
                          "the token ids the known answers belong to; with an encoder "
                          "source ids ||| target ids, a pair on each line");
  golden->needs(ids)->type_name("G");
  ids->needs(golden)->type_name("I");
  command->add_option("--tolerance", convert.tolerance, "largest difference to a known answer")
      ->check(CLI::NonNegativeNumber)
      ->type_name("X")
      ->capture_default_str();
  command->add_flag("--json", options->json, "print JSON Lines");
  command->footer(
      "Example:\n  kinglet convert models/ -o model.kgl --vocab vocab.txt --bits 9 "
      "--calibrate text.txt");
  return {command, [] { return Status(); },
          [options](Console& console) { return RunConvert(*options, console); }};
}

}  // namespace kinglet
