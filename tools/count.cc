// kinglet count: operations and storage of a model, as executed or by published rules.
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converters/texts/pair_file.h"
#include "converters/texts/token_file.h"
#include "format/limits.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "runtime/cached_rows.h"
#include "runtime/session.h"
#include "tools/commands.h"
#include "tools/count_report.h"
#include "tools/run_options.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct CountOptions {
  RunOptions run;
  std::string rules = "executed";
  std::string ids, bin_counts;
  std::string pairs, lengths;  // of translations; the length of a masked model's text
  std::string mode = "full";
  uint32_t top = 10;
  bool compare = false, all_layers = false;
  std::string progress;  // "" or "json"
};

// The input that is counted: micronet-2019 counts bins, executed counts the paths of tokens.
struct CountInput {
  std::vector<uint64_t> bin_counts;
  Trace trace;
  std::string text;
  Trace encoder;           // paths of the source tokens
  uint64_t sentences = 0;  // translations
};

// Runs the tokens and makes the query of --mode after each. Mode score queries the following token,
// so it omits the last one.
Result<Trace> RunTokens(const CountOptions& options, const std::shared_ptr<const Model>& model,
                        std::span<const uint32_t> ids, ProgressForm progress_form) {
  const bool score = options.mode == "score";
  Progress progress(progress_form, ids.size() - (score ? 1 : 0));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Create(model));
  CachedRows rows(model->plan());
  Trace trace;
  for (size_t t = 0; t + (score ? 1 : 0) < ids.size(); ++t) {
    KINGLET_RETURN_IF_ERROR(session->StepToken(ids[t]));
    KINGLET_RETURN_IF_ERROR(score ? session->LogProbability(ids[t + 1]).status()
                                  : session->TopK(options.top).status());
    const QueryWork& work = session->last_work();
    ++trace.paths[PathOf(model->plan(), t, ids[t], work.clusters, rows.Step(ids[t]))];
    trace.distribution += work.arithmetic;
    progress.Report(t + 1);
  }
  return trace;
}

// A random sentence pair of the lengths in --lengths. Its ids do not change the count.
Result<std::vector<SentencePair>> PairOfLengths(const CountOptions& options, const Model& model) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> lengths,
                           ParseCounts("--lengths", options.lengths));
  const uint64_t most = model.plan().encoder->window;
  if (lengths.size() != 2 || lengths[0] == 0 || lengths[1] == 0 || lengths[0] > most ||
      lengths[1] > kMaxExtent) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--lengths",
                           "tokens of a source, up to " + std::to_string(most) +
                               ", and of a target, separated by a comma",
                           options.lengths);
  }
  if (EmbeddingOf(model.plan()).bins.size() > 1 ||
      SourceEmbeddingOf(model.plan()).bins.size() > 1) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "--lengths",
                           "embeddings in which all words cost the same", "several bins");
  }
  return std::vector<SentencePair>{
      {std::vector<uint32_t>(lengths[0], 0), std::vector<uint32_t>(lengths[1], 0)}};
}

// The path of each target token and the work of the query after it.
Result<Trace> RunPair(const CountOptions& options, const SentencePair& pair, Session& session) {
  const Plan& plan = session.model().plan();
  uint32_t fed = *session.model().file().description().start_token;
  CachedRows rows(plan);
  Trace trace;
  const Status status = FeedPair(pair, session, [&](uint32_t id) -> Status {
    KINGLET_RETURN_IF_ERROR(options.mode == "score" ? session.LogProbability(id).status()
                                                    : session.TopK(options.top).status());
    const QueryWork& work = session.last_work();
    ++trace.paths[PathOf(plan, session.position() - 1, fed, work.clusters, rows.Step(fed),
                         pair.source.size())];
    trace.distribution += work.arithmetic;
    fed = id;
    return Status();
  });
  KINGLET_RETURN_IF_ERROR(status);
  return trace;
}

Result<CountInput> ReadTranslations(const CountOptions& options,
                                    const std::shared_ptr<const Model>& model,
                                    ProgressForm progress_form) {
  const Plan& plan = model->plan();
  const uint32_t start_token = *model->file().description().start_token;
  std::vector<SentencePair> pairs;
  if (!options.pairs.empty()) {
    KINGLET_ASSIGN_OR_RETURN(pairs, ReadPairs(options.pairs, start_token));
  } else {
    KINGLET_ASSIGN_OR_RETURN(pairs, PairOfLengths(options, *model));
  }
  CountInput input;
  input.bin_counts.resize(EmbeddingOf(plan).bins.size());
  input.sentences = pairs.size();
  std::unique_ptr<Session> session;
  if (options.mode != "full") {
    KINGLET_ASSIGN_OR_RETURN(session, Session::Create(model));
  }
  Progress progress(progress_form);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const Status status = CheckPair(pairs[i], *model);
    if (!status.ok()) return InSentence(i, status);
    input.encoder += EncoderTrace(plan, pairs[i].source);
    if (session) {
      KINGLET_ASSIGN_OR_RETURN(const Trace trace, RunPair(options, pairs[i], *session));
      input.trace += trace;
      progress.Report(input.trace.tokens());
    } else {
      std::vector<uint32_t> fed = {start_token};
      fed.insert(fed.end(), pairs[i].target.begin(), pairs[i].target.end() - 1);
      input.trace += FullTrace(plan, fed, pairs[i].source.size());
    }
  }
  for (const auto& [path, count] : input.trace.paths) input.bin_counts[path.bin] += count;
  const std::string query = options.mode == "full"    ? "the full distribution"
                            : options.mode == "score" ? "the next word"
                                                      : "the top " + std::to_string(options.top);
  input.text =
      Grouped(input.trace.tokens()) + " target tokens of " +
      (options.pairs.empty() ? "a pair of " + options.lengths + " tokens" : options.pairs) + ", " +
      query + " after each";
  return input;
}

// The texts of --ids, or one of the length in --lengths.
Result<std::vector<std::vector<uint32_t>>> ReadTexts(const CountOptions& options,
                                                     const Model& model) {
  const uint64_t most = model.plan().encoder->window;
  if (options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const std::vector<uint64_t> lengths,
                             ParseCounts("--lengths", options.lengths));
    if (lengths.size() != 1 || lengths[0] == 0 || lengths[0] > most) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--lengths",
                             "tokens of a text, up to " + std::to_string(most), options.lengths);
    }
    if (SourceEmbeddingOf(model.plan()).bins.size() > 1) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "--lengths",
                             "an embedding in which all words cost the same", "several bins");
    }
    return std::vector<std::vector<uint32_t>>{std::vector<uint32_t>(lengths[0], 0)};
  }
  KINGLET_ASSIGN_OR_RETURN(std::vector<std::vector<uint32_t>> texts, ReadIdLines(options.ids));
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string where = options.ids + ", line " + std::to_string(i + 1);
    if (texts[i].size() > most) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, where, "text",
                             "at most " + std::to_string(most) + " tokens",
                             std::to_string(texts[i].size()));
    }
    for (const uint32_t id : texts[i]) {
      if (id < model.vocabulary_size()) continue;
      return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, where, "id",
                             "an id below " + std::to_string(model.vocabulary_size()),
                             std::to_string(id));
    }
  }
  std::erase_if(texts, [](const std::vector<uint32_t>& text) { return text.empty(); });
  if (!texts.empty()) return texts;
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.ids, "texts", "at least one", "none");
}

// A masked model reads each text once, and then answers: it predicts one word, makes the pooled
// vector and scores the text, if it can; scores of spans are of every token.
Result<CountInput> ReadMaskedTexts(const CountOptions& options, const Model& model) {
  const Plan& plan = model.plan();
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::vector<uint32_t>> texts,
                           ReadTexts(options, model));
  CountInput input;
  input.bin_counts.resize(SourceEmbeddingOf(plan).bins.size());
  input.sentences = texts.size();
  for (const std::vector<uint32_t>& text : texts) {
    input.encoder += EncoderTrace(plan, text);
    const size_t answers = plan.reading->scores_spans ? text.size() : 1;
    input.trace += FullTrace(plan, std::vector<uint32_t>(answers, 0), text.size());
  }
  for (const auto& [path, count] : input.encoder.paths) input.bin_counts[path.bin] += count;
  const auto some = [](uint64_t count, const std::string& what) {
    return Grouped(count) + " " + what + (count == 1 ? "" : "s");
  };
  input.text = some(input.trace.tokens(), "answer") + " about " + some(texts.size(), "text") +
               ", read once" +
               (plan.clusters.empty() ? "" : "; an answer is a word's distribution");
  return input;
}

Result<CountInput> ReadInput(const CountOptions& options, const std::shared_ptr<const Model>& model,
                             ProgressForm progress) {
  const Plan& plan = model->plan();
  if (plan.reading) return ReadMaskedTexts(options, *model);
  if (plan.encoder) return ReadTranslations(options, model, progress);
  const size_t bins = EmbeddingOf(plan).bins.size();
  CountInput input;
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    const size_t least = options.mode == "score" ? 2 : 1;
    if (sequence.ids.size() < least) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.ids, "tokens",
                             "at least " + std::to_string(least),
                             std::to_string(sequence.ids.size()));
    }
    input.bin_counts = BinCounts(plan, sequence.ids);
    std::string query = FullQueryText(plan);
    if (options.mode == "full") {
      input.trace = FullTrace(plan, sequence.ids);
    } else {
      KINGLET_ASSIGN_OR_RETURN(input.trace, RunTokens(options, model, sequence.ids, progress));
      query = options.mode == "score" ? "the next word" : "the top " + std::to_string(options.top);
    }
    input.text = StreamPathsText(input.trace.tokens(), options.ids, query);
    return input;
  }
  if (!options.bin_counts.empty()) {
    KINGLET_ASSIGN_OR_RETURN(input.bin_counts, ParseCounts("--bin-counts", options.bin_counts));
  } else if (!NeedsBinCounts(plan)) {
    input.bin_counts.resize(bins);
    input.bin_counts.front() = 1;  // all bins cost the same
  }
  // Sums of counts stay exact in double.
  constexpr uint64_t kMaxCountedTokens = uint64_t{1} << 53;
  uint64_t remaining = kMaxCountedTokens;
  for (const uint64_t count : input.bin_counts) {
    if (count > remaining) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--bin-counts",
                             "at most " + std::to_string(kMaxCountedTokens) + " tokens in all",
                             options.bin_counts);
    }
    remaining -= count;
  }
  const bool zero = std::all_of(input.bin_counts.begin(), input.bin_counts.end(),
                                [](uint64_t count) { return count == 0; });
  if (input.bin_counts.size() != bins || zero) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, options.run.model, "bin frequencies",
        "--ids FILE, or --bin-counts with one for each of " + std::to_string(bins) +
            " bins, not all 0",
        options.bin_counts.empty() ? "neither" : "--bin-counts " + options.bin_counts);
  }
  input.trace = SteadyFullTrace(plan, input.bin_counts);
  input.text =
      plan.clusters.empty() ? FullQueryText(plan) : "window and cache full, the full distribution";
  return input;
}

// For masked models, refuses rules and inputs that have no meaning for them.
Status CheckMaskedCount(const CountOptions& options) {
  if (options.ids.empty() && options.lengths.empty()) {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, options.run.model, "count",
        "--ids FILE, a text a line, or --lengths TOKENS, as it is a masked model",
        options.pairs.empty() ? "neither" : "--pairs");
  }
  if (options.mode != "full") {
    return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "count --mode", "full",
                           options.mode);
  }
  if (options.rules == "executed" && !options.compare) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, options.run.model, "count",
                         "--rules executed, as micronet-2019 has no rule for masked models",
                         options.compare ? "--compare" : options.rules);
}

// Refuses options whose kind of input does not suit the model: texts without an encoder, sentence
// pairs with one.
Status CheckCountInput(const CountOptions& options, bool has_encoder) {
  const bool texts = !options.ids.empty() || !options.bin_counts.empty();
  const bool translations = !options.pairs.empty() || !options.lengths.empty();
  if (has_encoder ? translations && !texts : !translations) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, options.run.model, "count",
                         has_encoder
                             ? "--pairs FILE or --lengths SOURCE,TARGET, as it has an encoder"
                             : "--ids FILE or --bin-counts, as it has no encoder",
                         texts          ? "--ids or --bin-counts"
                         : translations ? "--pairs or --lengths"
                                        : "neither");
}

Status CountModel(const CountOptions& options, Console& console) {
  const ProgressForm progress = ProgressFormOf(options.progress, console);
  Progress(progress).Say("opening " + options.run.model);
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenWholeModel(options.run));
  const Plan& plan = model->plan();
  KINGLET_RETURN_IF_ERROR(plan.reading ? CheckMaskedCount(options)
                                       : CheckCountInput(options, plan.encoder.has_value()));
  KINGLET_ASSIGN_OR_RETURN(const CountInput input, ReadInput(options, model, progress));
  const std::vector<uint64_t> nonzeros = CountNonzeros(plan.weights);
  CountBasis basis = CountBasisOf(*model, input.text, input.bin_counts);
  basis.all_layers = options.all_layers;
  const auto print = [&console](const std::string& text) {
    console.out.Write(text);
    return Status();
  };
  const BackendTraits traits = TraitsOf(model->backend());
  const auto executed = [&] { return CountExecuted(plan, nonzeros, traits, input.trace); };
  ExecutedCount encoded;
  if (plan.encoder) {
    encoded = CountExecuted(plan, nonzeros, traits, input.encoder);
    basis.encoder = EncoderCount{
        input.sentences,    input.encoder.tokens(),     input.trace.tokens(),    encoded.components,
        encoded.operations, encoded.operations.Total(), plan.reading.has_value()};
  }
  const bool json = options.run.json;
  if (options.rules == "executed" && !options.compare) {
    const ExecutedStorage storage = ExecutedStorageOf(*model, nonzeros);
    return print(json ? ExecutedJson(executed(), storage, basis)
                      : ExecutedText(executed(), storage, basis));
  }
  std::optional<TranslationMeans> means;
  if (plan.encoder) means = MeansOf(plan, input.encoder, input.trace);
  KINGLET_ASSIGN_OR_RETURN(
      const MicronetCount micronet,
      CountMicronet2019(plan, nonzeros, input.bin_counts, means ? &*means : nullptr));
  if (options.compare) {
    const auto show = [&](const std::vector<ComparedComponent>& compared) {
      return json ? CompareJson(compared) : CompareText(compared, basis);
    };
    KINGLET_RETURN_IF_ERROR(print(show(Compare(micronet.components, executed().components))));
    if (!plan.encoder) return Status();
    basis.paths = Grouped(input.encoder.tokens()) + " source tokens through the encoder";
    return print((json ? "" : "\n") + show(Compare(micronet.encoder, encoded.components)));
  }
  if (basis.encoder) {
    basis.encoder->components = micronet.encoder;
    basis.encoder->operations = micronet.encoder_operations;
    basis.encoder->total = micronet.encoder_operations.WeightedTotal();
  }
  return print(json ? MicronetJson(micronet, basis) : MicronetText(micronet, basis));
}

Status CheckOptions(const CountOptions& options) {
  int inputs = 0;
  for (const std::string* input :
       {&options.ids, &options.bin_counts, &options.pairs, &options.lengths}) {
    inputs += input->empty() ? 0 : 1;
  }
  if (inputs > 1) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "count",
                           "one of --ids, --bin-counts, --pairs and --lengths", "several");
  }
  const bool runs = !options.ids.empty() || !options.pairs.empty();
  if (options.mode != "full" && (!runs || options.rules != "executed" || options.compare)) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "count --mode " + options.mode,
                           "--ids or --pairs, --rules executed and no --compare",
                           !runs             ? "neither file"
                           : options.compare ? "--compare"
                                             : options.rules);
  }
  if (!options.lengths.empty()) return ParseCounts("--lengths", options.lengths).status();
  if (options.bin_counts.empty()) return Status();
  return ParseCounts("--bin-counts", options.bin_counts).status();
}

}  // namespace

Command AddCount(Arguments& program) {
  const auto options = std::make_shared<CountOptions>();
  Arguments count = program.AddSubcommand("count", "Count operations per token and bytes");
  AddRunOptions(count, options->run, "changes nothing: counts are those of one stream");
  count
      .Add("--rules", options->rules,
           "counting rules: what is executed, or the MicroNet challenge's")
      .OneOf({"executed", "micronet-2019"})
      .ShowDefault();
  count.Add("--ids", options->ids, "count over these token ids").Placeholder(kFileOrStandardInput);
  count
      .Add("--bin-counts", options->bin_counts,
           "number of tokens in each embedding bin, with cache and context full")
      .Placeholder("a,b,c");
  count
      .Add("--pairs", options->pairs,
           "count over these translations, one pair per line: source ids ||| target ids")
      .Placeholder(kFileOrStandardInput);
  count
      .Add(
          "--lengths", options->lengths,
          "count over one translation of these lengths in tokens, or, for a masked model, one text")
      .Placeholder("SOURCE,TARGET");
  count.Add("--mode", options->mode, "query after each token")
      .OneOf({"full", "score", "topk"})
      .ShowDefault();
  count.Add("--top", options->top, "number of tokens that a topk query returns")
      .Between(uint32_t{1}, UINT32_MAX)
      .Placeholder("K")
      .ShowDefault();
  count.AddFlag("--compare", options->compare,
                "print both rules and the reasons for their differences");
  count.AddFlag("--all", options->all_layers, "list equal layers one by one");
  AddProgress(count, options->progress);
  count.Footer(
      "Example:\n  kinglet count model.kgl --rules micronet-2019 --bin-counts 198232,35479,11858");
  return {count, [options] { return CheckOptions(*options); },
          [options](Console& console) { return CountModel(*options, console); }};
}

}  // namespace kinglet
