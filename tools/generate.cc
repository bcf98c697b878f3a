// kinglet generate: text that a model makes, token by token.
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/message_text.h"
#include "format/utf8.h"
#include "runtime/generator.h"
#include "runtime/special_tokens.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/line_tokens.h"
#include "tools/run_options.h"
#include "tools/token_text.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr uint32_t kMaxStreams = 65536;

struct GenerateOptions {
  RunOptions run;
  std::optional<std::string> prompt, stop;
  std::string ids;
  GenerationOptions generation;
  bool no_unk = false;
};

Status CheckGenerateOptions(const GenerateOptions& options) {
  const auto refuse = [](const char* where, const char* expected, const std::string& found) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where, expected, found);
  };
  const DrawOptions& draw = options.generation.draw;
  if (!(draw.temperature >= 0 && std::isfinite(draw.temperature))) {
    return refuse("--temperature", "a finite number of at least 0", NumberText(draw.temperature));
  }
  if (!(draw.top_p > 0 && draw.top_p <= 1)) {
    return refuse("--top-p", "a probability above 0, at most 1", NumberText(draw.top_p));
  }
  if (options.stop && options.stop->empty()) return refuse("--stop", "a text", "an empty one");
  return Status();
}

// The tokens of the prompt, without an end after its last line.
Result<std::vector<uint32_t>> ReadPrompt(const GenerateOptions& options, const Model& model) {
  TokenSequence prompt;
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(prompt, ReadIdSequence(options.ids, model.vocabulary_size()));
    return prompt.ids;
  }
  LineTokens tokens(model, "--prompt");
  std::string_view rest = options.prompt ? std::string_view(*options.prompt) : std::string_view();
  for (size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    KINGLET_RETURN_IF_ERROR(tokens.Append(rest.substr(0, end), true, prompt));
    rest.remove_prefix(end + 1);
  }
  KINGLET_RETURN_IF_ERROR(tokens.Append(rest, false, prompt));
  return prompt.ids;
}

std::string IdsText(const std::vector<uint32_t>& ids, size_t from) {
  std::string text;
  for (size_t i = from; i < ids.size(); ++i) text += (i == 0 ? "" : " ") + std::to_string(ids[i]);
  return text;
}

// Writes streams, in their order, as JSON lines or as text.
class StreamWriter {
 public:
  StreamWriter(const GenerateOptions& options, const Model& model, Console& console)
      : options_(options), has_words_(model.vocabulary() != nullptr), console_(console) {}

  // Writes what is known of the streams so far; everything if they are `done`. The text of a single
  // stream is written as it is generated.
  Status Write(const std::vector<Generator::Stream>& streams, bool done) {
    const bool as_it_comes = streams.size() == 1 && !options_.run.json;
    for (; next_ < streams.size(); ++next_, written_ = 0) {
      const Generator::Stream& stream = streams[next_];
      const bool is_complete = stream.ended || done;
      if (!is_complete && !as_it_comes) break;
      if (options_.run.json) {
        WriteJson(stream);
        continue;
      }
      if (streams.size() > 1) console_.out.Write("== stream " + std::to_string(next_) + "\n");
      WriteText(stream);
      if (!is_complete) break;
      console_.out.Write("\n");
    }
    return console_.out.Flush();
  }

 private:
  void WriteText(const Generator::Stream& stream) {
    if (has_words_) {
      const std::string_view text = std::string_view(stream.text).substr(written_);
      console_.out.Write(console_.out_is_terminal ? TerminalText(text) : std::string(text));
      written_ = stream.text.size();
    } else {
      console_.out.Write(IdsText(stream.ids, written_));
      written_ = stream.ids.size();
    }
  }

  void WriteJson(const Generator::Stream& stream) {
    JsonLine line;
    line.Key("stream").Integer(next_).Key("ids").BeginArray();
    for (const uint32_t id : stream.ids) line.Integer(id);
    line.EndArray();
    if (has_words_) line.Key("text").Text(stream.text);
    if (!IsUtf8(stream.text)) line.Key("bytes").Boolean(true);
    console_.out.Write(line.Finish());
  }

  const GenerateOptions& options_;
  const bool has_words_;
  Console& console_;
  size_t next_ = 0;     // the stream that is written
  size_t written_ = 0;  // its bytes, or ids, that were written
};

// The words that were drawn are written even if the next word cannot be.
Status WriteStreams(Generator& generator, StreamWriter writer) {
  Status ran;
  for (bool has_more = true; has_more && !Interrupted();) {
    const Result<bool> next = generator.Next();
    ran = next.status();
    has_more = next.ok() && *next;
    if (has_more) KINGLET_RETURN_IF_ERROR(writer.Write(generator.streams(), false));
  }
  if (generator.streams().front().ids.empty()) return ran;
  KINGLET_RETURN_IF_ERROR(writer.Write(generator.streams(), true));
  return ran;
}

Status Generate(const GenerateOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "generate"));
  KINGLET_RETURN_IF_ERROR(RequireForward(options.run.model, "generate", model->text()));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> prompt, ReadPrompt(options, *model));
  GenerationOptions generation = options.generation;
  generation.threads = static_cast<uint32_t>(options.run.threads);
  generation.stop = options.stop.value_or("");
  if (options.stop && model->vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "--stop", "model", "a model with a vocabulary",
                           "a model that has ids only");
  }
  if (options.no_unk) {
    KINGLET_ASSIGN_OR_RETURN(const auto unknown, UnknownTokenOf(*model, "--no-unk"));
    if (unknown) generation.draw.excluded.push_back(*unknown);
  }
  NoteInterrupts();
  KINGLET_ASSIGN_OR_RETURN(Generator generator, Generator::Create(model, generation));
  for (const uint32_t& id : prompt) {
    KINGLET_RETURN_IF_ERROR(CheckInterrupt());
    KINGLET_RETURN_IF_ERROR(generator.Feed({&id, 1}));
  }
  return WriteStreams(generator, StreamWriter(options, *model, console));
}

}  // namespace

Command AddGenerate(Arguments& program) {
  const auto options = std::make_shared<GenerateOptions>();
  GenerationOptions& generation = options->generation;
  Arguments generate =
      program.AddSubcommand("generate", "Write text that continues from a prompt, word by word");
  AddModelOptions(generate, options->run);
  AddThreads(generate, options->run.threads);
  Option prompt = generate.Add("--prompt", options->prompt,
                               "text to continue from (default: the beginning of a text)");
  prompt.Placeholder("TEXT");
  generate.Add("--ids", options->ids, "token ids to continue from")
      .Placeholder(kFileOrStandardInput)
      .Excludes(prompt);
  generate.Add("--tokens", generation.tokens, "most tokens of a text")
      .Between(uint64_t{1}, UINT64_MAX)
      .Placeholder("N")
      .ShowDefault();
  generate.Add("--streams", generation.streams, "how many texts to write")
      .Between(uint32_t{1}, kMaxStreams)
      .Placeholder("S")
      .ShowDefault();
  generate
      .Add("--seed", generation.seed,
           "seed of the random draws; equal seeds give equal texts on every machine")
      .Between(uint64_t{0}, UINT64_MAX)
      .Placeholder("N")
      .ShowDefault();
  generate
      .Add("--temperature", generation.draw.temperature,
           "temperature; below 1 draws likelier words, 0 takes the most probable word")
      .Placeholder("T")
      .ShowDefault();
  generate
      .Add("--top-k", generation.draw.top_k, "draw among the K most probable words; 0 means all")
      .Placeholder("K")
      .ShowDefault();
  generate
      .Add("--top-p", generation.draw.top_p,
           "draw among the fewest words that together have probability P")
      .Placeholder("P")
      .ShowDefault();
  generate.Add("--stop", options->stop, "end a text before this text").Placeholder("TEXT");
  generate.AddFlag("--no-unk", options->no_unk, "never write the unknown word");
  generate.Footer(
      "Words are omitted, then weighed by the temperature, then --top-k, then --top-p apply.\n"
      "The text continues the prompt: it begins with a space where a new word begins. A line of\n"
      "the model's text ends with a newline; a model of sentences stops at their end.\n\n"
      "Example:\n  kinglet generate model.kgl --prompt \"The city of\" --seed 7 --top-p 0.9 "
      "--no-unk");
  return {generate, [options] { return CheckGenerateOptions(*options); },
          [options](Console& console) { return Generate(*options, console); }};
}

}  // namespace kinglet
