// kinglet predict: the most probable next tokens after each token of a text, line by line as the
// text arrives.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "converters/output_path.h"
#include "format/message_text.h"
#include "runtime/special_tokens.h"
#include "runtime/text/model_text.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/line_tokens.h"
#include "tools/predictor.h"
#include "tools/run_options.h"
#include "tools/soft_labels.h"
#include "tools/text_lines.h"
#include "tools/word_choice.h"
#include "tools/words.h"

namespace kinglet {
namespace {

struct PredictOptions {
  RunOptions run;
  std::string ids;
  std::optional<uint32_t> top;
  std::optional<double> top_p;
  std::optional<std::string> prefix;
  std::string allowed;
  bool next = false;
  bool no_unk = false;
  std::string out;
  uint64_t shard_tokens = uint64_t{1} << 19;
};

// The number of words that are printed by default.
constexpr uint32_t kTop = 5;

// Answers each line of standard input when it arrives. A line without an end gets no token for its
// end.
Status PredictLines(Predictor& predictor, const Model& model, const Console& console) {
  LineTokens tokens(model, kStandardInput);
  return ForEachInputLine([&](std::string_view line, bool ended) -> Status {
    TokenSequence sequence;
    const Status read = tokens.Append(line, ended, sequence);
    const Status fed = predictor.Feed(sequence);  // the tokens before a bad word are answered too
    KINGLET_RETURN_IF_ERROR(read.ok() ? fed : read);
    return console.input_is_terminal ? predictor.ShowPending() : Status();
  });
}

// Whether the next word may be several tokens: pieces, or the tokens that the model's tokenizer
// makes of words with this beginning (didn', well-). Text after the prefix changes its tokens.
bool SpansTokens(const ModelText& text, const std::string& prefix) {
  if (text.splits_words()) return true;
  for (const char* const follows : {"", "a", "0"}) {
    const Result<TokenizedText> tokenized = text.Encode(prefix + follows);
    if (tokenized.ok() && tokenized->tokens.size() > 1) return true;
  }
  return false;
}

// All ids of the input.
Result<std::vector<uint32_t>> ReadInput(const PredictOptions& options, const Model& model) {
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(TokenSequence sequence,
                             ReadIdSequence(options.ids, model.vocabulary_size()));
    return std::move(sequence.ids);
  }
  std::vector<uint32_t> ids;
  LineTokens tokens(model, kStandardInput);
  const Status read = ForEachInputLine([&](std::string_view line, bool ended) {
    TokenSequence sequence;
    Status status = tokens.Append(line, ended, sequence);
    ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
    return status;
  });
  if (!read.ok()) return read;
  return ids;
}

Status PredictIntoFiles(const PredictOptions& options, const std::shared_ptr<const Model>& model,
                        Console& console) {
  KINGLET_RETURN_IF_ERROR(
      CheckOutputPath("predict", options.out, {&options.run.model, &options.ids}));
  SoftLabelOptions labels = {options.out,          options.run.backend, options.top.value_or(kTop),
                             options.shard_tokens, options.run.lanes,   options.run.threads};
  const uint64_t bytes =
      SoftLabelBytes(std::min(labels.top, model->vocabulary_size()), model->vocabulary_size());
  if (bytes * std::max<uint64_t>(labels.shard_tokens, labels.lanes) > kMostShardBytes) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "predict", "shard-tokens",
                           "files of up to " + BytesText(kMostShardBytes),
                           BytesText(bytes) + " a token");
  }
  KINGLET_ASSIGN_OR_RETURN(const std::vector<uint32_t> ids, ReadInput(options, *model));
  NoteInterrupts();
  Progress progress(console.errors_are_terminal ? ProgressForm::kLine : ProgressForm::kNone,
                    ids.size());
  KINGLET_ASSIGN_OR_RETURN(const SoftLabelTotals totals,
                           WriteSoftLabels(labels, model, ids, progress));
  const auto tokens = static_cast<double>(std::max<uint64_t>(totals.tokens, 1));
  const double per_token = static_cast<double>(totals.bytes) / tokens;
  const double per_second =
      totals.seconds > 0 ? static_cast<double>(totals.computed) / totals.seconds : 0;
  if (options.run.json) {
    JsonLine line;
    line.Key("tokens").Integer(totals.tokens).Key("computed").Integer(totals.computed);
    line.Key("shards").Integer(totals.shards).Key("bytes").Integer(totals.bytes);
    line.Key("bytes_per_token").Number(per_token).Key("tokens_per_s").Number(per_second);
    console.out.Write(line.Finish());
    return {};
  }
  console.out.Write(FactLine("tokens", Grouped(totals.tokens) + ", " + Grouped(totals.computed) +
                                           " of them now, " + ShortNumber(per_second) +
                                           " a second"));
  console.out.Write(FactLine("files", Grouped(totals.shards) + ", " + Grouped(totals.bytes) +
                                          " bytes, " + ShortNumber(per_token) + " a token"));
  return {};
}

Status Predict(const PredictOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  KINGLET_RETURN_IF_ERROR(RequireNoSource(*model, "predict"));
  KINGLET_RETURN_IF_ERROR(RequireForward(options.run.model, "predict", model->text()));
  if (!options.out.empty()) return PredictIntoFiles(options, model, console);
  PredictionOptions predictions;
  predictions.top = options.top.value_or(options.top_p ? UINT32_MAX : kTop);
  predictions.top_p = options.top_p;
  predictions.json = options.run.json;
  if (options.no_unk) {
    KINGLET_ASSIGN_OR_RETURN(predictions.excluded, UnknownTokenOf(*model, "--no-unk"));
  }
  if (options.prefix && model->text() != nullptr && SpansTokens(*model->text(), *options.prefix)) {
    if (!options.allowed.empty()) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "predict", "--allowed with --prefix",
                             "a prefix of single tokens, or no --allowed",
                             "words of several tokens");
    }
    KINGLET_ASSIGN_OR_RETURN(Spellings spellings, Spellings::Of(*model));
    predictions.spellings = std::make_shared<const Spellings>(std::move(spellings));
  } else {
    KINGLET_ASSIGN_OR_RETURN(
        predictions.words,
        ChooseWords({options.prefix, options.allowed, predictions.excluded}, *model));
  }
  predictions.prefix = options.prefix;
  predictions.next_characters = options.next;
  SessionOptions session_options;
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  NoteInterrupts();
  Predictor predictor(predictions, *model, *session, console);
  KINGLET_RETURN_IF_ERROR(predictor.Start());
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const TokenSequence sequence,
                             ReadIdSequence(options.ids, model->vocabulary_size()));
    KINGLET_RETURN_IF_ERROR(predictor.Feed(sequence));
  } else {
    if (console.input_is_terminal && console.errors_are_terminal) {
      PrintNote(
          "type a text; Enter ends a line, Ctrl-D asks after an unfinished one, Ctrl-D at the "
          "beginning of a line ends the input");
    }
    KINGLET_RETURN_IF_ERROR(PredictLines(predictor, *model, console));
  }
  // On a terminal it has been shown already.
  if (!console.input_is_terminal || !options.ids.empty()) {
    KINGLET_RETURN_IF_ERROR(predictor.ShowPending());
  }
  predictor.ShowSummary();
  return Status();
}

Status CheckPredict(const PredictOptions& options) {
  if (!options.top_p || (*options.top_p > 0 && *options.top_p <= 1)) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--top-p",
                         "a probability above 0, at most 1", NumberText(*options.top_p));
}

}  // namespace

Command AddPredict(Arguments& program) {
  const auto options = std::make_shared<PredictOptions>();
  Arguments predict = program.AddSubcommand(
      "predict", "Print the most probable next tokens after each token of a text");
  AddRunOptions(predict, options->run, "streams that --out divides the text among");
  predict
      .Add("--top", options->top,
           "number of next tokens to print, at most (default: 5; with --top-p all of them)")
      .Between(uint32_t{1}, UINT32_MAX)
      .Placeholder("K");
  Option top_p =
      predict.Add("--top-p", options->top_p,
                  "print the fewest words that together have this probability, above 0 to 1");
  top_p.Placeholder("P");
  Option prefix =
      predict.Add("--prefix", options->prefix,
                  "only words that begin with LETTERS, and with --json their probability");
  prefix.Placeholder("LETTERS").Excludes(top_p);
  predict
      .AddFlag("--next", options->next, "and, with --json, the probability of each next character")
      .Needs(prefix);
  Option allowed =
      predict.Add("--allowed", options->allowed, "only the words in this file, one a line");
  allowed.Placeholder("FILE").Excludes(top_p);
  predict.Add("--ids", options->ids, "token ids (default: text from standard input)")
      .Placeholder(kFileOrStandardInput);
  Option no_unk = predict.AddFlag("--no-unk", options->no_unk, "omit the unknown word");
  Option out = predict.Add("--out", options->out,
                           "write the predictions as numpy's arrays, for training; continues a "
                           "run that was stopped");
  out.Placeholder("SHARDS.npz").Excludes(top_p).Excludes(prefix).Excludes(allowed).Excludes(no_unk);
  predict.Add("--shard-tokens", options->shard_tokens, "most tokens of one file, at least a step's")
      .Between(uint64_t{1}, uint64_t{UINT32_MAX})
      .Placeholder("N")
      .Needs(out)
      .ShowDefault();
  predict.Footer(
      "Each line is answered when it arrives. The end of a line is a token; a last line without "
      "an\nend is not given that token.\n\n"
      "Example:\n  printf \"the president of the\" | kinglet predict model.kgl --top 3");
  return {predict, [options] { return CheckPredict(*options); },
          [options](Console& console) { return Predict(*options, console); }};
}

}  // namespace kinglet
