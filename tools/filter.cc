// kinglet filter: documents whose perplexity is in a range.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "tools/commands.h"
#include "tools/document_reader.h"
#include "tools/document_scorer.h"
#include "tools/filtered_parts.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"

namespace kinglet {
namespace {

// Documents are scored in batches, which bound the memory.
constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr size_t kBatchDocuments = 4096;

// A closed vocabulary gives all unknown words one probability, and a text of few tokens is little
// more than its end: neither has a perplexity that describes the text.
constexpr double kMostUnknown = 0.2;
constexpr uint64_t kLeastTokens = 3;

struct FilterOptions {
  RunOptions run;
  std::vector<std::string> files = {"-"};
  std::optional<double> max_perplexity, min_perplexity, percentile;
  std::optional<double> max_oov;
  std::optional<uint64_t> min_tokens;
  std::string field, reference, folder;
  bool annotate = false, skip_bad = false;
  DocumentBlocks blocks;

  DocumentFormat format() const { return {field, annotate, skip_bad}; }
  // Without a bound every document is only annotated.
  bool is_bounded() const {
    return max_perplexity || min_perplexity || percentile || max_oov || min_tokens;
  }
  double most_oov() const { return max_oov.value_or(is_bounded() ? kMostUnknown : 1.0); }
  uint64_t least_tokens() const { return min_tokens.value_or(is_bounded() ? kLeastTokens : 0); }
};

struct FilterCounts {
  uint64_t documents = 0, written = 0, bad_lines = 0;
  uint64_t unknown = 0, few_tokens = 0, perplexity = 0;  // omitted documents, by the first reason
};

using DocumentSink = std::function<Status(const Document&, const DocumentLoss&)>;

// Calls `sink` with every document of a file, in order. "-" is standard input.
Status ForEachDocument(const std::string& path, const DocumentFormat& format,
                       DocumentScorer& scorer, FilterCounts& counts, const DocumentSink& sink) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(path, format));
  bool has_document = true;
  while (has_document) {
    std::vector<Document> batch;
    for (size_t bytes = 0; bytes < kBatchBytes && batch.size() < kBatchDocuments;) {
      KINGLET_ASSIGN_OR_RETURN(std::optional<Document> document, reader.Next());
      has_document = document.has_value();
      if (!has_document) break;
      bytes += document->line.size();
      batch.push_back(std::move(*document));
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<DocumentLoss> losses,
                             scorer.Score(reader.name(), batch));
    for (size_t i = 0; i < batch.size(); ++i) KINGLET_RETURN_IF_ERROR(sink(batch[i], losses[i]));
    counts.documents += batch.size();
  }
  counts.bad_lines += reader.bad_lines();
  return {};
}

class Filter {
 public:
  Filter(const FilterOptions& options, const Model& model, DocumentScorer& scorer, Console& console)
      : options_(options),
        model_(model),
        scorer_(scorer),
        console_(console),
        most_(options.max_perplexity) {}

  Status Run() {
    if (options_.percentile) KINGLET_RETURN_IF_ERROR(FindPercentile());
    if (!options_.folder.empty()) {
      KINGLET_RETURN_IF_ERROR(FilterIntoFolder());
    } else {
      for (const std::string& file : options_.files) {
        KINGLET_RETURN_IF_ERROR(FilterFile(file, Printer()));
      }
    }
    Summarise();
    return {};
  }

 private:
  using Write = std::function<Status(std::string_view)>;

  Write Printer() {
    return [this](std::string_view text) {
      console_.out.Write(console_.out_is_terminal ? TerminalJson(text) : std::string(text));
      return console_.out.status();
    };
  }

  // The nearest rank: the smallest perplexity that P percent of the documents do not exceed.
  Status FindPercentile() {
    std::vector<double> perplexities;
    FilterCounts counts;
    const std::vector<std::string> files =
        options_.reference.empty() ? options_.files : std::vector{options_.reference};
    for (const std::string& file : files) {
      KINGLET_RETURN_IF_ERROR(ForEachDocument(file, options_.format(), scorer_, counts,
                                              [&](const Document&, const DocumentLoss& loss) {
                                                if (!HasFewTokens(loss) && !HasManyUnknown(loss)) {
                                                  perplexities.push_back(loss.perplexity());
                                                }
                                                return Status();
                                              }));
    }
    if (perplexities.empty()) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", "--percentile",
                             "documents that --min-tokens and --max-oov keep", "none");
    }
    const double share = *options_.percentile / 100 * static_cast<double>(perplexities.size());
    const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(share)));
    std::nth_element(perplexities.begin(),
                     perplexities.begin() + static_cast<std::ptrdiff_t>(rank - 1),
                     perplexities.end());
    const double found = perplexities[rank - 1];
    most_ = most_ ? std::min(*most_, found) : found;
    return {};
  }

  bool HasFewTokens(const DocumentLoss& loss) const {
    return loss.scored < options_.least_tokens() || (options_.is_bounded() && loss.scored == 0);
  }
  bool HasManyUnknown(const DocumentLoss& loss) const {
    return static_cast<double>(loss.unknown) >
           options_.most_oov() * static_cast<double>(loss.scored);
  }
  bool HasAnotherPerplexity(const DocumentLoss& loss) const {
    const double perplexity = loss.perplexity();
    return (most_ && !(perplexity <= *most_)) ||
           (options_.min_perplexity && !(perplexity >= *options_.min_perplexity));
  }

  // Whether the document is kept. Counts the document, or the reason to omit it.
  bool Passes(const DocumentLoss& loss) {
    uint64_t& count = HasFewTokens(loss)           ? counts_.few_tokens
                      : HasManyUnknown(loss)       ? counts_.unknown
                      : HasAnotherPerplexity(loss) ? counts_.perplexity
                                                   : counts_.written;
    ++count;
    return &count == &counts_.written;
  }

  // The document with {"ppl":..,"nll":..,"tokens":..,"oov":..} as its member "kinglet".
  std::string Annotated(const Document& document, const DocumentLoss& loss) const {
    JsonLine line(NumberDigits(model_));
    if (options_.field.empty()) line.Key("text").Text(document.line);
    line.Key("kinglet").BeginObject().Key("ppl").Number(loss.perplexity());
    line.Key("nll").Number(loss.nll()).Key("tokens").Integer(loss.scored);
    line.Key("oov").Integer(loss.unknown).EndObject();
    std::string member = line.Finish();
    if (options_.field.empty()) return member;
    std::string text = document.line.substr(0, document.line.rfind('}'));
    return text + (document.has_members ? "," : "") + member.substr(1);
  }

  Status FilterFile(const std::string& path, const Write& write) {
    return ForEachDocument(
        path, options_.format(), scorer_, counts_,
        [&](const Document& document, const DocumentLoss& loss) {
          if (!Passes(loss)) return Status();
          return write(options_.annotate ? Annotated(document, loss) : document.line + "\n");
        });
  }

  // All options that determine the bytes written.
  std::string RunLine() const {
    JsonLine line(std::numeric_limits<double>::max_digits10);
    line.Key("digest").Text(model_.file().digest()).Key("backend").Text(model_.backend().name);
    const auto number = [&line](const char* key, const std::optional<double>& value) {
      line.Key(key).Number(value.value_or(std::nan("")));
    };
    number("max_ppl", most_);
    number("min_ppl", options_.min_perplexity);
    line.Key("max_oov").Number(options_.most_oov());
    line.Key("min_tokens").Integer(options_.least_tokens());
    line.Key("annotate").Boolean(options_.annotate).Key("field").Text(options_.field);
    line.Key("skip_bad").Boolean(options_.skip_bad);
    line.Key("block").Integer(options_.blocks.block.value_or(0));
    return line.Key("context").Integer(options_.blocks.context).Finish();
  }

  Status FilterIntoFolder() {
    KINGLET_ASSIGN_OR_RETURN(FilteredParts parts,
                             FilteredParts::Open(options_.folder, RunLine(), options_.files));
    for (const std::string& file : options_.files) {
      KINGLET_ASSIGN_OR_RETURN(const FileIdentity state, IdentityOf(file));
      bool was_another = false;
      KINGLET_ASSIGN_OR_RETURN(const bool is_done, parts.IsDone(file, state, was_another));
      if (is_done) {
        PrintNote(parts.PathOf(file) + " is done");
        continue;
      }
      if (was_another) PrintNote(file + " has changed since: it is filtered again");
      KINGLET_ASSIGN_OR_RETURN(PartFile part, PartFile::Create(parts.PathOf(file)));
      KINGLET_RETURN_IF_ERROR(
          FilterFile(file, [&part](std::string_view text) { return part.Write(text); }));
      KINGLET_RETURN_IF_ERROR(parts.Keep(file, state, std::move(part)));
    }
    return {};
  }

  void Summarise() const {
    if (counts_.bad_lines > 0) PrintNote(Grouped(counts_.bad_lines) + " bad lines were omitted");
    std::string text =
        Grouped(counts_.written) + " of " + Grouped(counts_.documents) + " documents were written";
    bool is_first = true;
    const auto add = [&](uint64_t count, const std::string& reason) {
      if (count == 0) return;
      text += (std::exchange(is_first, false) ? "; omitted: " : ", ") + Grouped(count) + reason;
    };
    char share[32];
    std::snprintf(share, sizeof(share), "%g", options_.most_oov());
    add(counts_.few_tokens,
        " for few tokens (--min-tokens " + std::to_string(options_.least_tokens()) + ")");
    add(counts_.unknown, " for unknown words (--max-oov " + std::string(share) + ")");
    add(counts_.perplexity, " for their perplexity");
    PrintNote(text);
  }

  const FilterOptions& options_;
  const Model& model_;
  DocumentScorer& scorer_;
  Console& console_;
  std::optional<double> most_;
  FilterCounts counts_;
};

Status RunFilter(const FilterOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "filter"));
  KINGLET_ASSIGN_OR_RETURN(DocumentScorer scorer,
                           DocumentScorer::Create(model, options.run, options.blocks));
  return Filter(options, *model, scorer, console).Run();
}

Status UsageError(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where, expected, found);
}

Status CheckFilter(const FilterOptions& options) {
  if (!options.is_bounded() && !options.annotate) {
    return UsageError("filter",
                      "--max-ppl, --min-ppl, --percentile, --max-oov, --min-tokens or --annotate",
                      "none of them");
  }
  const bool reads_input = std::count(options.files.begin(), options.files.end(), "-") > 0;
  if (options.percentile && reads_input && options.reference.empty()) {
    return UsageError("--percentile", "FILES or --reference FILE",
                      "standard input, which can be read only once");
  }
  for (const std::string& file : options.files) {
    if (options.percentile && options.reference.empty()) {
      KINGLET_RETURN_IF_ERROR(RefusePipe("--percentile", file));
    }
    if (!options.folder.empty() && file != "-") KINGLET_RETURN_IF_ERROR(RefusePipe("-o", file));
  }
  if (options.reference == "-" && reads_input) {
    return UsageError("--reference", "standard input once",
                      "- together with FILES that are read from it");
  }
  if (options.folder.empty()) return {};
  if (reads_input) return UsageError("--output", "FILES", "standard input");
  std::map<std::string, std::string> names;
  for (const std::string& file : options.files) {
    const auto [place, added] = names.emplace(ResultName(file), file);
    if (added) continue;
    return UsageError("--output", "files of different names", place->second + " and " + file);
  }
  return {};
}

}  // namespace

Command AddFilter(Arguments& program) {
  const auto options = std::make_shared<FilterOptions>();
  Arguments filter =
      program.AddSubcommand("filter", "Keep the documents whose perplexity is in a range");
  AddModelChoice(filter, options->run);
  filter.Add("FILES", options->files, "one document a line (default: standard input)")
      .Placeholder(kFileOrStandardInput);
  filter.Add("--max-ppl", options->max_perplexity, "keep documents of at most this perplexity")
      .Placeholder("X");
  filter.Add("--min-ppl", options->min_perplexity, "keep documents of at least this perplexity")
      .Placeholder("Y");
  filter
      .Add("--max-oov", options->max_oov,
           "keep documents of at most this fraction of unknown words (default: 0.2)")
      .Between(0.0, 1.0)
      .Placeholder("S");
  filter
      .Add("--min-tokens", options->min_tokens,
           "keep documents of at least N scored tokens, the end included (default: 3)")
      .Placeholder("N");
  filter
      .Add("--percentile", options->percentile,
           "keep documents of at most the P-th percentile of the perplexities of the FILES or the "
           "reference")
      .Between(0.0, 100.0)
      .Placeholder("P");
  filter
      .Add("--reference", options->reference,
           "documents whose perplexities --percentile ranks (default: FILES)")
      .Placeholder(kFileOrStandardInput);
  filter.Add("--field", options->field, "read JSON Lines; the member NAME is the document")
      .Placeholder("NAME");
  filter.AddFlag("--annotate", options->annotate,
                 "write JSON Lines with {\"kinglet\":{\"ppl\":..,\"nll\":..,\"tokens\":..,"
                 "\"oov\":..}} added");
  filter.AddFlag("--skip-bad", options->skip_bad,
                 "omit lines that are not JSON or lack the member, and count them");
  filter
      .Add("-o,--output", options->folder,
           "folder with a result for each file; a run that was stopped is continued")
      .Placeholder("FOLDER");
  Option block = filter.Add("--block", options->blocks.block,
                            "for a model with absolute positions: split documents into blocks of N "
                            "tokens (default: the positions)");
  block.Between(uint64_t{1}, uint64_t{1} << 62).Placeholder("N");
  filter.Add("--context", options->blocks.context, "overlap of the blocks, scored once")
      .Needs(block)
      .Placeholder("C");
  AddTeamOptions(filter, options->run, "score N documents at once");
  filter.Footer(
      "Example:\n  kinglet filter model.kgl --field text --max-ppl 200 < in.jsonl > out.jsonl");
  return {filter, [options] { return CheckFilter(*options); },
          [options](Console& console) { return RunFilter(*options, console); }};
}

}  // namespace kinglet
