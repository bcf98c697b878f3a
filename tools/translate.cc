// kinglet translate: translates each line of a text by greedy or beam search.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "converters/texts/word_splitter.h"
#include "format/input_file.h"
#include "runtime/translation.h"
#include "tools/bleu.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/run_options.h"
#include "tools/text_lines.h"
#include "tools/token_text.h"
#include "tools/words.h"

namespace kinglet {
namespace {

constexpr uint32_t kWidestBeam = 1024;

struct TranslateOptions {
  RunOptions run;
  std::string ids, text, references;
  uint32_t beam = 1;
  uint32_t max_length = 100;
  double length_penalty = 0;
  std::string penalty_form = "power";
  uint32_t n_best = 0;  // 0 prints the best one alone, without its rank
};

class Translator {
 public:
  // `encoder` reads the sources of lanes that translate together; null if options.run.lanes is 1.
  Translator(const TranslateOptions& options, const TranslationOptions& search, Session& session,
             Session* encoder, Console& console)
      : options_(options),
        search_(search),
        session_(session),
        encoder_(encoder),
        console_(console),
        words_(options.ids.empty() ? session.model().vocabulary() : nullptr) {}

  Status ReadReferences() {
    if (options_.references.empty()) return Status();
    KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(options_.references));
    for (const std::string_view line : LinesOf(text)) references_.emplace_back(line);
    return Status();
  }

  // Translates the source, or keeps it until enough lines are there to translate together.
  Status Add(std::vector<uint32_t> source) {
    sources_.push_back(std::move(source));
    constexpr size_t kLinesPerLane = 4;
    const size_t lines = encoder_ == nullptr ? 1 : kLinesPerLane * options_.run.lanes;
    return sources_.size() < lines ? Status() : TranslateKept();
  }

  // Prints BLEU, if there are references, after the last translation.
  Status Finish() {
    KINGLET_RETURN_IF_ERROR(TranslateKept());
    if (options_.references.empty()) return Status();
    if (sentence_ < references_.size()) return WrongReferences(std::to_string(sentence_));
    if (sentence_ == 0) {
      return Status::Refusal(KINGLET_INVALID_ARGUMENT, "translate", options_.references,
                             "at least one line", "none");
    }
    const BleuFigures found = bleu_.Figures();
    if (!options_.run.json) {
      char text[256];
      std::snprintf(text, sizeof(text),
                    "BLEU %.2f, precisions %.1f/%.1f/%.1f/%.1f, brevity penalty %.3f, %llu tokens, "
                    "references %llu, %s",
                    found.bleu, found.precisions[0], found.precisions[1], found.precisions[2],
                    found.precisions[3], found.brevity_penalty,
                    static_cast<unsigned long long>(found.tokens),
                    static_cast<unsigned long long>(found.reference_tokens), Bleu::kSignature);
      PrintNote(text);
      return Status();
    }
    JsonLine line(NumberDigits(session_.model()));
    line.Key("sentences").Integer(sentence_).Key("bleu").Number(found.bleu);
    line.Key("precisions").BeginArray();
    for (const double precision : found.precisions) line.Number(precision);
    line.EndArray().Key("brevity_penalty").Number(found.brevity_penalty);
    line.Key("tokens").Integer(found.tokens);
    line.Key("reference_tokens").Integer(found.reference_tokens);
    line.Key("signature").Text(Bleu::kSignature);
    console_.out.Write(line.Finish());
    return Status();
  }

 private:
  Status WrongReferences(const std::string& sources) const {
    return Status::Refusal(
        KINGLET_INVALID_ARGUMENT, "translate", options_.references,
        "a line for each line of the source",
        std::to_string(references_.size()) + " lines, and " + sources + " of the source");
  }

  Status TranslateKept() {
    if (sources_.empty()) return Status();
    std::vector<Result<std::vector<Translation>>> answers;
    if (encoder_ != nullptr) {
      KINGLET_ASSIGN_OR_RETURN(
          answers, TranslateTogether(sources_, options_.beam, search_, session_, *encoder_));
    } else {
      answers.push_back(sources_[0].empty() ? NoTranslation()
                                            : Translate(sources_[0], search_, session_));
    }
    for (size_t i = 0; i < answers.size(); ++i) {
      if (sources_[i].empty()) answers[i] = NoTranslation();
      if (answers[i].ok()) {
        KINGLET_RETURN_IF_ERROR(Print(*answers[i]));
        continue;
      }
      const Status& status = answers[i].status();
      return Status(status.code(),
                    "sentence " + std::to_string(sentence_) + ": " + status.message());
    }
    sources_.clear();
    return Status();
  }

  // The translation of an empty source.
  static std::vector<Translation> NoTranslation() {
    std::vector<Translation> empty(1);
    empty.front().finished = true;
    return empty;
  }

  // Prints the translations of the next source.
  Status Print(const std::vector<Translation>& best) {
    for (size_t i = 0; i < best.size(); ++i) {
      if (!options_.run.json) {
        console_.out.Write(Shown(TextOf(best[i])) + "\n");
      } else if (options_.n_best > 0) {
        WriteRanked(best[i], i + 1);
      } else {
        WriteJson(best[i]);
      }
    }
    if (!options_.references.empty()) {
      if (sentence_ == references_.size()) return WrongReferences("more");
      bleu_.Add(TextOf(best.front()), references_[sentence_]);
    }
    ++sentence_;
    return console_.out_is_terminal || console_.input_is_terminal ? console_.out.Flush()
                                                                  : console_.out.status();
  }

  // The text of a translation; ids where the source was given as ids.
  std::string TextOf(const Translation& translation) const {
    const ModelText* const text = session_.model().text();
    std::string line;
    if (words_ != nullptr && text != nullptr) {
      TextDecoder decoder(text->tokenizer());
      for (const uint32_t id : translation.ids) line += text->Decode(id, decoder);
      return line + decoder.Finish();
    }
    for (const uint32_t id : translation.ids) {
      if (!line.empty()) line += ' ';
      line += words_ != nullptr ? std::string(words_->Word(id)) : std::to_string(id);
    }
    return line;
  }

  // One line: DisplayText on a terminal, elsewhere the text's own bytes.
  std::string Shown(const std::string& text) const {
    if (console_.out_is_terminal || text.find('\n') != text.npos) return DisplayText(text);
    return text;
  }

  // One of several translations of a line. `rank` is from 1.
  void WriteRanked(const Translation& translation, uint64_t rank) {
    JsonLine line(NumberDigits(session_.model()));
    line.Key("line").Integer(sentence_ + 1).Key("rank").Integer(rank).Key("ids").BeginArray();
    for (const uint32_t id : translation.ids) line.Integer(id);
    line.EndArray();
    if (words_ != nullptr) line.Key("text").Text(Shown(TextOf(translation)));
    line.LogProbability(translation.log_probability);
    console_.out.Write(line.Finish());
  }

  void WriteJson(const Translation& translation) {
    const Vocabulary* words = session_.model().vocabulary();
    JsonLine line(NumberDigits(session_.model()));
    line.Key("sentence").Integer(sentence_).Key("target").BeginArray();
    for (const uint32_t id : translation.ids) {
      line.BeginObject().Key("id").Integer(id);
      if (words != nullptr) line.Token(words->Word(id));
      line.EndObject();
    }
    line.EndArray();
    if (words_ != nullptr && session_.model().text()->is_stated()) {
      line.Key("text").Text(Shown(TextOf(translation)));
    }
    line.LogProbability(translation.log_probability);
    line.Key("score").Number(translation.score);
    line.Key("finished").Boolean(translation.finished);
    console_.out.Write(line.Finish());
  }

  const TranslateOptions& options_;
  const TranslationOptions& search_;
  Session& session_;
  Session* const encoder_;
  Console& console_;
  const Vocabulary* const words_;               // null prints ids
  std::vector<std::vector<uint32_t>> sources_;  // not translated yet
  uint64_t sentence_ = 0;                       // printed
  std::vector<std::string> references_;
  Bleu bleu_;
};

// Translates each line as soon as it is read, or as soon as there are enough for the lanes. Source
// and target have the same tokenizer and a vocabulary each.
Status TranslateText(const std::string& path, const ModelFile& file, Translator& translator) {
  KINGLET_ASSIGN_OR_RETURN(const auto splitter,
                           ModelText::Of(file.text_tables(), *file.source_vocabulary()));
  TextReader reader(*splitter, InputName(path));
  const auto translate = [&](std::string_view line, bool /*ended*/ = true) -> Status {
    TokenSequence sequence;
    KINGLET_RETURN_IF_ERROR(reader.AddLine(line, sequence));
    reader.NextLine();
    return translator.Add(std::move(sequence.ids));
  };
  if (path == "-") {
    return ForEachInputLine([&](std::string_view line, bool) { return translate(line); });
  }
  KINGLET_ASSIGN_OR_RETURN(const std::string text, ReadWholeText(path));
  for (const std::string_view line : LinesOf(text)) KINGLET_RETURN_IF_ERROR(translate(line));
  return Status();
}

Result<uint32_t> EndToken(const Model& model) {
  const Vocabulary* words = model.vocabulary();
  const auto end = words == nullptr ? std::nullopt : words->Find(kSentenceEnd);
  if (end) return *end;
  return Status::Refusal(KINGLET_UNSUPPORTED, "translate", "model",
                         "a word </s>, which ends a translation",
                         words == nullptr ? "ids only" : "none");
}

Status Translate(const TranslateOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model, OpenModel(options.run));
  if (!HasEncoder(model->file().description())) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "translate", options.run.model,
                           "a model with an encoder and a decoder",
                           IsMaskedModel(model->file().description())
                               ? "a masked model, for `fill` and `embed`"
                               : "a language model");
  }
  TranslationOptions search{
      0, options.max_length, options.length_penalty, std::max(options.n_best, 1U),
      options.penalty_form == "gnmt" ? LengthPenalty::kGnmt : LengthPenalty::kPower};
  KINGLET_ASSIGN_OR_RETURN(search.end_token, EndToken(*model));
  SessionOptions session_options;
  session_options.threads = static_cast<uint32_t>(options.run.threads);
  std::unique_ptr<Session> encoder;
  if (options.run.lanes > 1) {
    KINGLET_ASSIGN_OR_RETURN(encoder, Session::Create(model, session_options));
  }
  session_options.lanes = static_cast<uint32_t>(options.beam * options.run.lanes);
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, session_options));
  Translator translator(options, search, *session, encoder.get(), console);
  KINGLET_RETURN_IF_ERROR(translator.ReadReferences());
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const auto lines, ReadIdLines(options.ids));
    for (const std::vector<uint32_t>& ids : lines) {
      KINGLET_RETURN_IF_ERROR(translator.Add(ids));
    }
    return translator.Finish();
  }
  if (model->file().source_vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "translate", options.run.model,
                           "a model with a source vocabulary, or --ids FILE", "ids only");
  }
  KINGLET_RETURN_IF_ERROR(
      TranslateText(options.text.empty() ? "-" : options.text, model->file(), translator));
  return translator.Finish();
}

Status CheckTranslateInput(const TranslateOptions& options) {
  if (options.n_best > options.beam) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "--n-best",
                           "at most --beam, " + std::to_string(options.beam),
                           std::to_string(options.n_best));
  }
  if (options.ids.empty() || options.text.empty()) return Status();
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "usage", "translate",
                         "--ids FILE, --text FILE or standard input", "both files");
}

}  // namespace

Command AddTranslate(Arguments& program) {
  const auto options = std::make_shared<TranslateOptions>();
  Arguments translate = program.AddSubcommand("translate", "Translate each line of a text");
  AddRunOptions(translate, options->run, "translate N lines at once");
  translate.Add("--ids", options->ids, "source ids, one sentence per line; prints target ids")
      .Placeholder(kFileOrStandardInput);
  translate.Add("--text", options->text, "text, one sentence per line (default: standard input)")
      .Placeholder(kFileOrStandardInput);
  translate.Add("--beam", options->beam, "width of the beam search; 1 means greedy search")
      .Between(uint32_t{1}, kWidestBeam)
      .Placeholder("N")
      .ShowDefault();
  translate.Add("--n-best", options->n_best, "print the best N translations of each line")
      .Between(uint32_t{1}, kWidestBeam)
      .Placeholder("N");
  translate
      .Add("--max-length", options->max_length, "longest translation in words, including its end")
      .Between(uint32_t{1}, std::numeric_limits<uint32_t>::max())
      .Placeholder("N")
      .ShowDefault();
  translate
      .Add("--length-penalty", options->length_penalty,
           "rank translations of n words by log-probability / n^A")
      .Placeholder("A")
      .ShowDefault();
  translate
      .Add("--length-penalty-form", options->penalty_form, "n^A, or ((5 + n) / 6)^A as GNMT has it")
      .OneOf({"power", "gnmt"})
      .ShowDefault();
  translate
      .Add("--references", options->references,
           "a translation a line, to compare with: print BLEU, as sacrebleu computes it")
      .Placeholder("FILE");
  translate.Footer("Example:\n  kinglet translate model.kgl --beam 5 < source.txt");
  return {translate, [options] { return CheckTranslateInput(*options); },
          [options](Console& console) { return Translate(*options, console); }};
}

}  // namespace kinglet
