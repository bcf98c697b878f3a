// kinglet tune-cache: searches for the theta and lambda of the neural cache that give the lowest
// perplexity on a text.
#include "converters/tuning/tune_cache.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "converters/output_path.h"
#include "format/limits.h"
#include "format/message_text.h"
#include "format/write_file.h"
#include "format/writer.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr size_t kMaxTuningThreads = 1024;

struct TuneCacheCommand {
  std::string model, text, ids, output;
  std::optional<uint32_t> capacity;
  size_t threads = 1;
  bool json = false;
};

void AddNumbers(double loss, JsonLine& line) {
  line.Key("nll").Number(loss).Key("ppl").Number(std::exp(loss));
}

void AddScored(const char* key, const ScoredCache& scored, JsonLine& line) {
  line.Key(key).BeginObject().Key("cache").Integer(scored.cache ? scored.cache->capacity : 0);
  if (scored.cache) {
    line.Key("lambda").Number(scored.cache->lambda).Key("theta").Number(scored.cache->theta);
  }
  AddNumbers(scored.loss, line);
  line.EndObject();
}

void PrintJson(const TunedCache& tuned, const TokenSequence& sequence, Console& console) {
  for (const SearchedPoint& point : tuned.search.path) {
    JsonLine line;
    line.Key("lambda").Number(point.parameters.lambda);
    line.Key("theta").Number(point.parameters.theta);
    AddNumbers(point.loss, line);
    line.Key("accepted").Boolean(point.accepted);
    console.out.Write(line.Finish());
  }
  JsonLine line;
  line.Key("tokens").Integer(sequence.ids.size()).Key("scored").Integer(tuned.scored);
  line.Key("oov").Integer(sequence.unknown);
  AddScored("before", tuned.before, line);
  AddScored("after", tuned.after, line);
  line.Key("searched_nll").Number(tuned.search.loss).Key("digest").Text(tuned.digest);
  console.out.Write(line.Finish());
}

std::string ScoredText(const ScoredCache& scored) {
  std::string text = ShortNumber(std::exp(scored.loss));
  if (!scored.cache) return text + ", no cache";
  return text + ", cache " + std::to_string(scored.cache->capacity) + ", lambda " +
         NumberText(scored.cache->lambda) + ", theta " + NumberText(scored.cache->theta);
}

void PrintText(const TunedCache& tuned, const TokenSequence& sequence, Console& console) {
  const auto row = [&console](const std::string& lambda, const std::string& theta,
                              const std::string& perplexity, const char* mark) {
    char text[120];
    std::snprintf(text, sizeof(text), "%-16s %-16s %-16s%s\n", lambda.c_str(), theta.c_str(),
                  perplexity.c_str(), mark);
    console.out.Write(text);
  };
  row("lambda", "theta", "perplexity", "accepted");
  for (const SearchedPoint& point : tuned.search.path) {
    row(NumberText(point.parameters.lambda), NumberText(point.parameters.theta),
        ShortNumber(std::exp(point.loss)), point.accepted ? "*" : "");
  }
  const auto print = [&console](const char* name, const std::string& value) {
    console.out.Write(FactLine(name, value));
  };
  print("tokens", Grouped(sequence.ids.size()));
  print("unknown words", Grouped(sequence.unknown));
  print("before", ScoredText(tuned.before));
  print("after", ScoredText(tuned.after));
  print("digest", tuned.digest);
}

Status TuneCacheOf(const TuneCacheCommand& command, Console& console) {
  KINGLET_RETURN_IF_ERROR(
      CheckOutputPath("tune-cache", command.output, {&command.model, &command.text, &command.ids}));
  KINGLET_ASSIGN_OR_RETURN(const auto file, ModelFile::Open(command.model));
  KINGLET_ASSIGN_OR_RETURN(const auto text, ModelText::Of(*file));
  KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                           command.text.empty()
                               ? ReadIdSequence(command.ids, file->description().vocabulary_size)
                               : ReadTextSequence(command.text, text.get()));
  Result<TunedCache> tuned = [&] {
    Progress progress(ProgressFormOf("", console), TuningTokens(sequence.ids.size()));
    return TuneCache(
        file, sequence.ids,
        {command.capacity, command.threads, [&progress](uint64_t done) { progress.Report(done); }});
  }();
  if (!tuned.ok()) return tuned.status();
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(tuned->bytes, command.output));
  if (command.json) {
    PrintJson(*tuned, sequence, console);
  } else {
    PrintText(*tuned, sequence, console);
  }
  return Status();
}

Status CheckTuneInput(const TuneCacheCommand& command) {
  if (command.ids.empty() != command.text.empty()) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "tune-cache",
                         "--text FILE or --ids FILE", command.ids.empty() ? "neither" : "both");
}

}  // namespace

Command AddTuneCache(Arguments& program) {
  const auto options = std::make_shared<TuneCacheCommand>();
  Arguments command = program.AddSubcommand(
      "tune-cache", "Find the neural cache's theta and lambda with the lowest perplexity");
  command.Add("M.kgl", options->model, "model file").Required().Placeholder("");
  command.Add("--text", options->text, "text; each line end becomes <eos>")
      .Placeholder(kFileOrStandardInput);
  command.Add("--ids", options->ids, "token ids: text, separated by white space, or .npy")
      .Placeholder(kFileOrStandardInput);
  command.Add("--cache", options->capacity, "capacity of the cache in pairs (default: the model's)")
      .Between(uint32_t{1}, kMaxCacheCapacity)
      .Placeholder("N");
  command.Add("-o,--output", options->output, "model file to write")
      .Required()
      .Placeholder("OUT.kgl");
  command.Add("--threads", options->threads, "use up to N threads")
      .Between(size_t{1}, kMaxTuningThreads)
      .Placeholder("N")
      .ShowDefault();
  command.AddFlag("--json", options->json, "print JSON Lines");
  command.Footer("Example:\n  kinglet tune-cache model.kgl --text validation.txt -o tuned.kgl");
  return {command, [options] { return CheckTuneInput(*options); },
          [options](Console& console) { return TuneCacheOf(*options, console); }};
}

}  // namespace kinglet
