// kinglet filter: documents whose perplexity is in a range.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/parse_number.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/corpus_text.h"
#include "format/message_text.h"
#include "tools/commands.h"
#include "tools/document_reader.h"
#include "tools/document_routes.h"
#include "tools/document_scorer.h"
#include "tools/filtered_parts.h"
#include "tools/first_stage.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/score_files.h"

namespace kinglet {
namespace {

// Documents are scored in batches, which bound the memory.
constexpr size_t kBatchBytes = size_t{1} << 20;
constexpr size_t kBatchDocuments = 1024;

// A closed vocabulary gives all unknown words one probability, and a text of few tokens is little
// more than its end: neither has a perplexity that describes the text.
constexpr double kMostUnknown = 0.2;
constexpr uint64_t kLeastTokens = 3;

struct FilterOptions {
  RunOptions run;
  std::vector<std::string> files;
  std::optional<double> max_perplexity, min_perplexity, percentile;
  std::optional<double> max_oov;
  std::optional<uint64_t> min_tokens;
  std::string field, reference, folder, scores_out, cut_from, buckets, rank_by, progress, stage1;
  std::optional<double> keep;
  std::string route, unrouted, pack, normalise;
  uint64_t max_line = DocumentFormat::kMostLineBytes;
  bool annotate = false, skip_bad = false;
  DocumentBlocks blocks;

  RouteOptions routes() const {
    if (route.empty()) return {};
    const size_t end = route.find('=');
    return {route.substr(0, end), route.substr(end + 1), unrouted.empty() || unrouted == "refuse"};
  }
  DocumentFormat format() const {
    DocumentFormat found = {field, routes().member, annotate, skip_bad, max_line, std::nullopt};
    if (normalise == "ccnet") found.rules = CorpusRules::kCcnet;
    if (normalise == "datatrove") found.rules = CorpusRules::kDatatrove;
    return found;
  }
  // Without a bound every document is only annotated.
  bool is_bounded() const {
    return max_perplexity || min_perplexity || percentile || max_oov || min_tokens ||
           !buckets.empty() || !stage1.empty();
  }
  bool has_ranks() const { return percentile || !buckets.empty(); }
  RankBy rank() const {
    const auto found = std::find(kRankNames.begin(), kRankNames.end(), rank_by);
    return found == kRankNames.end() ? RankBy::kBitsPerByte
                                     : static_cast<RankBy>(found - kRankNames.begin());
  }
  double most_oov() const { return max_oov.value_or(is_bounded() ? kMostUnknown : 1.0); }
  uint64_t least_tokens() const { return min_tokens.value_or(is_bounded() ? kLeastTokens : 0); }
};

// The median of many values to within one percent, in memory that does not grow with their number.
class Median {
 public:
  void Add(double value) {
    if (!(value > 0) || !std::isfinite(value)) return;
    ++counts_[static_cast<int>(std::floor(std::log2(value) * kSteps))];
    ++total_;
  }
  // NaN without values.
  double Value() const {
    uint64_t below = 0;
    for (const auto& [step, count] : counts_) {
      below += count;
      if (2 * below >= total_) return std::exp2((step + 0.5) / kSteps);
    }
    return std::nan("");
  }

 private:
  static constexpr double kSteps = 64;  // of a factor of two
  std::map<int, uint64_t> counts_;
  uint64_t total_ = 0;
};

// Of the documents that a model scores.
struct RouteCounts {
  uint64_t documents = 0, written = 0, tokens = 0, unknown_tokens = 0;
  Median all, kept;

  void Count(const DocumentLoss& loss, double rank) {
    ++documents;
    tokens += loss.scored;
    unknown_tokens += loss.unknown;
    all.Add(rank);
  }
  double UnknownShare() const {
    return static_cast<double>(unknown_tokens) / static_cast<double>(tokens);
  }
};

struct FilterCounts : RouteCounts {
  uint64_t bad_lines = 0, unrouted = 0;
  // Omitted documents, by the first reason.
  uint64_t no_model = 0, unknown = 0, few_tokens = 0, first_stage = 0, perplexity = 0;
  std::vector<uint64_t> buckets;
  std::vector<RouteCounts> routes;
};

using DocumentSink = std::function<Status(const Document&, const DocumentLoss&)>;
// The losses of the next documents of a file.
using Losses = std::function<Result<std::vector<DocumentLoss>>(const std::string& name,
                                                               std::span<const Document>)>;
// Takes the documents that were scored together.
using BatchSink = std::function<Status(std::span<const Document>, std::span<const DocumentLoss>)>;

// Calls `sink` with the documents of a file after line `last_line`, in order. "-" is standard
// input. Returns the number of bad lines.
Result<uint64_t> ForEachBatch(const std::string& path, const DocumentFormat& format,
                              uint64_t last_line, const Losses& losses, const BatchSink& sink) {
  KINGLET_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(path, format));
  bool has_document = true;
  while (has_document) {
    std::vector<Document> batch;
    for (size_t bytes = 0; bytes < kBatchBytes && batch.size() < kBatchDocuments;) {
      KINGLET_ASSIGN_OR_RETURN(std::optional<Document> document, reader.Next());
      has_document = document.has_value();
      if (!has_document) break;
      if (document->line_number <= last_line) continue;
      bytes += document->line.size();
      batch.push_back(std::move(*document));
    }
    KINGLET_ASSIGN_OR_RETURN(const std::vector<DocumentLoss> found, losses(reader.name(), batch));
    KINGLET_RETURN_IF_ERROR(sink(batch, found));
  }
  return reader.bad_lines();
}

// The names of the parts into which `thresholds` divide documents.
std::vector<std::string> BucketNames(size_t thresholds) {
  if (thresholds == 2) return {"head", "middle", "tail"};
  std::vector<std::string> names;
  for (size_t i = 0; i <= thresholds; ++i) names.push_back("bucket" + std::to_string(i + 1));
  return names;
}

class Filter {
 public:
  Filter(const FilterOptions& options, std::vector<double> percents, DocumentRoutes& routes,
         std::optional<FirstStage> first_stage, Console& console)
      : options_(options),
        percents_(std::move(percents)),
        routes_(routes),
        first_stage_(std::move(first_stage)),
        console_(console),
        scores_(options.scores_out.empty() ? options.cut_from : options.scores_out, ScoreRun()) {
    if (!options_.buckets.empty()) names_ = BucketNames(percents_.size());
    if (!names_.empty() && options_.unrouted == "keep") names_.emplace_back("unrouted");
    counts_.buckets.resize(names_.size());
    counts_.routes.resize(routes_.size());
    thresholds_.resize(routes_.size());
  }

  Status Run() {
    Progress progress(ProgressFormOf(options_.progress, console_));
    const bool shares_terminal =
        options_.progress.empty() && console_.out_is_terminal && options_.folder.empty();
    routes_.OnProgress([&, shares_terminal](uint64_t tokens) {
      tokens_scored_ = tokens;
      if (!shares_terminal) progress.Report(tokens);
    });
    if (!options_.scores_out.empty()) return WriteScores();
    if (first_stage_) KINGLET_RETURN_IF_ERROR(FindFirstThreshold());
    if (options_.has_ranks()) KINGLET_RETURN_IF_ERROR(FindThresholds());
    if (!options_.folder.empty()) return FilterIntoFolder();
    for (size_t i = 0; i < options_.files.size(); ++i) {
      KINGLET_RETURN_IF_ERROR(FilterFile(i, Printer()));
    }
    return {};
  }

  void Summarise(double seconds) const {
    const double rate =
        tokens_scored_ > 0 ? static_cast<double>(tokens_scored_) / seconds : std::nan("");
    if (options_.run.json) {
      std::fputs(SummaryLine(seconds, rate).c_str(), stderr);
      return;
    }
    if (counts_.bad_lines > 0) PrintNote(Grouped(counts_.bad_lines) + " bad lines were omitted");
    PrintNote(OutcomeText());
    if (counts_.documents == 0) return;
    if (first_stage_) {
      PrintNote("n-gram model: bits_per_byte at most " + ShortNumber(first_threshold_) + ", in " +
                ShortNumber(first_seconds_) + " s");
    }
    for (size_t route = 0; route < routes_.size(); ++route) {
      if (HasRoutes() && counts_.routes[route].documents > 0) PrintNote(RouteText(route));
    }
    if (!HasRoutes()) PrintNote(ScoreText(counts_, 0));
    std::string speed = Grouped(counts_.documents) + " documents in " + ShortNumber(seconds) +
                        " s: " + ShortNumber(static_cast<double>(counts_.documents) / seconds) +
                        " documents per second";
    if (tokens_scored_ > 0) {
      speed += ", " + Grouped(static_cast<uint64_t>(rate)) + " tokens per second";
    }
    PrintNote(speed);
  }

 private:
  using Write = std::function<Status(size_t bucket, std::string_view)>;

  Losses Scorer() {
    return [this](const std::string& name, std::span<const Document> documents) {
      return routes_.Score(name, documents, [this](const Document& document) {
        return first_stage_ && !(first_stage_->RankOf(document.text) <= first_threshold_);
      });
    };
  }

  // The nearest rank: the smallest value that `percent` of the ranks do not exceed. REQUIRES: some.
  static double NearestRank(std::vector<double>& ranks, double percent) {
    const double share = percent / 100 * static_cast<double>(ranks.size());
    const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(share)));
    const auto place = ranks.begin() + static_cast<std::ptrdiff_t>(rank - 1);
    std::nth_element(ranks.begin(), place, ranks.end());
    return *place;
  }

  Status FindFirstThreshold() {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<double> ranks;
    for (const std::string& file : options_.files) {
      KINGLET_ASSIGN_OR_RETURN(DocumentReader reader,
                               DocumentReader::Open(file, options_.format()));
      while (true) {
        KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> document, reader.Next());
        if (!document) break;
        ranks.push_back(first_stage_->RankOf(document->text));
      }
    }
    if (!ranks.empty()) first_threshold_ = NearestRank(ranks, *options_.keep);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    first_seconds_ = seconds.count();
    return {};
  }

  Write Printer() {
    return [this](size_t /*bucket*/, std::string_view text) {
      console_.out.Write(console_.out_is_terminal ? TerminalJson(text) : std::string(text));
      return console_.out.status();
    };
  }

  bool HasRoutes() const { return !options_.route.empty(); }
  bool IsRanked(const DocumentLoss& loss) const {
    return loss.route != DocumentLoss::kNoRoute && !HasFewTokens(loss) && !HasManyUnknown(loss);
  }
  // Refuses a document that would have no rank: those that were ranked have other values.
  Status RequireRank(const std::string& name, const Document& document,
                     const DocumentLoss& loss) const {
    if (!options_.has_ranks() || !IsRanked(loss) || !thresholds_[loss.route].empty()) return {};
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, name, Numbered("line", document.line_number),
        "a document whose \"" + options_.routes().member + "\" some documents of " +
            (options_.reference.empty() ? options_.cut_from : options_.reference) + " have, too",
        Quoted(routes_.ValueOf(loss.route)));
  }

  // The nearest ranks: the smallest values that P percent of the documents do not exceed.
  Status FindThresholds() {
    std::vector<std::vector<double>> ranks(routes_.size());
    bool are_some = false;
    const auto add = [&](const DocumentLoss& loss) {
      if (!IsRanked(loss)) return;
      ranks[loss.route].push_back(RankOf(loss, options_.rank()));
      are_some = true;
    };
    if (!options_.cut_from.empty()) {
      KINGLET_RETURN_IF_ERROR(scores_.ForEach(add));
    } else if (!options_.reference.empty()) {
      KINGLET_RETURN_IF_ERROR(ScoreWhole(options_.reference, add));
    } else {
      for (const std::string& file : options_.files) {
        std::vector<DocumentLoss>& losses = known_.emplace_back();
        KINGLET_RETURN_IF_ERROR(ScoreWhole(file, [&](const DocumentLoss& loss) {
          add(loss);
          losses.push_back(loss);
        }));
      }
    }
    if (!are_some) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter",
                             options_.percentile ? "--percentile" : "--buckets",
                             "documents that --min-tokens and --max-oov keep", "none");
    }
    for (size_t route = 0; route < ranks.size(); ++route) {
      if (ranks[route].empty()) continue;
      for (const double percent : percents_) {
        thresholds_[route].push_back(NearestRank(ranks[route], percent));
      }
    }
    return {};
  }

  Status ScoreWhole(const std::string& file, const std::function<void(const DocumentLoss&)>& sink) {
    return ForEachBatch(file, options_.format(), 0, Scorer(),
                        [&](std::span<const Document>, std::span<const DocumentLoss> losses) {
                          for (const DocumentLoss& loss : losses) sink(loss);
                          return Status();
                        })
        .status();
  }

  bool HasFewTokens(const DocumentLoss& loss) const {
    return loss.scored < options_.least_tokens() || (options_.is_bounded() && loss.scored == 0);
  }
  bool HasManyUnknown(const DocumentLoss& loss) const {
    return static_cast<double>(loss.unknown) >
           options_.most_oov() * static_cast<double>(loss.scored);
  }
  // An infinite loss ranks last, whatever the threshold.
  static bool IsWithin(double rank, double threshold) {
    return std::isfinite(rank) && rank <= threshold;
  }
  // The bucket of a document. Without buckets those up to the percentile have 0.
  size_t BucketOf(const DocumentLoss& loss) const {
    if (loss.route == DocumentLoss::kNoRoute) return names_.empty() ? 0 : names_.size() - 1;
    const double rank = RankOf(loss, options_.rank());
    size_t bucket = 0;
    const std::vector<double>& thresholds = thresholds_[loss.route];
    while (bucket < thresholds.size() && !IsWithin(rank, thresholds[bucket])) ++bucket;
    return bucket;
  }
  // The tail has what the first stage omits.
  bool IsOmittedFirst(const DocumentLoss& loss) const {
    return first_stage_ && names_.empty() && std::isinf(loss.sum);
  }
  bool HasAnotherPerplexity(const DocumentLoss& loss) const {
    const double perplexity = loss.perplexity();
    return (options_.max_perplexity && !(perplexity <= *options_.max_perplexity)) ||
           (options_.min_perplexity && !(perplexity >= *options_.min_perplexity)) ||
           (options_.percentile && BucketOf(loss) > 0);
  }

  // Whether the document is kept. Counts the document, or the reason to omit it.
  bool Passes(const DocumentLoss& loss) {
    if (loss.route == DocumentLoss::kNoRoute) {
      const bool is_kept = options_.unrouted == "keep";
      ++(is_kept ? counts_.written : counts_.no_model);
      return is_kept;
    }
    uint64_t& count = HasFewTokens(loss)           ? counts_.few_tokens
                      : HasManyUnknown(loss)       ? counts_.unknown
                      : IsOmittedFirst(loss)       ? counts_.first_stage
                      : HasAnotherPerplexity(loss) ? counts_.perplexity
                                                   : counts_.written;
    ++count;
    return &count == &counts_.written;
  }

  void Count(const DocumentLoss& loss) {
    if (loss.route == DocumentLoss::kNoRoute) {
      ++counts_.documents;
      ++counts_.unrouted;
      return;
    }
    const double rank = RankOf(loss, options_.rank());
    counts_.Count(loss, rank);
    if (HasRoutes()) counts_.routes[loss.route].Count(loss, rank);
  }
  void CountKept(const DocumentLoss& loss) {
    if (loss.route == DocumentLoss::kNoRoute) return;
    const double rank = RankOf(loss, options_.rank());
    counts_.kept.Add(rank);
    ++counts_.routes[loss.route].written;
    counts_.routes[loss.route].kept.Add(rank);
  }

  void AddScores(const DocumentLoss& loss, JsonLine& line) const {
    line.Key("ppl").Number(loss.perplexity());
    line.Key("nll").Number(loss.nll()).Key("tokens").Integer(loss.scored);
    line.Key("oov").Integer(loss.unknown);
    for (const RankBy by :
         {RankBy::kKnownPerplexity, RankBy::kBitsPerByte, RankBy::kWordPerplexity}) {
      line.Key(kRankNames[static_cast<size_t>(by)]).Number(RankOf(loss, by));
    }
    if (!names_.empty()) line.Key("bucket").Text(names_[BucketOf(loss)]);
  }

  // The document with its scores as its member "kinglet", or null.
  std::string Annotated(const Document& document, const DocumentLoss& loss) const {
    JsonLine line(NumberDigits(routes_.ModelOf(0)));
    if (options_.field.empty()) line.Key("text").Text(document.line);
    line.Key("kinglet");
    if (loss.route == DocumentLoss::kNoRoute) {
      line.Null();
    } else {
      AddScores(loss, line.BeginObject());
      line.EndObject();
    }
    std::string member = line.Finish();
    if (options_.field.empty()) return member;
    std::string text = document.line.substr(0, document.line.rfind('}'));
    return text + (document.has_members ? "," : "") + member.substr(1);
  }

  // The scores that are known already, for the documents of a file.
  Losses KnownLosses(size_t file) {
    return [this, file, next = size_t{0}](
               const std::string& name,
               std::span<const Document> documents) mutable -> Result<std::vector<DocumentLoss>> {
      const std::span<const DocumentLoss> all = known_[file];
      if (documents.size() > all.size() - next) {
        return Status::Refusal(KINGLET_INVALID_ARGUMENT, "filter", name,
                               "the " + std::to_string(all.size()) + " documents read before",
                               "more: the file has changed");
      }
      const auto some = all.subspan(std::exchange(next, next + documents.size()), documents.size());
      return std::vector<DocumentLoss>(some.begin(), some.end());
    };
  }
  Losses ReadLosses(ScoreReader reader) {
    return [this, scores = std::make_shared<ScoreReader>(std::move(reader))](
               const std::string& name,
               std::span<const Document> documents) -> Result<std::vector<DocumentLoss>> {
      std::vector<DocumentLoss> losses;
      for (const Document& document : documents) {
        KINGLET_ASSIGN_OR_RETURN(const uint32_t route, routes_.RouteOf(name, document));
        if (route == DocumentLoss::kNoRoute) {
          losses.push_back({.route = route});
          continue;
        }
        std::optional<ScoredLine> scored;
        do {
          KINGLET_ASSIGN_OR_RETURN(scored, scores->Next());
        } while (scored && scored->line_number < document.line_number);
        if (!scored || scored->line_number != document.line_number || scored->loss.route != route) {
          return Status::Refusal(KINGLET_INVALID_ARGUMENT, name,
                                 Numbered("line", document.line_number),
                                 "a document that has scores", "one without (score it again)");
        }
        losses.push_back(scored->loss);
      }
      return losses;
    };
  }
  Result<Losses> LossesOf(size_t file) {
    if (!known_.empty()) return KnownLosses(file);
    if (options_.cut_from.empty()) return Scorer();
    KINGLET_ASSIGN_OR_RETURN(const FileIdentity state, IdentityOf(options_.files[file]));
    KINGLET_ASSIGN_OR_RETURN(ScoreReader reader, scores_.Read(options_.files[file], state));
    return ReadLosses(std::move(reader));
  }

  Status FilterFile(size_t file, const Write& write) {
    KINGLET_ASSIGN_OR_RETURN(const Losses losses, LossesOf(file));
    const auto sink = [&](std::span<const Document> documents,
                          std::span<const DocumentLoss> found) -> Status {
      for (size_t i = 0; i < documents.size(); ++i) {
        const Document& document = documents[i];
        const DocumentLoss& loss = found[i];
        Count(loss);
        KINGLET_RETURN_IF_ERROR(RequireRank(options_.files[file], document, loss));
        if (!Passes(loss)) continue;
        CountKept(loss);
        const size_t bucket = names_.empty() ? 0 : BucketOf(loss);
        if (!names_.empty()) ++counts_.buckets[bucket];
        KINGLET_RETURN_IF_ERROR(
            write(bucket, options_.annotate ? Annotated(document, loss) : document.line + "\n"));
      }
      return {};
    };
    KINGLET_ASSIGN_OR_RETURN(
        const uint64_t bad_lines,
        ForEachBatch(options_.files[file], options_.format(), 0, losses, sink));
    counts_.bad_lines += bad_lines;
    return {};
  }

  // All options that determine the scores, but the backend.
  std::string ScoreRun() const {
    JsonLine line;
    if (HasRoutes()) {
      line.Key("route").Text(options_.routes().member).Key("models").BeginObject();
      for (size_t route = 0; route < routes_.size(); ++route) {
        line.Key(routes_.ValueOf(route)).Text(routes_.ModelOf(route).file().digest());
      }
      line.EndObject();
    } else {
      line.Key("digest").Text(routes_.ModelOf(0).file().digest());
    }
    line.Key("field").Text(options_.field);
    line.Key("skip_bad").Boolean(options_.skip_bad).Key("max_line").Integer(options_.max_line);
    line.Key("normalise").Text(options_.normalise);
    line.Key("block").Integer(options_.blocks.block.value_or(0));
    return line.Key("context").Integer(options_.blocks.context).Finish();
  }

  // All options that determine the bytes written.
  std::string RunLine() const {
    JsonLine line(std::numeric_limits<double>::max_digits10);
    line.Key("scores").Object(ScoreRun()).Key("backend").Text(routes_.ModelOf(0).backend().name);
    const auto number = [&line](const char* key, const std::optional<double>& value) {
      line.Key(key).Number(value.value_or(std::nan("")));
    };
    number("max_ppl", options_.max_perplexity);
    number("min_ppl", options_.min_perplexity);
    line.Key("max_oov").Number(options_.most_oov());
    line.Key("min_tokens").Integer(options_.least_tokens());
    if (first_stage_) line.Key("stage1").Text(first_stage_->digest());
    if (first_stage_) line.Key("first_threshold").Number(first_threshold_);
    line.Key("rank_by").Text(kRankNames[static_cast<size_t>(options_.rank())]);
    line.Key("thresholds").BeginArray();
    for (const std::vector<double>& of_route : thresholds_) {
      line.BeginArray();
      for (const double threshold : of_route) line.Number(threshold);
      line.EndArray();
    }
    line.EndArray();
    if (HasRoutes()) line.Key("unrouted").Text(options_.unrouted);
    line.Key("buckets").Boolean(!names_.empty());
    return line.Key("annotate").Boolean(options_.annotate).Finish();
  }

  // One folder for all documents that pass, or one for each bucket.
  Status FilterIntoFolder() {
    std::vector<FilteredParts> parts;
    for (size_t i = 0; i < std::max<size_t>(1, names_.size()); ++i) {
      const std::string folder =
          names_.empty() ? options_.folder : options_.folder + "/" + names_[i];
      KINGLET_ASSIGN_OR_RETURN(
          FilteredParts part,
          FilteredParts::Open(folder, RunLine(), options_.files, options_.pack));
      parts.push_back(std::move(part));
    }
    for (size_t i = 0; i < options_.files.size(); ++i) {
      const std::string& file = options_.files[i];
      KINGLET_ASSIGN_OR_RETURN(const FileIdentity state, IdentityOf(file));
      bool are_done = true, were_others = false;
      for (FilteredParts& part : parts) {
        bool was_another = false;
        KINGLET_ASSIGN_OR_RETURN(const bool is_done, part.IsDone(file, state, was_another));
        are_done = are_done && is_done;
        were_others = were_others || was_another;
      }
      if (are_done) {
        PrintNote(parts[0].PathOf(file) + " is done");
        continue;
      }
      if (were_others) PrintNote(file + " has changed since: it is filtered again");
      std::vector<PartFile> files;
      for (const FilteredParts& part : parts) {
        KINGLET_ASSIGN_OR_RETURN(PartFile made, PartFile::Create(part.PathOf(file), options_.pack));
        files.push_back(std::move(made));
      }
      KINGLET_RETURN_IF_ERROR(FilterFile(
          i, [&files](size_t bucket, std::string_view text) { return files[bucket].Write(text); }));
      for (size_t part = 0; part < parts.size(); ++part) {
        KINGLET_RETURN_IF_ERROR(parts[part].Keep(file, state, std::move(files[part])));
      }
    }
    return {};
  }

  // Files that other processes score are waited for, and taken over if those processes end.
  Status WriteScores() {
    KINGLET_RETURN_IF_ERROR(scores_.Make(options_.files));
    std::vector<std::string> busy;
    for (const std::string& file : options_.files) {
      KINGLET_ASSIGN_OR_RETURN(const bool is_busy, WriteScoresOf(file, false));
      if (is_busy) busy.push_back(file);
    }
    for (const std::string& file : busy) {
      PrintNote("waiting for another process, which scores " + file);
      KINGLET_RETURN_IF_ERROR(WriteScoresOf(file, true).status());
    }
    return {};
  }

  // Returns whether another process scores the file.
  Result<bool> WriteScoresOf(const std::string& file, bool waits) {
    KINGLET_ASSIGN_OR_RETURN(const FileIdentity state, IdentityOf(file));
    KINGLET_ASSIGN_OR_RETURN(ScoreFolder::Start start, scores_.Begin(file, state, waits));
    if (start.claim == ScoreFolder::Claim::kDone) PrintNote(file + " is scored");
    if (start.claim != ScoreFolder::Claim::kOurs) return start.claim == ScoreFolder::Claim::kBusy;
    ScoreWriter& writer = *start.writer;
    if (writer.documents() > 0) {
      PrintNote(file + " is continued after " + Grouped(writer.documents()) + " documents");
    }
    const auto sink = [&](std::span<const Document> documents,
                          std::span<const DocumentLoss> losses) {
      std::vector<ScoredLine> lines;
      for (size_t i = 0; i < documents.size(); ++i) {
        Count(losses[i]);
        if (losses[i].route == DocumentLoss::kNoRoute) continue;
        lines.push_back({documents[i].line_number, losses[i]});
      }
      return writer.Append(lines);
    };
    KINGLET_ASSIGN_OR_RETURN(
        const uint64_t bad_lines,
        ForEachBatch(file, options_.format(), writer.last_line(), Scorer(), sink));
    counts_.bad_lines += bad_lines;
    KINGLET_RETURN_IF_ERROR(writer.Finish(bad_lines));
    return false;
  }

  std::string OutcomeText() const {
    if (!options_.scores_out.empty()) {
      return Grouped(counts_.documents - counts_.unrouted) + " documents were scored into " +
             options_.scores_out +
             (counts_.unrouted > 0 ? "; " + Grouped(counts_.unrouted) + " have no model" : "");
    }
    std::string text =
        Grouped(counts_.written) + " of " + Grouped(counts_.documents) + " documents were written";
    for (size_t i = 0; i < names_.size(); ++i) {
      text += (i == 0 ? ": " : ", ") + Grouped(counts_.buckets[i]) + " in " + names_[i];
    }
    bool is_first = true;
    const auto add = [&](uint64_t count, const std::string& reason) {
      if (count == 0) return;
      text += (std::exchange(is_first, false) ? "; omitted: " : ", ") + Grouped(count) + reason;
    };
    char share[32];
    std::snprintf(share, sizeof(share), "%g", options_.most_oov());
    add(counts_.no_model, " without a model (--unrouted drop)");
    add(counts_.few_tokens,
        " for few tokens (--min-tokens " + std::to_string(options_.least_tokens()) + ")");
    add(counts_.unknown, " for unknown words (--max-oov " + std::string(share) + ")");
    add(counts_.first_stage,
        " by the n-gram model (--keep " + ShortNumber(options_.keep.value_or(0)) + ")");
    add(counts_.perplexity, " for their perplexity");
    return text;
  }

  std::string RouteText(size_t route) const {
    const RouteCounts& counts = counts_.routes[route];
    std::string text = options_.routes().member + " " + Quoted(routes_.ValueOf(route)) + ": ";
    if (options_.scores_out.empty()) text += Grouped(counts.written) + " of ";
    return text + Grouped(counts.documents) + " documents; " + ScoreText(counts, route);
  }

  std::string ScoreText(const RouteCounts& counts, size_t route) const {
    std::string text = kRankNames[static_cast<size_t>(options_.rank())];
    const std::vector<double>& thresholds = thresholds_[route];
    for (size_t i = 0; i < thresholds.size(); ++i) {
      text += (i == 0 ? ": at most " : ", ") + ShortNumber(thresholds[i]);
    }
    text += thresholds.empty() ? ": median " : "; median ";
    text += ShortNumber(counts.all.Value());
    if (counts.written > 0) text += ", of the written " + ShortNumber(counts.kept.Value());
    return text + "; " + ShortNumber(100 * counts.UnknownShare()) +
           " % of the tokens are unknown words";
  }

  void AddThresholds(size_t route, JsonLine& line) const {
    const std::vector<double>& thresholds = thresholds_[route];
    line.Key("cut");
    if (thresholds.size() == 1) {
      line.Number(thresholds[0]);
    } else if (thresholds.empty()) {
      line.Null();
    } else {
      line.BeginArray();
      for (const double threshold : thresholds) line.Number(threshold);
      line.EndArray();
    }
  }

  std::string SummaryLine(double seconds, double rate) const {
    JsonLine line;
    line.Key("documents").Integer(counts_.documents).Key("kept").Integer(counts_.written);
    if (!HasRoutes()) AddThresholds(0, line);
    line.Key("oov_share").Number(counts_.UnknownShare()).Key("tokens_per_s").Number(rate);
    line.Key("documents_per_s").Number(static_cast<double>(counts_.documents) / seconds);
    line.Key("rank_by").Text(kRankNames[static_cast<size_t>(options_.rank())]);
    line.Key("median").Number(counts_.all.Value());
    line.Key("median_kept").Number(counts_.kept.Value());
    if (HasRoutes()) {
      line.Key("routes").BeginObject();
      for (size_t route = 0; route < routes_.size(); ++route) {
        const RouteCounts& counts = counts_.routes[route];
        line.Key(routes_.ValueOf(route)).BeginObject().Key("documents").Integer(counts.documents);
        line.Key("kept").Integer(counts.written);
        AddThresholds(route, line);
        line.Key("oov_share").Number(counts.UnknownShare());
        line.Key("median").Number(counts.all.Value());
        line.Key("median_kept").Number(counts.kept.Value()).EndObject();
      }
      line.EndObject().Key("unrouted").Integer(counts_.unrouted);
    }
    if (!names_.empty()) {
      line.Key("buckets").BeginObject();
      for (size_t i = 0; i < names_.size(); ++i) {
        line.Key(names_[i]).Integer(counts_.buckets[i]);
      }
      line.EndObject();
    }
    line.Key("few_tokens").Integer(counts_.few_tokens).Key("unknown").Integer(counts_.unknown);
    if (first_stage_) {
      line.Key("stage1").Integer(counts_.first_stage).Key("stage1_cut").Number(first_threshold_);
      line.Key("stage1_s").Number(first_seconds_);
    }
    line.Key("other_ppl").Integer(counts_.perplexity);
    return line.Key("bad_lines").Integer(counts_.bad_lines).Finish();
  }

  const FilterOptions& options_;
  const std::vector<double> percents_;
  DocumentRoutes& routes_;
  const std::optional<FirstStage> first_stage_;
  double first_threshold_ = 0, first_seconds_ = 0;
  Console& console_;
  const ScoreFolder scores_;
  std::vector<std::string> names_;                // of buckets
  std::vector<std::vector<double>> thresholds_;   // by route: for each of percents_
  std::vector<std::vector<DocumentLoss>> known_;  // by file: what was scored for thresholds_
  uint64_t tokens_scored_ = 0;
  FilterCounts counts_;
};

Status UsageError(const std::string& where, const std::string& expected, const std::string& found) {
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", where, expected, found);
}

// "30,60" -> 30, 60; the percentile alone; or nothing.
Result<std::vector<double>> PercentsOf(const FilterOptions& options) {
  if (options.buckets.empty()) {
    return options.percentile ? std::vector{*options.percentile} : std::vector<double>();
  }
  std::vector<double> percents;
  for (std::string_view rest = options.buckets;;) {
    const size_t end = rest.find(',');
    const std::optional<double> percent = ParseNumber<double>(rest.substr(0, end));
    const double last = percents.empty() ? 0 : percents.back();
    if (!percent || !(*percent > last) || !(*percent < 100)) {
      return UsageError("--buckets", "ascending percentages between 0 and 100, as in 30,60",
                        Quoted(options.buckets));
    }
    percents.push_back(*percent);
    if (end == rest.npos) return percents;
    rest.remove_prefix(end + 1);
  }
}

Status RunFilter(const FilterOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(DocumentRoutes routes,
                           DocumentRoutes::Open(options.run, options.blocks, options.routes()));
  KINGLET_ASSIGN_OR_RETURN(std::vector<double> percents, PercentsOf(options));
  const auto begin = std::chrono::steady_clock::now();
  std::optional<FirstStage> first_stage;
  if (!options.stage1.empty()) {
    KINGLET_ASSIGN_OR_RETURN(first_stage, FirstStage::Open(options.stage1));
  }
  Filter filter(options, std::move(percents), routes, std::move(first_stage), console);
  KINGLET_RETURN_IF_ERROR(filter.Run());
  KINGLET_RETURN_IF_ERROR(console.out.Flush());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  filter.Summarise(seconds.count());
  return {};
}

// With a route no operand is a model.
Status ChooseFiles(FilterOptions& options) {
  std::string& model = options.run.model;
  if (options.route.empty() && model.empty()) {
    return UsageError("filter", "M.kgl (model file), or --route", "none");
  }
  if (!options.route.empty() && !model.empty()) {
    options.files.insert(options.files.begin(), std::exchange(model, ""));
  }
  if (options.files.empty()) options.files.emplace_back("-");
  return {};
}

Status CheckRoute(const FilterOptions& options) {
  if (options.route.empty()) return {};
  const size_t end = options.route.find('=');
  if (end == 0 || end >= options.route.size() - 1) {
    return UsageError("--route", "NAME=MODELS.json", Quoted(options.route));
  }
  if (options.field.empty()) return UsageError("--route", "--field NAME", "lines of plain text");
  if (options.files.front().ends_with(".kgl")) {
    return UsageError("--route", "FILES only, as MODELS.json names the models",
                      options.files.front());
  }
  return {};
}

Status CheckFilter(FilterOptions& options) {
  KINGLET_RETURN_IF_ERROR(ChooseFiles(options));
  KINGLET_RETURN_IF_ERROR(CheckRoute(options));
  const bool makes_scores = !options.scores_out.empty(), has_scores = !options.cut_from.empty();
  if (!options.is_bounded() && !options.annotate && !makes_scores) {
    return UsageError("filter",
                      "--max-ppl, --min-ppl, --percentile, --buckets, --max-oov, --min-tokens, "
                      "--annotate or --scores-out",
                      "none of them");
  }
  KINGLET_RETURN_IF_ERROR(PercentsOf(options).status());
  if (!options.buckets.empty() && options.folder.empty() && !options.annotate) {
    return UsageError("--buckets", "-o FOLDER or --annotate", "neither");
  }
  if (makes_scores && (options.is_bounded() || options.annotate || !options.folder.empty())) {
    return UsageError("--scores-out", "no other result (--cut-from uses the scores)",
                      "bounds, --annotate or -o");
  }
  const bool reads_input = std::count(options.files.begin(), options.files.end(), "-") > 0;
  if (!options.stage1.empty() && !options.keep) return UsageError("--stage1", "--keep P", "none");
  const char* const asker = !options.stage1.empty() ? "--stage1"
                            : makes_scores          ? "--scores-out"
                            : has_scores            ? "--cut-from"
                            : options.percentile    ? "--percentile"
                                                    : "--buckets";
  const bool reads_twice = makes_scores || has_scores || !options.stage1.empty() ||
                           (options.has_ranks() && options.reference.empty());
  if (reads_twice && reads_input) {
    return UsageError(asker,
                      makes_scores || has_scores || !options.stage1.empty()
                          ? "FILES"
                          : "FILES or --reference FILE",
                      "standard input, which can be read only once");
  }
  for (const std::string& file : options.files) {
    if (reads_twice) KINGLET_RETURN_IF_ERROR(RefusePipe(asker, file));
    if (!options.folder.empty() && file != "-") KINGLET_RETURN_IF_ERROR(RefusePipe("-o", file));
  }
  if (options.reference == "-" && reads_input) {
    return UsageError("--reference", "standard input once",
                      "- together with FILES that are read from it");
  }
  if (options.folder.empty()) {
    return options.pack.empty()
               ? Status()
               : UsageError("--pack", "-o FOLDER", "standard output (a program after | packs it)");
  }
  if (reads_input) return UsageError("--output", "FILES", "standard input");
  std::map<std::string, std::string> names;
  for (const std::string& file : options.files) {
    const auto [place, added] = names.emplace(ResultName(file, options.pack), file);
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
  filter.Get("M.kgl").Required(false).Help("model file; none with --route");
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
           "keep documents of at most the P-th percentile of the scores of the FILES or the "
           "reference")
      .Between(0.0, 100.0)
      .Placeholder("P");
  Option percentile = filter.Get("--percentile");
  filter
      .Add("--buckets", options->buckets,
           "divide documents at these percentiles: 30,60 gives head, middle and tail, folders of "
           "-o or the member \"bucket\" of --annotate")
      .Placeholder("P,..")
      .Excludes(percentile);
  filter
      .Add("--rank-by", options->rank_by,
           "the score of --percentile and --buckets (default: bits_per_byte)")
      .OneOf({kRankNames.begin(), kRankNames.end()});
  Option reference = filter.Add("--reference", options->reference,
                                "documents that --percentile and --buckets rank (default: FILES)");
  reference.Placeholder(kFileOrStandardInput);
  Option scores_out =
      filter.Add("--scores-out", options->scores_out,
                 "only score, into this folder; a run that was stopped is continued inside a "
                 "file, and several processes share the FILES");
  scores_out.Placeholder("FOLDER").Excludes(reference);
  Option stage1 = filter.Add("--stage1", options->stage1,
                             "an n-gram file that ranks documents first (`kinglet ngram`)");
  stage1.Placeholder("M.kng").Excludes(scores_out);
  filter
      .Add("--keep", options->keep,
           "the network scores only the P percent that --stage1 ranks best")
      .Between(0.0, 100.0)
      .Needs(stage1)
      .Placeholder("P");
  filter
      .Add("--cut-from", options->cut_from,
           "use the scores of this folder, and rank all of them (default: score the FILES)")
      .Placeholder("FOLDER")
      .Excludes(scores_out)
      .Excludes(stage1)
      .Excludes(reference);
  filter.Add("--field", options->field, "read JSON Lines; the member NAME is the document")
      .Placeholder("NAME");
  Option route = filter.Add("--route", options->route,
                            "choose each document's model by its member NAME (a.b: b in a): "
                            "{\"VALUE\":\"M.kgl\",..}; percentiles are of each value");
  route.Placeholder("NAME=MODELS.json").Excludes(stage1);
  filter
      .Add("--unrouted", options->unrouted,
           "what becomes of documents without a model (default: refuse)")
      .OneOf({"refuse", "keep", "drop"})
      .Needs(route);
  filter.AddFlag("--annotate", options->annotate,
                 "write JSON Lines with {\"kinglet\":{\"ppl\":..,\"nll\":..,\"tokens\":..,"
                 "\"oov\":..,..}} added");
  filter.AddFlag("--skip-bad", options->skip_bad,
                 "omit lines that are not JSON or lack the member, and count them");
  filter
      .Add("-o,--output", options->folder,
           "folder with a result for each file; a run that was stopped is continued")
      .Placeholder("FOLDER");
  filter
      .Add("--normalise", options->normalise,
           "score the text as CCNet or datatrove rewrites it: lower case, no accents, 0 for digits "
           "or "
           "numbers, ASCII punctuation; what is written does not change")
      .OneOf({"ccnet", "datatrove"});
  filter.Add("--pack", options->pack, "pack the results of -o; they are NAME.gz or NAME.zst")
      .OneOf({"gz", "zst"});
  filter.Add("--max-line", options->max_line, "lines of more than N bytes are bad lines")
      .Between(uint64_t{1}, uint64_t{1} << 40)
      .Placeholder("N")
      .ShowDefault();
  Option block = filter.Add("--block", options->blocks.block,
                            "for a model with absolute positions: split documents into blocks of N "
                            "tokens (default: the positions)");
  block.Between(uint64_t{1}, uint64_t{1} << 62).Placeholder("N");
  filter.Add("--context", options->blocks.context, "overlap of the blocks, scored once")
      .Needs(block)
      .Placeholder("C");
  AddTeamOptions(filter, options->run, "score N documents at once");
  AddProgress(filter, options->progress);
  filter.AddFlag("--json", options->run.json, "the summary on standard error as JSON");
  filter.Footer(
      "Example:\n  kinglet filter model.kgl --field text --max-ppl 200 < in.jsonl > out.jsonl");
  return {filter, [options] { return CheckFilter(*options); },
          [options](Console& console) { return RunFilter(*options, console); }};
}

}  // namespace kinglet
