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

#include "converters/checkpoints/input_file.h"
#include "converters/texts/token_file.h"
#include "runtime/embedder.h"
#include "runtime/session.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/masked_lines.h"
#include "tools/run_options.h"
#include "tools/span_vectors.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct EmbedOptions {
  RunOptions run;
  MaskedInput input;
  std::string spans;  // path; may be empty
  bool classify = false;
  std::optional<uint32_t> layer;  // of DeFINE units
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

// The outputs of one layer of the input's DeFINE units.
class UnitLayers {
 public:
  UnitLayers(const EmbedOptions& options, std::shared_ptr<const ModelFile> file)
      : options_(options),
        file_(std::move(file)),
        embedding_(*FindBlock<AdaptiveEmbedding>(file_->description())),
        embedders_(embedding_.units.size()) {}

  Status Write(Console& console) {
    if (embedding_.units.empty()) {
      return Status::Refusal(KINGLET_UNSUPPORTED, options_.run.model, "--layer",
                             "a model that keeps a DeFINE unit (convert --keep-define ROWS)",
                             "one without");
    }
    KINGLET_ASSIGN_OR_RETURN(
        const TokenSequence sequence,
        ReadIdSequence(options_.input.ids, file_->description().vocabulary_size));
    for (const uint32_t id : sequence.ids) {
      KINGLET_RETURN_IF_ERROR(WriteWord(id, console));
      KINGLET_RETURN_IF_ERROR(console.out.status());
    }
    return Status();
  }

 private:
  Status WriteWord(uint32_t id, Console& console) {
    const auto bin = std::ranges::find_if(
        embedding_.bins, [id](const EmbeddingBin& each) { return id - each.first < each.size; });
    const KeptDefineUnit* const kept =
        UnitOf(embedding_.units, static_cast<size_t>(bin - embedding_.bins.begin()));
    if (kept == nullptr) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options_.input.ids, "--layer",
                             "words of a DeFINE unit's bins", "id " + std::to_string(id));
    }
    const uint32_t layer = *options_.layer;
    if (layer > kept->unit.layers.size()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options_.run.model, "--layer",
                             "0 (Map) to " + std::to_string(kept->unit.layers.size()),
                             std::to_string(layer));
    }
    const auto index = static_cast<uint32_t>(kept - embedding_.units.data());
    std::unique_ptr<Embedder>& embedder = embedders_[index];
    if (embedder == nullptr) {
      ModelOptions part;
      part.backend = options_.run.backend;
      part.only = UnitPart{index, layer};
      KINGLET_ASSIGN_OR_RETURN(auto model, Model::FromFile(file_, part));
      KINGLET_ASSIGN_OR_RETURN(embedder, Embedder::Create(std::move(model)));
    }
    std::vector<double> vector(embedder->width());
    KINGLET_RETURN_IF_ERROR(embedder->Vector(id, vector));
    const int digits = NumberDigits(embedder->model());
    if (!options_.run.json) {
      console.out.Write(std::to_string(id) + "\t" + Numbers(vector, digits) + "\n");
      return Status();
    }
    JsonLine line(digits);
    line.Key("id").Integer(id).Key("layer").Integer(layer);
    AppendNumbers("vector", vector, line);
    line.Key("groups").BeginArray();
    const DefineLayer map;
    const DefineLayer& made = layer == 0 ? map : kept->unit.layers[layer - 1];
    for (uint64_t group = 0; group < made.groups; ++group) {
      line.BeginArray();
      for (const double value : OfGroup(made, vector, group)) line.Number(value);
      line.EndArray();
    }
    line.EndArray();
    console.out.Write(line.Finish());
    return Status();
  }

  // The elements that the layer's group computed, in its order.
  static std::vector<double> OfGroup(const DefineLayer& layer, const std::vector<double>& vector,
                                     uint64_t group) {
    const uint64_t width = vector.size() / layer.groups;
    const bool shuffled = layer.shuffle != DefineLayer::Shuffle::kNone;
    std::vector<double> own;
    for (uint64_t i = 0; i < width; ++i) {
      own.push_back(vector[shuffled ? i * layer.groups + group : group * width + i]);
    }
    return own;
  }

  const EmbedOptions& options_;
  const std::shared_ptr<const ModelFile> file_;
  const AdaptiveEmbedding& embedding_;
  std::vector<std::unique_ptr<Embedder>> embedders_;  // by unit; null until a word needs it
};

Status WriteClasses(const EmbedOptions& options, Embedder& embedder, Console& console) {
  const int digits = NumberDigits(embedder.model());
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> lists,
                           ReadIdLines(options.input.ids));
  std::vector<double> scores(embedder.classes()), log_probabilities(embedder.classes());
  for (size_t i = 0; i < lists.size(); ++i) {
    if (const Status status = embedder.Classify(lists[i], scores, log_probabilities);
        !status.ok()) {
      return InFile(options.input.ids + ", line " + std::to_string(i + 1), status);
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
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
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
    return console.out.status();
  };
  return ForEachMaskedLine(options.input, *model, write);
}

Status Embed(const EmbedOptions& options, Console& console) {
  if (options.layer) {
    KINGLET_RETURN_IF_ERROR(FindBackend(options.run.backend).status());
    KINGLET_ASSIGN_OR_RETURN(auto file, ModelFile::Open(options.run.model));
    return UnitLayers(options, std::move(file)).Write(console);
  }
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (!options.spans.empty()) return WriteSpans(options, model, console);
  if (model->plan().reading) return WriteTexts(options, model, console);
  if (options.input.ids.empty()) {
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
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Embedder> embedder, Embedder::Create(model));
  return options.classify ? WriteClasses(options, *embedder, console)
                          : WriteVectors(options, *embedder, console);
}

Status CheckEmbedInput(const EmbedOptions& options) {
  for (const auto& [name, given] : {std::pair("--ids", !options.input.ids.empty()),
                                    {"--text", !options.input.text.empty()},
                                    {"--classify", options.classify}}) {
    if (options.spans.empty() || !given) continue;
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--spans",
                           std::string("no ") + name + " with it", "both");
  }
  return CheckMaskedInput(options.input, "embed");
}

}  // namespace

Command AddEmbed(Arguments& program) {
  const auto options = std::make_shared<EmbedOptions>();
  Arguments embed =
      program.AddSubcommand("embed", "Print the vectors of words or texts, or their classes");
  AddModelOptions(embed, options->run);
  AddMaskedInput(embed, options->input);
  embed
      .Add("--spans", options->spans,
           "text for a model of characters: print a vector for each word of each line, as flair "
           "does")
      .Placeholder(kFileOrStandardInput);
  const Option classify =
      embed.AddFlag("--classify", options->classify,
                    "print the class of each list and the log-probabilities of all "
                    "classes; for a masked model the scores of each text");
  embed
      .Add("--layer", options->layer,
           "print what this layer of the input's DeFINE unit computes, before the embedding's "
           "scale; 0 is the Map layer")
      .Excludes(classify);
  embed.Footer("Example:\n  kinglet embed model.kgl --ids ids.txt --json");
  return {embed, [options] { return CheckEmbedInput(*options); },
          [options](Console& console) { return Embed(*options, console); }};
}

}  // namespace kinglet
