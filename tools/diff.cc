// kinglet diff: the parts that two model files have in common, the costs of each, and which is
// better on a text.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "format/message_text.h"
#include "runtime/accounting/meter.h"
#include "runtime/accounting/micronet.h"
#include "runtime/accounting/trace.h"
#include "runtime/special_tokens.h"
#include "tools/commands.h"
#include "tools/inspect_report.h"
#include "tools/json_lines.h"
#include "tools/loss_bins.h"
#include "tools/loss_totals.h"
#include "tools/model_facts.h"
#include "tools/paired_losses.h"
#include "tools/run_options.h"
#include "tools/score_protocol.h"
#include "tools/stream_losses.h"
#include "tools/tensor_differences.h"
#include "tools/text_bins.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct DiffOptions {
  RunOptions run;  // of the first model
  std::string second;
  TextFile input;  // both paths empty: the files alone
  BinOptions bins;

  const std::string& input_name() const { return input.path(); }
};

// A text as one of the models scores it.
struct ScoredText {
  uint64_t tokens = 0;
  LossTotals totals;
  BlockLosses blocks;
  std::vector<LossBin> bins;
  uint64_t ids_hash = 0;  // with bins: of the ids in their order
  std::string protocol;
};

struct Side {
  std::string path;
  std::shared_ptr<const Model> model;
  ModelFacts facts;
  std::optional<double> operations;  // per token; nullopt: depends on a text
  std::optional<ScoredText> text;
};

// FNV-1a of the ids so far and the next one (Fowler, Noll and Vo).
uint64_t AddToHash(uint64_t hash, uint32_t id) {
  constexpr uint64_t kPrime = 0x100000001B3;
  for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (id >> shift & 0xFFU)) * kPrime;
  return hash;
}

// Scores the text in one stream, and follows the work of the full distribution after each token.
Status ScoreText(const DiffOptions& options, const Console& console,
                 std::span<const uint64_t> nonzeros, Side& side) {
  const Model& model = *side.model;
  KINGLET_RETURN_IF_ERROR(RequireNoSource(model, "diff --text"));
  const std::optional<uint32_t> unknown = SpecialTokensOf(model).unknown;
  ScoredText scored;
  std::optional<TextBins> bins;
  if (!options.bins.by.empty()) {
    KINGLET_ASSIGN_OR_RETURN(bins, TextBins::Create(options.bins, model));
  }
  FullTracer tracer(model.plan());
  const auto add = [&](uint32_t id, std::optional<double> log_probability) {
    tracer.Step(id);
    if (bins) scored.ids_hash = AddToHash(scored.ids_hash, id);
    if (!log_probability) {
      if (bins) bins->Skip(id);
      return;
    }
    scored.totals.Add(*log_probability, id == unknown);
    scored.blocks.Add(0.0 - *log_probability);
    if (bins) bins->Add(id, *log_probability);
  };
  Progress progress(ProgressFormOf("", console));
  KINGLET_ASSIGN_OR_RETURN(
      const StreamLosses losses,
      StreamLosses::Read(
          side.model, static_cast<uint32_t>(options.run.threads), options.input, add,
          [&](uint64_t tokens) { progress.Say(side.path + ": " + Grouped(tokens) + " tokens"); }));
  scored.tokens = losses.tokens();
  KINGLET_RETURN_IF_ERROR(RequireScored(scored.totals, options.input_name()));
  side.operations = CountExecuted(model.plan(), nonzeros, TraitsOf(model.backend()), tracer.trace())
                        .operations.Total();
  if (bins) scored.bins = bins->Bins();
  scored.protocol = StreamProtocol(model, std::nullopt, 0, "reference");
  side.text = std::move(scored);
  return Status();
}

// Without a text: a token's operations with window and cache full, for words as frequent as the
// file records (where frequency matters).
std::optional<double> SteadyOperations(const Model& model, std::span<const uint64_t> nonzeros) {
  const Plan& plan = model.plan();
  if (plan.encoder) return std::nullopt;
  std::vector<uint64_t> bins;
  for (const EmbeddingBin& bin : EmbeddingOf(plan).bins) bins.push_back(bin.tokens);
  if (!NeedsBinCounts(plan)) bins.front() = 1;
  if (std::all_of(bins.begin(), bins.end(), [](uint64_t tokens) { return tokens == 0; })) {
    return std::nullopt;
  }
  return CountExecuted(plan, nonzeros, TraitsOf(model.backend()), SteadyFullTrace(plan, bins))
      .operations.Total();
}

Result<Side> Measure(const DiffOptions& options, const std::string& path, const Console& console) {
  Side side;
  side.path = path;
  RunOptions run = options.run;
  run.model = path;
  KINGLET_ASSIGN_OR_RETURN(side.model, OpenWholeModel(run));
  side.facts = DescribeModel(side.model->file());
  const std::vector<uint64_t> nonzeros = CountNonzeros(side.model->plan().weights);
  side.operations = SteadyOperations(*side.model, nonzeros);
  if (options.input_name().empty()) return side;
  KINGLET_RETURN_IF_ERROR(ScoreText(options, console, nonzeros, side));
  return side;
}

using Sides = std::array<Side, 2>;

// Losses are compared token by token, so both models must split the text into the same number of
// tokens.
Status CheckSameTokens(const DiffOptions& options, const Sides& sides) {
  const auto& [first, second] = sides;
  if (!first.text) return Status();
  if (first.text->totals.scored() == second.text->totals.scored()) {
    const auto same = [](const LossBin& a, const LossBin& b) {
      return a.kind == b.kind && a.from == b.from && a.tokens == b.tokens;
    };
    const auto &bins = first.text->bins, &others = second.text->bins;
    if (first.text->ids_hash == second.text->ids_hash &&
        std::equal(bins.begin(), bins.end(), others.begin(), others.end(), same)) {
      return Status();
    }
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "diff", options.input_name(),
                           "models that give the text the same ids, so that --by has the same bins",
                           "different ids (compare them without --by)");
  }
  const auto tokens = [](const Side& side) {
    return Grouped(side.text->totals.scored()) + " by " + side.path;
  };
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "diff", options.input_name(),
                         "models that split the text into the same number of tokens",
                         tokens(first) + ", " + tokens(second) +
                             "; compare perplexities per word of score --lines instead");
}

void AppendTensor(const char* key, const std::optional<size_t>& index, const Side& side,
                  JsonLine& line) {
  line.Key(key);
  if (!index) {
    line.Null();
    return;
  }
  const TensorFacts& tensor = side.facts.tensors[*index];
  line.BeginObject().Key("shape").BeginArray();
  for (const uint64_t size : tensor.shape) line.Integer(size);
  line.EndArray().Key("encoding").Text(tensor.encoding);
  line.Key("bytes").Integer(tensor.Bytes()).EndObject();
}

void AppendSide(const char* key, const Side& side, JsonLine& line) {
  const ModelFile& file = side.model->file();
  line.Key(key).BeginObject().Key("model").Text(side.path).Key("digest").Text(file.digest());
  line.Key("file_size").Integer(file.file_size());
  line.Key("parameters").Integer(side.facts.parameters).Key("stored").Integer(side.facts.stored);
  line.Key("operations");
  side.operations ? line.Number(*side.operations) : line.Null();
  if (side.text) {
    line.Loss(side.text->totals.nll()).Key("oov").Integer(side.text->totals.unknown());
    line.Key("protocol").Text(side.text->protocol);
  }
  line.EndObject();
}

// A bin of both models' losses.
struct BinDifference {
  const LossBin& first;
  const LossBin& second;
  double difference = 0;  // of the mean losses
  // The differences of the tokens in this bin and the ones before it, over all scored tokens; so
  // the last bin's is the mean difference (figure 3 of Yan et al. 2020).
  double cumulative = 0;
};

std::vector<BinDifference> BinDifferences(const Sides& sides) {
  const auto& [first, second] = std::pair(&*sides[0].text, &*sides[1].text);
  std::vector<BinDifference> differences;
  double sum = 0;
  for (size_t i = 0; i < first->bins.size(); ++i) {
    const LossBin &a = first->bins[i], &b = second->bins[i];
    sum += a.logprob.Value() - b.logprob.Value();
    differences.push_back(
        {a, b, b.nll() - a.nll(), sum / static_cast<double>(first->totals.scored())});
  }
  return differences;
}

std::string BinsJson(const DiffOptions& options, const Sides& sides) {
  std::string text;
  for (const BinDifference& bin : BinDifferences(sides)) {
    JsonLine line;
    BeginBinLine(options.bins.by, bin.first, line);
    line.Key("first").BeginObject().Loss(bin.first.nll()).EndObject();
    line.Key("second").BeginObject().Loss(bin.second.nll()).EndObject();
    line.Key("difference").BeginObject().Key("nll").Number(bin.difference);
    line.Key("cumulative").Number(bin.cumulative).EndObject();
    text += line.Finish();
  }
  return text;
}

std::string DiffJson(const Sides& sides, const std::vector<TensorDifference>& changes) {
  JsonLine line;
  AppendSide("first", sides[0], line);
  AppendSide("second", sides[1], line);
  line.Key("tensors").BeginArray();
  for (const TensorDifference& change : changes) {
    line.BeginObject().Key("name").Text(change.name).Key("same").Boolean(change.same);
    AppendTensor("first", change.first, sides[0], line);
    AppendTensor("second", change.second, sides[1], line);
    line.Key("relative_error");
    change.relative_error ? line.Number(*change.relative_error) : line.Null();
    line.EndObject();
  }
  line.EndArray();
  if (sides[0].text) {
    line.Key("tokens").Integer(sides[0].text->tokens);
    line.Key("scored").Integer(sides[0].text->totals.scored());
    AppendDifference(Compare(sides[0].text->blocks, sides[1].text->blocks), line);
  }
  return line.Finish();
}

std::string Formatted(const char* format, double number) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, number);
  return text.data();
}

std::string Right(const std::string& text, size_t columns) {
  return std::string(columns - std::min(columns, text.size()), ' ') + text;
}

// A row of the table of both files.
std::string Row(const std::string& name, const std::string& first, const std::string& second,
                const std::string& change = "") {
  return "  " + FittedText(name, 24) + Right(first, 18) + Right(second, 18) + Right(change, 12) +
         "\n";
}

// A row of the table of bins.
std::string BinRow(const std::string& name, const std::string& tokens, const std::string& first,
                   const std::string& second, const std::string& difference,
                   const std::string& cumulative) {
  return "  " + FittedText(name, 20) + Right(tokens, 12) + Right(first, 10) + Right(second, 10) +
         Right(difference, 12) + Right(cumulative, 12) + "\n";
}

std::string ChangeText(double first, double second) {
  if (first == second) return "same";
  return first == 0 ? "" : Formatted("%+.1f %%", 100 * (second - first) / first);
}

std::string CountRow(const std::string& name, uint64_t first, uint64_t second) {
  return Row(name, Grouped(first), Grouped(second),
             ChangeText(static_cast<double>(first), static_cast<double>(second)));
}

// "9-bit, a scale per row, 12,345 bytes".
std::string TensorText(const std::optional<size_t>& index, const Side& side) {
  if (!index) return "none";
  const TensorFacts& tensor = side.facts.tensors[*index];
  return ShapeText(tensor.shape) + " " + EncodingText(side.model->file().tensors()[*index]) + ", " +
         Grouped(tensor.Bytes()) + " bytes";
}

std::string TensorsText(const Sides& sides, const std::vector<TensorDifference>& changes) {
  std::string text;
  size_t same = 0;
  for (const TensorDifference& change : changes) {
    if (change.same) {
      ++same;
      continue;
    }
    text += "  " + DisplayText(change.name);
    if (change.relative_error) {
      text += ", relative error " + Formatted("%.4g", *change.relative_error);
    }
    text += "\n    < " + TensorText(change.first, sides[0]) + "\n    > " +
            TensorText(change.second, sides[1]) + "\n";
  }
  return "\ntensors\n" + text + "  " + Grouped(same) + " of " + Grouped(changes.size()) +
         " are the same\n";
}

std::string BlocksText(const Sides& sides) {
  std::string lines[2];
  for (size_t side = 0; side < 2; ++side) {
    for (const Block& block : sides[side].model->file().description().blocks) {
      lines[side] += (side == 0 ? "    < " : "    > ") + BlockLine(block) + "\n";
    }
  }
  if (lines[0].size() == lines[1].size()) {
    std::string other = lines[1];
    for (size_t at = 0; (at = other.find("    > ", at)) != std::string::npos;) other[at + 4] = '<';
    if (other == lines[0]) return "";
  }
  return "\nblocks\n" + lines[0] + lines[1];
}

// The better one of the two, as far as the text can tell.
std::string Verdict(const PairedDifference& found) {
  const std::string mean =
      Formatted("%+.5f", found.mean) + " nats a token from the first to the second";
  if (!found.interval) {
    return mean + ";\n" +
           (std::isfinite(found.mean) ? "the text is too short for an interval (500 tokens)"
                                      : "a token is impossible");
  }
  const std::string text = mean + ",\n95 % interval " + Formatted("%+.5f", found.interval->low) +
                           " to " + Formatted("%+.5f", found.interval->high) + " (" +
                           Grouped(found.blocks) + " blocks of " + Grouped(found.block_tokens) +
                           " tokens): ";
  if (found.interval->low > 0) return text + "the first is better";
  if (found.interval->high < 0) return text + "the second is better";
  return text + "this text does not tell them apart";
}

std::string BinsText(const DiffOptions& options, const Sides& sides) {
  std::string text = "\nnats a token by " + options.bins.by + "\n" +
                     BinRow("", "tokens", "first", "second", "difference", "cumulative");
  for (const BinDifference& bin : BinDifferences(sides)) {
    text += BinRow(bin.first.Range(), Grouped(bin.first.tokens), Formatted("%.4f", bin.first.nll()),
                   Formatted("%.4f", bin.second.nll()), Formatted("%+.4f", bin.difference),
                   Formatted("%+.4f", bin.cumulative));
  }
  return text;
}

std::string DiffText(const DiffOptions& options, const Sides& sides,
                     const std::vector<TensorDifference>& changes) {
  const auto& [first, second] = sides;
  const auto& [a, b] = std::pair(&first.model->file(), &second.model->file());
  std::string text = FactLine("first", first.path) + FactLine("second", second.path);
  if (a->digest() == b->digest()) text += "the files are the same\n";
  text += "\n" + Row("", "first", "second", "change");
  text += CountRow("file", a->file_size(), b->file_size());
  text += CountRow("parameters", first.facts.parameters, second.facts.parameters);
  text += CountRow("stored parameters", first.facts.stored, second.facts.stored);
  if (first.operations && second.operations) {
    text += Row("operations a token", Grouped(std::llround(*first.operations)),
                Grouped(std::llround(*second.operations)),
                ChangeText(*first.operations, *second.operations));
  } else {
    text += "  operations depend on the words: give a text\n";
  }
  if (first.text) {
    const double first_perplexity = std::exp(first.text->totals.nll());
    const double second_perplexity = std::exp(second.text->totals.nll());
    text +=
        Row("perplexity", Formatted("%.4f", first_perplexity), Formatted("%.4f", second_perplexity),
            ChangeText(first_perplexity, second_perplexity));
    text += "\n" + Grouped(first.text->totals.scored()) + " scored tokens of " +
            options.input_name() + ":\n" +
            Verdict(Compare(first.text->blocks, second.text->blocks)) + "\n";
    if (!options.bins.by.empty()) text += BinsText(options, sides);
  }
  return text + BlocksText(sides) + TensorsText(sides, changes);
}

Status Diff(const DiffOptions& options, Console& console) {
  KINGLET_RETURN_IF_ERROR(RefusePipe("diff", options.input_name()));
  Sides sides;
  KINGLET_ASSIGN_OR_RETURN(sides[0], Measure(options, options.run.model, console));
  KINGLET_ASSIGN_OR_RETURN(sides[1], Measure(options, options.second, console));
  KINGLET_RETURN_IF_ERROR(CheckSameTokens(options, sides));
  const std::vector<TensorDifference> changes =
      CompareTensors(sides[0].model->file(), sides[1].model->file());
  if (!options.run.json) {
    console.out.Write(DiffText(options, sides, changes));
    return Status();
  }
  if (!options.bins.by.empty()) console.out.Write(BinsJson(options, sides));
  console.out.Write(DiffJson(sides, changes));
  return Status();
}

Status CheckDiff(const DiffOptions& options) {
  if (!options.input.text.empty() && !options.input.ids.empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "diff", "--text FILE or --ids FILE",
                           "both");
  }
  if (!options.bins.by.empty() && options.input_name().empty()) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--by",
                           "--text FILE or --ids FILE with it", "neither");
  }
  return CheckBinOptions(options.bins);
}

}  // namespace

Command AddDiff(Arguments& program) {
  const auto options = std::make_shared<DiffOptions>();
  Arguments diff = program.AddSubcommand(
      "diff", "Compare two model files: tensors, bytes, operations, loss on a text");
  AddModelOptions(diff, options->run);
  diff.Add("SECOND.kgl", options->second, "the other model").Required().Placeholder("");
  AddThreads(diff, options->run.threads);
  diff.Add("--text", options->input.text,
           "compare the losses on this text; each line end becomes <eos>")
      .Placeholder("FILE");
  diff.Add("--ids", options->input.ids,
           "compare the losses on token ids: text, separated by white space, or .npy")
      .Placeholder("FILE");
  AddBinOptions(diff, options->bins);
  diff.Footer("Example:\n  kinglet diff 9bit.kgl 4bit.kgl --text test.txt");
  return {diff, [options] { return CheckDiff(*options); },
          [options](Console& console) { return Diff(*options, console); }};
}

}  // namespace kinglet
