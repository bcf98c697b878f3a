// kinglet ngram: an ARPA file as an n-gram file, what such a file contains, and scores of lines.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/ngrams/arpa.h"
#include "converters/output_path.h"
#include "format/write_file.h"
#include "runtime/accounting/exact_sum.h"
#include "tools/commands.h"
#include "tools/document_reader.h"
#include "tools/interrupt.h"
#include "tools/json_lines.h"
#include "tools/token_text.h"

namespace kinglet {
namespace {

struct NgramOptions {
  std::string model, output, text;
  std::optional<uint32_t> bits;
  bool json = false, log10 = false;
};

constexpr uint64_t kFloatValueBits = 32;

void PrintNgramFacts(const std::string& name, const NgramModel& model, bool json,
                     Console& console) {
  const NgramHeader& header = model.header();
  const uint64_t bits = header.bits == 0 ? kFloatValueBits : header.bits;
  if (json) {
    JsonLine line;
    line.Key("file").Text(name).Key("order").Integer(header.order).Key("counts").BeginArray();
    for (size_t i = 0; i < header.order; ++i) line.Integer(header.counts[i]);
    line.EndArray().Key("unk").Boolean(!header.adds_unknown).Key("bits").Integer(bits);
    line.Key("file_size").Integer(model.file_size()).Key("digest").Text(model.digest());
    console.out.Write(line.Finish());
    return;
  }
  std::string text = DisplayText(name) + ": " + Grouped(header.counts[0]) + " words";
  for (size_t i = 1; i < header.order; ++i) {
    text += ", " + Grouped(header.counts[i]) + " " + std::to_string(i + 1) + "-grams";
  }
  text += "; " + Grouped(model.file_size()) + " bytes, values of " + std::to_string(bits) + " bits";
  if (header.adds_unknown) text += "; no <unk>: an unknown word has 10^-100";
  console.out.Write(text + "\n");
}

Status MakeNgramFile(const NgramOptions& options, Console& console) {
  KINGLET_RETURN_IF_ERROR(CheckOutputPath("ngram", options.output, {&options.model}));
  KINGLET_ASSIGN_OR_RETURN(const NgramTable table, ReadArpa(options.model));
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                           EncodeNgrams(table, options.bits.value_or(0)));
  KINGLET_ASSIGN_OR_RETURN(const auto model, NgramModel::FromBytes(bytes));
  KINGLET_RETURN_IF_ERROR(WriteFileAtomically(bytes, options.output));
  PrintNgramFacts(options.output, *model, options.json, console);
  return console.out.status();
}

// Prints scores of lines, each a sentence of its own, and their sum.
class NgramLines {
 public:
  NgramLines(const NgramModel& model, const NgramOptions& options, Console& console)
      : model_(model),
        options_(options),
        console_(console),
        unit_(options.log10 ? 1 : std::numbers::ln10) {}

  void Add(std::string_view text) {
    const NgramSentenceScore score = model_.ScoreSentence(text);
    lines_ += 1;
    scored_ += score.words;
    unknown_ += score.unknown;
    sum_.Add(score.log10 * std::numbers::ln10);
    known_sum_.Add((score.log10 - score.unknown_log10) * std::numbers::ln10);
    const double known = (score.log10 - score.unknown_log10) * unit_;
    if (options_.json) {
      JsonLine line;
      line.Key("line").Integer(lines_).LogProbability(score.log10 * unit_);
      line.Key("tokens").Integer(score.words).Key("oov").Integer(score.unknown);
      line.Key("logprob_without_oov").Number(known);
      console_.out.Write(line.Finish());
      return;
    }
    char line[96];
    std::snprintf(line, sizeof(line), "%8llu %12s %8llu %8llu\n",
                  static_cast<unsigned long long>(lines_), ShortNumber(score.log10 * unit_).c_str(),
                  static_cast<unsigned long long>(score.words),
                  static_cast<unsigned long long>(score.unknown));
    console_.out.Write(line);
  }

  void PrintHeading() {
    if (!options_.json) console_.out.Write("    line      logprob   tokens      oov\n");
  }
  Status PrintSummary() {
    if (lines_ == 0) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "ngram", InputName(options_.text),
                             "at least one line", "none");
    }
    const double nll = -sum_.Value() / static_cast<double>(scored_);
    const double known_nll = -known_sum_.Value() / static_cast<double>(scored_ - unknown_);
    JsonLine line;
    line.Key("lines").Integer(lines_).Key("scored").Integer(scored_);
    line.Key("oov").Integer(unknown_).Loss(nll);
    line.Key("ppl_without_oov").Number(std::exp(known_nll)).Key("protocol");
    line.Text("lines; <s> first, unscored; </s> last; n-grams " + model_.digest() +
              (options_.log10 ? "; logprob in base 10" : ""));
    if (options_.json) {
      console_.out.Write(line.Finish());
    } else {
      console_.out.Write(Grouped(lines_) + " lines, " + Grouped(scored_) + " tokens with ends, " +
                         Grouped(unknown_) + " unknown; perplexity " + ShortNumber(std::exp(nll)) +
                         ", of known words " + ShortNumber(std::exp(known_nll)) + "\n");
    }
    return console_.out.status();
  }

 private:
  const NgramModel& model_;
  const NgramOptions& options_;
  Console& console_;
  const double unit_;
  ExactSum sum_, known_sum_;
  uint64_t lines_ = 0, scored_ = 0, unknown_ = 0;
};

Status RunNgram(const NgramOptions& options, Console& console) {
  NoteInterrupts();
  if (!options.output.empty()) return MakeNgramFile(options, console);
  KINGLET_ASSIGN_OR_RETURN(const auto model, OpenNgrams(options.model));
  if (options.text.empty()) {
    PrintNgramFacts(InputName(options.model), *model, options.json, console);
    return console.out.status();
  }
  KINGLET_ASSIGN_OR_RETURN(DocumentReader lines, DocumentReader::Open(options.text, {}));
  NgramLines printer(*model, options, console);
  printer.PrintHeading();
  while (true) {
    KINGLET_ASSIGN_OR_RETURN(const std::optional<Document> line, lines.Next());
    if (!line) return printer.PrintSummary();
    printer.Add(line->text);
    if (options.text == "-") KINGLET_RETURN_IF_ERROR(console.out.Flush());
  }
}

Status CheckNgramOptions(const NgramOptions& options) {
  if (options.model != "-" || options.text != "-") return {};
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--text", "standard input once",
                         "- together with a MODEL that is read from it");
}

}  // namespace

Command AddNgram(Arguments& program) {
  const auto options = std::make_shared<NgramOptions>();
  Arguments ngram = program.AddSubcommand(
      "ngram", "Make a compact file of an n-gram model, show it, or score lines with it");
  ngram
      .Add("MODEL", options->model,
           "an ARPA file (plain, or packed by gzip or zstd), or without -o an n-gram file")
      .Placeholder(kFileOrStandardInput)
      .Required();
  Option output = ngram.Add("-o,--output", options->output, "n-gram file to write");
  output.Placeholder("M.kng");
  ngram
      .Add("--bits", options->bits,
           "bits of a probability and of a back-off weight (default: floats, KenLM's scores)")
      .Between(kLeastNgramBits, kMostNgramBits)
      .Placeholder("N")
      .Needs(output);
  Option text = ngram.Add("--text", options->text, "score each line as a sentence");
  text.Placeholder(kFileOrStandardInput).Excludes(output);
  ngram.AddFlag("--log10", options->log10, "log-probabilities of lines in base 10").Needs(text);
  ngram.AddFlag("--json", options->json, "print JSON Lines");
  ngram.Footer(
      "`kinglet rescore` mixes n-gram files with a network.\n\n"
      "Example:\n  kinglet ngram model.arpa.gz -o model.kng --bits 8");
  return {ngram, [options] { return CheckNgramOptions(*options); },
          [options](Console& console) { return RunNgram(*options, console); }};
}

}  // namespace kinglet
