// kinglet translate: translates each line of a text by greedy or beam search.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "converters/checkpoints/input_file.h"
#include "converters/checkpoints/text_input.h"
#include "converters/texts/token_file.h"
#include "converters/texts/word_splitter.h"
#include "runtime/translation.h"
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
  std::string ids, text;
  uint32_t beam = 1;
  uint32_t max_length = 100;
  double length_penalty = 0;
  uint32_t n_best = 0;  // 0 prints the best one alone, without its rank
};

class Translator {
 public:
  Translator(const TranslateOptions& options, const TranslationOptions& search, Session& session,
             Console& console)
      : options_(options),
        search_(search),
        session_(session),
        console_(console),
        words_(options.ids.empty() ? session.model().vocabulary() : nullptr) {}

  // An empty source has an empty translation.
  Status Translate(const std::vector<uint32_t>& source) {
    std::vector<Translation> best(1);
    best.front().finished = true;
    if (!source.empty()) {
      Result<std::vector<Translation>> found = kinglet::Translate(source, search_, session_);
      if (!found.ok()) {
        const Status status = found.status();
        return Status(status.code(),
                      "sentence " + std::to_string(sentence_) + ": " + status.message());
      }
      best = std::move(found).value();
    }
    for (size_t i = 0; i < best.size(); ++i) {
      if (!options_.run.json) {
        console_.out.Write(TextOf(best[i]) + "\n");
      } else if (options_.n_best > 0) {
        WriteRanked(best[i], i + 1);
      } else {
        WriteJson(best[i]);
      }
    }
    ++sentence_;
    return console_.out_is_terminal || console_.input_is_terminal ? console_.out.Flush()
                                                                  : console_.out.status();
  }

 private:
  // The text of a translation; ids where the source was given as ids.
  std::string TextOf(const Translation& translation) const {
    const ModelText* const text = session_.model().text();
    std::string line;
    if (words_ != nullptr && text != nullptr) {
      TextDecoder decoder(text->tokenizer());
      for (const uint32_t id : translation.ids) line += text->Decode(id, decoder);
      return Shown(line + decoder.Finish());
    }
    for (const uint32_t id : translation.ids) {
      if (!line.empty()) line += ' ';
      line += words_ != nullptr ? std::string(words_->Word(id)) : std::to_string(id);
    }
    return Shown(line);
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
    if (words_ != nullptr) line.Key("text").Text(TextOf(translation));
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
      line.Key("text").Text(TextOf(translation));
    }
    line.LogProbability(translation.log_probability);
    line.Key("score").Number(translation.score);
    line.Key("finished").Boolean(translation.finished);
    console_.out.Write(line.Finish());
  }

  const TranslateOptions& options_;
  const TranslationOptions& search_;
  Session& session_;
  Console& console_;
  const Vocabulary* const words_;  // null prints ids
  uint64_t sentence_ = 0;
};

// Translates each line as soon as it is read. Source and target have the same tokenizer and a
// vocabulary each.
Status TranslateText(const std::string& path, const ModelFile& file, Translator& translator) {
  KINGLET_ASSIGN_OR_RETURN(const auto splitter,
                           ModelText::Of(file.text_tables(), *file.source_vocabulary()));
  TextReader reader(*splitter, InputName(path));
  const auto translate = [&](std::string_view line, bool /*ended*/ = true) -> Status {
    TokenSequence sequence;
    KINGLET_RETURN_IF_ERROR(reader.AddLine(line, sequence));
    reader.NextLine();
    return translator.Translate(sequence.ids);
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
  TranslationOptions search{0, options.max_length, options.length_penalty,
                            std::max(options.n_best, 1U)};
  KINGLET_ASSIGN_OR_RETURN(search.end_token, EndToken(*model));
  KINGLET_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(model, {.lanes = options.beam}));
  Translator translator(options, search, *session, console);
  if (!options.ids.empty()) {
    KINGLET_ASSIGN_OR_RETURN(const auto lines, ReadIdLines(options.ids));
    for (const std::vector<uint32_t>& ids : lines) {
      KINGLET_RETURN_IF_ERROR(translator.Translate(ids));
    }
    return Status();
  }
  if (model->file().source_vocabulary() == nullptr) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "translate", options.run.model,
                           "a model with a source vocabulary, or --ids FILE", "ids only");
  }
  return TranslateText(options.text.empty() ? "-" : options.text, model->file(), translator);
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
  AddModelOptions(translate, options->run);
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
  translate.Footer("Example:\n  kinglet translate model.kgl --beam 5 < source.txt");
  return {translate, [options] { return CheckTranslateInput(*options); },
          [options](Console& console) { return Translate(*options, console); }};
}

}  // namespace kinglet
