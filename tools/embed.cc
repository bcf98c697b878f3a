// kinglet embed: embedding vectors of words, or class scores of word lists.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/texts/token_file.h"
#include "format/input_file.h"
#include "runtime/embedder.h"
#include "runtime/session.h"
#include "tools/class_labels.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/masked_lines.h"
#include "tools/run_options.h"
#include "tools/sentences.h"
#include "tools/span_vectors.h"
#include "tools/thread_team.h"
#include "tools/unit_layers.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct EmbedOptions {
  RunOptions run;
  MaskedInput input;
  std::string labels;
  std::string spans;  // path; may be empty
  bool classify = false;
  std::optional<uint32_t> layer;  // of DeFINE units

  const std::string& path() const { return input.ids.empty() ? input.text : input.ids; }
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
                           ReadIdSequence(options.input.ids, embedder.model().vocabulary_size()));
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

Status WriteLayers(const EmbedOptions& options, Console& console) {
  const auto write = [&](uint32_t id, const UnitVector& vector) -> Status {
    if (!options.run.json) {
      console.out.Write(std::to_string(id) + "\t" + Numbers(vector.all, vector.digits) + "\n");
      return console.out.status();
    }
    JsonLine line(vector.digits);
    line.Key("id").Integer(id).Key("layer").Integer(*options.layer);
    AppendNumbers("vector", vector.all, line);
    line.Key("groups").BeginArray();
    for (const std::vector<double>& group : vector.groups) {
      line.BeginArray();
      for (const double value : group) line.Number(value);
      line.EndArray();
    }
    line.EndArray();
    console.out.Write(line.Finish());
    return console.out.status();
  };
  return ForEachUnitVector(options.run, options.input.ids, *options.layer, write);
}

// The answer about a list of words. Lists are interleaved among threads, which have an embedder
// each.
struct ClassAnswer {
  Status status;
  std::vector<double> scores, log_probabilities;
};

Result<std::vector<ClassAnswer>> ClassifyAll(const std::vector<std::vector<uint32_t>>& lists,
                                             const std::shared_ptr<const Model>& model,
                                             size_t threads) {
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team, ThreadTeam::Create(threads));
  std::vector<std::unique_ptr<Embedder>> embedders(threads);
  for (std::unique_ptr<Embedder>& embedder : embedders) {
    KINGLET_ASSIGN_OR_RETURN(embedder, Embedder::Create(model));
  }
  std::vector<ClassAnswer> answers(lists.size());
  for (ClassAnswer& answer : answers) {
    answer.scores.resize(embedders.front()->classes());
    answer.log_probabilities.resize(embedders.front()->classes());
  }
  team->Run([&](size_t part) {
    for (size_t i = part; i < lists.size(); i += threads) {
      answers[i].status =
          embedders[part]->Classify(lists[i], answers[i].scores, answers[i].log_probabilities);
    }
  });
  return answers;
}

// The lists of words of --ids or of the lines of --text.
Result<std::vector<std::vector<uint32_t>>> ReadWordLists(const EmbedOptions& options,
                                                         const Model& model) {
  if (!options.input.ids.empty()) return ReadIdLines(options.input.ids);
  KINGLET_ASSIGN_OR_RETURN(SentenceReader lines, SentenceReader::OfText(options.input.text, model));
  std::vector<std::vector<uint32_t>> lists;
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(std::optional<TokenSequence> line, lines.Next());
    if (!line) return lists;
    lists.push_back(std::move(line->ids));
  }
}

// The first of equal scores.
uint64_t BestClass(const std::vector<double>& scores) {
  return static_cast<uint64_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

Status WriteClasses(const EmbedOptions& options, const std::shared_ptr<const Model>& model,
                    Console& console) {
  const int digits = NumberDigits(*model);
  const uint32_t classes = FindBlock<BagClassifier>(model->file().description())->classes;
  KINGLET_ASSIGN_OR_RETURN(ClassLabels labels, ClassLabels::Read(options.labels, classes));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> lists,
                           ReadWordLists(options, *model));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<ClassAnswer> answers,
                           ClassifyAll(lists, model, options.run.threads));
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto& [status, scores, log_probabilities] = answers[i];
    if (!status.ok()) return InFile(options.path() + ", line " + std::to_string(i + 1), status);
    const uint64_t best = BestClass(scores);
    if (options.run.json) {
      JsonLine line(digits);
      line.Key("line").Integer(i + 1);
      AppendNumbers("scores", scores, line);
      AppendNumbers("logprobs", log_probabilities, line);
      line.Key("class").Integer(best);
      console.out.Write(line.Finish());
    } else {
      console.out.Write(std::to_string(i + 1) + "\t" + std::to_string(best) + "\t" +
                        Numbers(log_probabilities, digits) + "\n");
    }
    KINGLET_RETURN_IF_ERROR(console.out.status());
    KINGLET_RETURN_IF_ERROR(labels.Add(best));
  }
  return labels.Finish(options.run.json, console);
}

Status WriteSpans(const EmbedOptions& options, const std::shared_ptr<const Model>& model,
                  Console& console) {
  const int digits = NumberDigits(*model);
  const auto write = [&](uint64_t number, std::string_view word, std::span<const double> vector) {
    const std::vector<double> numbers(vector.begin(), vector.end());
    if (options.run.json) {
      JsonLine line(digits);
      line.Key("line").Integer(number).Key("word").Text(word);
      AppendNumbers("vector", numbers, line);
      console.out.Write(line.Finish());
    } else {
      console.out.Write(std::to_string(number) + "\t" + std::string(word) + "\t" +
                        Numbers(numbers, digits) + "\n");
    }
    return console.out.status();
  };
  return ForEachSpan(options.spans, model, write);
}

// A text's values under one or two keys.
void WriteText(const EmbedOptions& options, const Model& model, uint64_t number,
               const std::vector<std::pair<const char*, std::vector<double>>>& parts,
               Console& console) {
  const int digits = NumberDigits(model);
  if (!options.run.json) {
    std::string text = std::to_string(number);
    for (const auto& [key, numbers] : parts) text += "\t" + Numbers(numbers, digits);
    console.out.Write(text + "\n");
    return;
  }
  JsonLine line(digits);
  line.Key("line").Integer(number);
  for (const auto& [key, numbers] : parts) AppendNumbers(key, numbers, line);
  console.out.Write(line.Finish());
}

// The pooled vectors or scores of texts that a masked model reads.
Status WriteTexts(const EmbedOptions& options, const std::shared_ptr<const Model>& model,
                  Console& console) {
  SessionOptions session_options;
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  const Reading& reading = *model->plan().reading;
  if (options.classify && session->scores() == 0) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--classify",
                           "a model that scores texts or spans", "one that does not");
  }
  if (!options.classify && session->pooled_width() == 0) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "embed", "a model with a pooler",
                           "one without (`fill` predicts its words)");
  }
  const bool spans = options.classify && reading.scores_spans;
  if (spans && !options.labels.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--labels",
                           "a model that gives a text one class", "one that scores spans");
  }
  KINGLET_ASSIGN_OR_RETURN(ClassLabels labels,
                           ClassLabels::Read(options.labels, session->scores()));
  std::vector<double> numbers(options.classify ? session->scores() : session->pooled_width());
  const auto write = [&](uint64_t number, const MaskedText& text) -> Status {
    KINGLET_RETURN_IF_ERROR(session->Encode(text.ids, text.segments, 0));
    if (spans) {
      std::vector<double> starts, ends;
      for (size_t i = 0; i < text.ids.size(); ++i) {
        KINGLET_RETURN_IF_ERROR(session->Scores(numbers, i));
        starts.push_back(numbers[0]);
        ends.push_back(numbers[1]);
      }
      WriteText(options, *model, number, {{"start", starts}, {"end", ends}}, console);
      return console.out.status();
    }
    KINGLET_RETURN_IF_ERROR(options.classify ? session->Scores(numbers) : session->Pooled(numbers));
    const auto* block = FindBlock<MaskedModel>(model->file().description());
    const bool is_next_sentence = block->scored == ScoredPart::kNextSentence;
    const char* const key = !options.classify ? "vector" : is_next_sentence ? "next" : "scores";
    WriteText(options, *model, number, {{key, numbers}}, console);
    KINGLET_RETURN_IF_ERROR(labels.Add(BestClass(numbers)));
    return console.out.status();
  };
  KINGLET_RETURN_IF_ERROR(ForEachMaskedLine(options.input, *model, write));
  return labels.Finish(options.run.json, console);
}

Status Embed(const EmbedOptions& options, Console& console) {
  if (options.layer) return WriteLayers(options, console);
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (!options.spans.empty()) return WriteSpans(options, model, console);
  if (model->plan().reading) return WriteTexts(options, model, console);
  const bool reads_text = options.classify && model->plan().classifier;
  if (options.input.ids.empty() && !(reads_text && !options.input.text.empty())) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "embed",
                           "--ids FILE, as it is no masked model",
                           options.input.text.empty() ? "none" : "--text");
  }
  if (!options.input.segments.empty()) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--segments", "a masked model",
                           "another");
  }
  if (options.classify && !model->plan().classifier) {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "--classify",
                           "a model with a classifier", "one without");
  }
  if (options.classify) return WriteClasses(options, model, console);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Embedder> embedder, Embedder::Create(model));
  return WriteVectors(options, *embedder, console);
}

Status CheckEmbedInput(const EmbedOptions& options) {
  const auto refuse = [](const char* where, const std::string& expected, const char* found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where, expected, found);
  };
  for (const auto& [name, given] : {std::pair("--ids", !options.input.ids.empty()),
                                    {"--text", !options.input.text.empty()},
                                    {"--classify", options.classify},
                                    {"--layer", options.layer.has_value()}}) {
    if (options.spans.empty() || !given) continue;
    return refuse("--spans", std::string("no ") + name + " with it", "both");
  }
  if (options.layer && options.classify) return refuse("--layer", "no --classify with it", "both");
  if (options.layer && options.input.ids.empty()) {
    return refuse("--layer", "--ids FILE with it", "none");
  }
  return CheckMaskedInput(options.input, "embed");
}

}  // namespace

Command AddEmbed(Arguments& program) {
  const auto options = std::make_shared<EmbedOptions>();
  Arguments embed =
      program.AddSubcommand("embed", "Print the vectors of words or texts, or their classes");
  AddModelOptions(embed, options->run);
  AddThreads(embed, options->run.threads);
  AddMaskedInput(embed, options->input);
  embed
      .Add("--spans", options->spans,
           "text for a model of characters: print a vector for each word of each line, as flair "
           "does")
      .Placeholder(kFileOrStandardInput);
  Option classify =
      embed.AddFlag("--classify", options->classify,
                    "print the class of each list and the log-probabilities of all classes; for a "
                    "masked model the scores of each text");
  embed
      .Add("--labels", options->labels,
           "the number of each text's class, from 0, one a line: print the accuracy")
      .Needs(classify)
      .Placeholder("FILE");
  embed.Add("--layer", options->layer,
            "print what this layer of the input's DeFINE unit computes, before the embedding's "
            "scale; 0 is the Map layer");
  embed.Footer("Example:\n  kinglet embed model.kgl --ids ids.txt --json");
  return {embed, [options] { return CheckEmbedInput(*options); },
          [options](Console& console) { return Embed(*options, console); }};
}

}  // namespace kinglet
