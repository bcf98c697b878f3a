// kinglet embed: embedding vectors of words, or class scores of word lists.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "converters/sources/input_file.h"
#include "converters/texts/token_file.h"
#include "runtime/embedder.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct EmbedOptions {
  RunOptions run;
  std::string ids;
  bool classify = false;
};

std::string Numbers(const std::vector<double>& numbers, int digits) {
  std::string text;
  char number[40];
  for (const double value : numbers) {
    std::snprintf(number, sizeof(number), "%s%.*g", text.empty() ? "" : " ", digits, value);
    text += number;
  }
  return text;
}

void AppendNumbers(const char* key, const std::vector<double>& numbers, JsonLine& line) {
  line.Key(key).BeginArray();
  for (const double value : numbers) line.Number(value);
  line.EndArray();
}

Status WriteVectors(const EmbedOptions& options, Embedder& embedder, Console& console) {
  const int digits = NumberDigits(embedder.model());
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                           ReadIdSequence(options.ids, embedder.model().vocabulary_size()));
  std::vector<double> vector(embedder.width());
  for (const uint32_t id : sequence.ids) {
    KINGLET_RETURN_IF_ERROR(embedder.Vector(id, vector));
    if (options.run.json) {
      JsonLine line(digits);
      line.Key("id").Integer(id);
      AppendNumbers("vector", vector, line);
      console.out.Write(line.Finish());
    } else {
      console.out.Write(std::to_string(id) + "\t" + Numbers(vector, digits) + "\n");
    }
    KINGLET_RETURN_IF_ERROR(console.out.status());
  }
  return Status();
}

Status WriteClasses(const EmbedOptions& options, Embedder& embedder, Console& console) {
  const int digits = NumberDigits(embedder.model());
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> lists,
                           ReadIdLines(options.ids));
  std::vector<double> scores(embedder.classes()), log_probabilities(embedder.classes());
  for (size_t i = 0; i < lists.size(); ++i) {
    if (const Status status = embedder.Classify(lists[i], scores, log_probabilities);
        !status.ok()) {
      return InFile(options.ids + ", line " + std::to_string(i + 1), status);
    }
    // The first of equal scores.
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    if (options.run.json) {
      JsonLine line(digits);
      line.Key("line").Integer(i + 1);
      AppendNumbers("scores", scores, line);
      AppendNumbers("logprobs", log_probabilities, line);
      line.Key("class").Integer(static_cast<uint64_t>(best));
      console.out.Write(line.Finish());
    } else {
      console.out.Write(std::to_string(i + 1) + "\t" + std::to_string(best) + "\t" +
                        Numbers(log_probabilities, digits) + "\n");
    }
    KINGLET_RETURN_IF_ERROR(console.out.status());
  }
  return Status();
}

Status Embed(const EmbedOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (options.classify && !model->plan().classifier) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--classify",
                           "a model with a classifier", "one without");
  }
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Embedder> embedder, Embedder::Create(model));
  return options.classify ? WriteClasses(options, *embedder, console)
                          : WriteVectors(options, *embedder, console);
}

}  // namespace

Command AddEmbed(Arguments& program) {
  const auto options = std::make_shared<EmbedOptions>();
  Arguments embed =
      program.AddSubcommand("embed", "Print the vectors of words, or the classes of word lists");
  AddModelOptions(embed, options->run);
  embed.Add("--ids", options->ids, "token ids; with --classify, one list of ids per line")
      .Required()
      .Called(kFileOrStandardInput);
  embed.AddFlag("--classify", options->classify,
                "print the class of each list and the log-probabilities of all classes");
  embed.Footer("Example:\n  kinglet embed model.kgl --ids ids.txt --json");
  return {embed, [] { return Status(); },
          [options](Console& console) { return Embed(*options, console); }};
}

}  // namespace kinglet
