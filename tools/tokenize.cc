// kinglet tokenize: text to tokens as a model tokenizes it, and tokens to text.
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <variant>

#include "converters/tokenizers/tokenizer_file.h"
#include "format/input_file.h"
#include "format/message_text.h"
#include "format/model_file.h"
#include "format/overloaded.h"
#include "runtime/text/model_text.h"
#include "runtime/text/tokenizer.h"
#include "tools/commands.h"
#include "tools/json_lines.h"
#include "tools/text_lines.h"

namespace kinglet {
namespace {

struct TokenizeOptions {
  TokenizerChoice tokenizer;
  bool jsonl = false, json = false;
  bool decode = false;
};

// A tokenizer alone, or with a model's words.
struct TextSplitter {
  std::shared_ptr<const ModelFile> file;
  std::shared_ptr<const ModelText> model;  // null without a model
  std::shared_ptr<const Tokenizer> tokenizer;

  uint32_t size() const { return model ? model->vocabulary().size() : tokenizer->size(); }
  Result<TokenizedText> Encode(std::string_view text) const {
    return model ? model->Encode(text) : tokenizer->Encode(text);
  }
  std::string Decode(uint32_t id, TextDecoder& decoder) const {
    return model ? model->Decode(id, decoder) : decoder.Add(id);
  }
};

bool IsModelFile(const std::string& path) {
  static constexpr std::string_view kFirstBytes = "KGL1";
  const Result<InputFile> file = InputFile::Open(path);
  std::array<std::byte, kFirstBytes.size()> bytes{};
  if (!file.ok() || file->size() < bytes.size() || !file->ReadAt(0, bytes).ok()) return false;
  return std::memcmp(bytes.data(), kFirstBytes.data(), bytes.size()) == 0;
}

Result<TextSplitter> OpenCutter(const TokenizerChoice& choice) {
  TextSplitter splitter;
  if (!IsModelFile(choice.name)) {
    KINGLET_ASSIGN_OR_RETURN(TextTables tables, ReadTokenizer(choice));
    KINGLET_ASSIGN_OR_RETURN(splitter.tokenizer, Tokenizer::Create(std::move(tables)));
    return splitter;
  }
  KINGLET_ASSIGN_OR_RETURN(splitter.file, ModelFile::Open(choice.name));
  KINGLET_ASSIGN_OR_RETURN(splitter.model, ModelText::Of(*splitter.file));
  if (splitter.model == nullptr) {
    return Status::Refusal(
        KINGLET_UNSUPPORTED, choice.name, "tokenizer",
        "a model with words, or a masked model with a tokenizer (convert --vocab, --tokenizer)",
        "one without");
  }
  splitter.tokenizer = {splitter.model, &splitter.model->tokenizer()};
  return splitter;
}

std::string TokensLine(const TextSplitter& splitter, const TokenizedText& tokenized) {
  JsonLine line;
  const bool has_ids = splitter.size() > 0;
  if (has_ids) {
    line.Key("ids").BeginArray();
    for (const TokenizedText::Token& token : tokenized.tokens) line.Integer(token.id);
    line.EndArray();
  }
  line.Key("pieces").BeginArray();
  for (const TokenizedText::Token& token : tokenized.tokens) line.Text(tokenized.Piece(token));
  line.EndArray();
  if (has_ids) {
    line.Key("ranges").BeginArray();
    for (const TokenizedText::Token& token : tokenized.tokens) {
      line.BeginArray().Integer(token.begin).Integer(token.end).EndArray();
    }
    line.EndArray();
  }
  if (!tokenized.segments.empty()) {
    line.Key("segments").BeginArray();
    for (const uint8_t segment : tokenized.segments) line.Integer(segment);
    line.EndArray();
  }
  return line.Finish();
}

Result<std::string> JoinWords(const TextSplitter& splitter,
                              const std::variant<Ids, Pieces>& tokens) {
  TextDecoder decoder(*splitter.tokenizer);
  std::string text;
  KINGLET_RETURN_IF_ERROR(std::visit(
      Overloaded{[&](const Ids& ids) {
                   for (const uint32_t id : ids) {
                     if (splitter.size() == 0) {
                       return Status::Refusal(
                           KINGLET_UNSUPPORTED, "standard input", "line",
                           "{\"pieces\":[..]}, as byte-pair codes have no ids",
                           "ids (give the model file, whose vocabulary has ids)");
                     }
                     if (id >= splitter.size()) {
                       return Status::Refusal(KINGLET_ID_OUT_OF_RANGE, "standard input", "id",
                                              "a number below " + std::to_string(splitter.size()),
                                              std::to_string(id));
                     }
                     text += splitter.Decode(id, decoder);
                   }
                   return Status();
                 },
                 [&](const Pieces& pieces) {
                   for (const std::string& piece : pieces) text += decoder.Add(piece);
                   return Status();
                 }},
      tokens));
  return text + decoder.Finish();
}

Result<std::string> AnswerLine(const TokenizeOptions& options, const TextSplitter& splitter,
                               std::string_view line) {
  if (options.decode) {
    KINGLET_ASSIGN_OR_RETURN(const auto tokens, ParseTokensLine(line));
    KINGLET_ASSIGN_OR_RETURN(const std::string text, JoinWords(splitter, tokens));
    return JsonLine().Key("text").Text(text).Finish();
  }
  std::string text;
  if (options.jsonl) {
    KINGLET_ASSIGN_OR_RETURN(text, ParseTextLine(line));
    line = text;
  }
  KINGLET_ASSIGN_OR_RETURN(const TokenizedText tokenized, splitter.Encode(line));
  return TokensLine(splitter, tokenized);
}

Status TokenizeInput(const TokenizeOptions& options, Console& console) {
  KINGLET_ASSIGN_OR_RETURN(const TextSplitter splitter, OpenCutter(options.tokenizer));
  uint64_t number = 0;
  return ForEachInputLine([&](std::string_view line, bool /*ended*/) -> Status {
    number += 1;
    Result<std::string> answer = AnswerLine(options, splitter, line);
    if (!answer.ok()) {
      std::string message = answer.status().message();
      const std::string place = "standard input: ", line_place = place + "line: ";
      if (message.starts_with(line_place)) {
        message.erase(0, line_place.size());
      } else if (message.starts_with(place)) {
        message.erase(0, place.size());
      }
      return Status(answer.status().code(), place + Numbered("line", number) + ": " + message);
    }
    console.out.Write(*answer);
    if (console.out_is_terminal || console.input_is_terminal) return console.out.Flush();
    return console.out.status();
  });
}

}  // namespace

Command AddTokenize(Arguments& program) {
  const auto options = std::make_shared<TokenizeOptions>();
  Arguments tokenize = program.AddSubcommand(
      "tokenize", "Split the lines of standard input into tokens, or join tokens to text");
  TokenizerChoice& choice = options->tokenizer;
  tokenize
      .Add("TOKENIZER", choice.name,
           "a model file, a SentencePiece model, byte-pair codes, a WordPiece "
           "vocabulary, or spaces, wikitext or characters")
      .Required()
      .Placeholder("");
  tokenize.AddFlag("--lowercase", choice.lower_case, "lower-case the text first");
  tokenize.AddFlag("--json", options->json, "changes nothing: the output is JSON Lines");
  tokenize.AddFlag("--jsonl", options->jsonl,
                   "each line is a JSON string, or {\"hex\":\"..\"} for any bytes");
  tokenize.AddFlag("--decode", options->decode,
                   "each line contains ids, {\"ids\":[..]} or {\"pieces\":[..]}; print their text");
  Option known = tokenize.Add("--subword-vocabulary", choice.known_tokens,
                              "\"token count\" lines; rarer tokens are split again");
  known.Placeholder("FILE");
  tokenize.Add("--threshold", choice.threshold, "smallest count of a token that is not split")
      .Placeholder("N")
      .Needs(known);
  tokenize.Footer("Example:\n  echo \"Hello world\" | kinglet tokenize bpe.model");
  return {tokenize, [] { return Status(); },
          [options](Console& console) { return TokenizeInput(*options, console); }};
}

}  // namespace kinglet
