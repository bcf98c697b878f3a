#include "tools/convert_arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace kinglet {
namespace {

// The enumerator of a name. REQUIRES: the name is one of them.
template <class Enum, size_t kCount>
Enum Named(const std::array<std::string_view, kCount>& names, const std::string& name) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), name) - names.begin());
}

template <size_t kCount>
std::vector<std::string> Texts(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

}  // namespace

void AddCheckpointOptions(Arguments& command, CheckpointChoice& choice, ConvertOptions& convert) {
  command.Add("--family", convert.family, "framework that wrote the checkpoint (default: detected)")
      .Placeholder("NAME");
  command
      .Add("--config", convert.config,
           "training configuration (default: the file next to the checkpoint)")
      .Placeholder("FILE");
  command.AddFlag("--average", choice.average, "average the values of several checkpoints");
}

void AddWordOptions(Arguments& command, ConvertOptions& convert) {
  Option vocabulary = command.Add("--vocab", convert.vocabulary,
                                  "vocabulary: one token per line, in id order, or another form of "
                                  "docs/CHECKPOINTS.md (default: "
                                  "the token list that the framework left in the folder, if any)");
  vocabulary.Placeholder("FILE");
  command
      .Add("--vocab-from", convert.vocabulary_texts,
           "build the vocabulary from the texts by whose words the framework numbered its ids")
      .Excludes(vocabulary)
      .Placeholder("FILES");
  command
      .Add("--tokenizer", convert.tokenizer,
           "how the model tokenizes text: a SentencePiece model, byte-pair codes, or spaces, "
           "wikitext "
           "or characters")
      .Placeholder("FILE");
  command
      .Add("--unknown", convert.unknown_word,
           "the vocabulary's word for unknown words, if it is not <unk> (the model file names it "
           "<unk>)")
      .Placeholder("WORD");
  command.AddFlag("--lowercase", convert.lower_case, "lower-case text first (with --tokenizer)");
}

void AddNetworkOptions(Arguments& command, ConvertOptions& convert) {
  command
      .Add("--recipe", convert.recipe,
           "JSON file that names blocks, tensors and passes, see docs/RECIPES.md (default: "
           "model.recipe.json next to model.pt)")
      .Placeholder("FILE");
  command.AddFlag("--trust-recipe-paths", convert.trust_recipe_paths,
                  "let the recipe of --recipe name files outside its folder");
  command
      .Add("--keep-define", convert.define_cache_rows,
           "keep a DeFINE unit in the model and cache N of its rows")
      .Placeholder("N");
  command
      .Add("--keep-characters", convert.character_cache_rows,
           "keep a character CNN in the model, so that it reads words that its vocabulary lacks, "
           "and cache N of its rows")
      .Placeholder("N");
  command
      .Add("--mem-len", convert.memory_length,
           "memory length of a Transformer-XL, or highest position of an OpenNMT model")
      .Placeholder("N");
  command
      .Add("--ignore-option", convert.ignored_options,
           "options of the checkpoint that kinglet does not know and that do not change the "
           "network's output")
      .Placeholder("NAMES");
}

void AddCacheOptions(Arguments& command, ConvertOptions& convert) {
  command
      .Add("--cache", convert.cache_capacity,
           "capacity of the neural cache in pairs; 0 means no cache")
      .Placeholder("N");
  command.Add("--cache-theta", convert.cache_theta, "theta of the neural cache: sharpness")
      .Placeholder("T");
  command
      .Add("--cache-lambda", convert.cache_lambda,
           "lambda of the neural cache: weight in the mixture")
      .Placeholder("L");
}

void AddRoundingOptions(Arguments& command, QuantiserChoice& choice) {
  command
      .Add("--scale-by", choice.scale_by,
           "scale a row of weights by its largest entry, or so that their squared error is least")
      .OneOf(Texts(kScaleByNames))
      .ShowDefault();
  command
      .Add("--round-by", choice.round_by,
           "round each weight to the nearest integer, or so that the products on the text of "
           "--calibrate change least")
      .OneOf(Texts(kRoundByNames))
      .ShowDefault();
}

void AddRangeOptions(Arguments& command, QuantiserChoice& choice, ConvertOptions& convert) {
  command
      .Add("--calibrate-by", choice.calibrate_by,
           "ranges of activations: the largest value, a percentile of the values, or of least "
           "squared error")
      .OneOf(Texts(kRangeRuleNames))
      .ShowDefault();
  command
      .Add("--percentile", convert.percentile,
           "for --calibrate-by percentile: P percent of the values are not clipped (default: "
           "99.99)")
      .Placeholder("P");
}

void TakeQuantisers(const QuantiserChoice& choice, ConvertOptions& convert) {
  convert.scale_by = Named<ScaleBy>(kScaleByNames, choice.scale_by);
  convert.round_by = Named<RoundBy>(kRoundByNames, choice.round_by);
  convert.calibrate_by = Named<RangeRule::By>(kRangeRuleNames, choice.calibrate_by);
}

Status CheckAverage(const std::string& command, const CheckpointChoice& choice) {
  if (choice.average == (choice.checkpoints.size() > 1)) return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", command,
                         choice.average ? "two or more checkpoints to --average"
                                        : "one checkpoint, or --average with more",
                         std::to_string(choice.checkpoints.size()));
}

void TakeCheckpoints(const CheckpointChoice& choice, ConvertOptions& convert) {
  convert.checkpoint = choice.checkpoints.front();
  convert.averaged.assign(choice.checkpoints.begin() + 1, choice.checkpoints.end());
}

}  // namespace kinglet
