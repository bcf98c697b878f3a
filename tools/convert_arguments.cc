#include "tools/convert_arguments.h"

namespace kinglet {

void AddCheckpointOptions(Arguments& command, CheckpointChoice& choice, ConvertOptions& convert) {
  command
      .Add("--family", convert.family,
           "training code that wrote the checkpoint (default: detected)")
      .Called("NAME");
  command
      .Add("--config", convert.config,
           "training configuration (default: the file beside the checkpoint)")
      .Called("FILE");
  command.AddFlag("--average", choice.average, "average the values of several checkpoints");
}

void AddWordOptions(Arguments& command, ConvertOptions& convert) {
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
}

void AddNetworkOptions(Arguments& command, ConvertOptions& convert) {
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
}

void AddCacheOptions(Arguments& command, ConvertOptions& convert) {
  command
      .Add("--cache", convert.cache_capacity, "capacity of the neural cache in pairs; 0: no cache")
      .Called("N");
  command.Add("--cache-theta", convert.cache_theta, "theta of the neural cache: sharpness")
      .Called("T");
  command
      .Add("--cache-lambda", convert.cache_lambda,
           "lambda of the neural cache: weight in the mixture")
      .Called("L");
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
