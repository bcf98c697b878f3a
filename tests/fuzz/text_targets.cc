// Files of text: recipes, configurations, vocabularies, ids, pairs, n-best lists, tokenizers.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "converters/checkpoints/codes_file.h"
#include "converters/checkpoints/config_file.h"
#include "converters/recipe/recipe.h"
#include "converters/recipe/recipe_node.h"
#include "converters/texts/pair_file.h"
#include "converters/texts/text_reader.h"
#include "converters/texts/token_file.h"
#include "converters/texts/vocabulary_file.h"
#include "converters/tokenizers/character_map.h"
#include "converters/tokenizers/tokenizer_file.h"
#include "format/text_tables.h"
#include "format/vocabulary.h"
#include "runtime/text/tokenizer.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/random_tables.h"
#include "tests/fuzz/targets.h"
#include "tools/document_reader.h"
#include "tools/hypothesis_lists.h"
#include "tools/text_lines.h"

namespace kinglet::fuzz {
namespace {

std::string_view TextOf(Input input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

void AskConfiguration(const ConfigFile& file, int depth) {
  for (const std::string& key : file.Keys()) {
    (void)file.Tag(key);
    ExpectOneLine(file.Integer(key).status());
    ExpectOneLine(file.Number(key).status());
    ExpectOneLine(file.Text(key).status());
    ExpectOneLine(file.Boolean(key).status());
    ExpectOneLine(file.Integers(key).status());
    ExpectOneLine(file.Texts(key).status());
    const auto section = file.Section(key);
    ExpectOneLine(section.status());
    if (section.ok() && depth < 3) AskConfiguration(*section, depth + 1);
  }
  ExpectOneLine(file.WithReferences(file).status());
}

void ReadWords(const std::string& path, Input) {
  for (const WordNumbers numbers :
       {WordNumbers::kByLine, WordNumbers::kFairseq, WordNumbers::kEither}) {
    const auto file = ReadVocabularyFile(path, {numbers, 6});
    ExpectOneLine(file.status());
    if (!file.ok()) continue;
    ExpectOneLine(Vocabulary::Pack(file->words).status());
  }
}

void ReadNumbers(const std::string& path, Input) {
  ExpectOneLine(ReadIds(path).status());
  ExpectOneLine(ReadIdLines(path).status());
  ExpectOneLine(ReadPairs(path, 2).status());
}

void ReadLists(const std::string&, Input input) {
  const std::string_view text = TextOf(input);
  for (const ListFormat format : {ListFormat::kKaldi, ListFormat::kTabs, ListFormat::kJson}) {
    auto lists = ParseHypothesisLists(text, format, "lists");
    ExpectOneLine(lists.status());
    if (lists.ok()) ExpectOneLine(AddGivenScores(text, "scores", *lists));
  }
  (void)GuessListFormat(text);
  ExpectOneLine(ParseReferences(text, "references").status());
}

// Tokenizes a text by tables, and joins it again. A tokenizer gives each byte of the prepared text
// to one token or a few, in order.
void TokenizeText(const TextTables& tables, std::string_view text) {
  const auto packed = PackTextTables(tables);
  ExpectOneLine(packed.status());
  if (packed.ok()) {
    const auto read = ReadTextTables(*packed);
    Expect(read.ok() && *read == tables, "expected the tables that were packed");
  }
  const auto tokenizer = Tokenizer::Create(tables);
  ExpectOneLine(tokenizer.status());
  if (!tokenizer.ok()) return;
  const auto tokenized = (*tokenizer)->Encode(text);
  ExpectOneLine(tokenized.status());
  if (!tokenized.ok()) return;
  const uint64_t most = kMaxTextGrowth * text.size() + kFreeTextBytes;
  Expect(tokenized->tokens.size() <= most, "expected a token for each byte at most, found " +
                                               std::to_string(tokenized->tokens.size()) + " of " +
                                               std::to_string(text.size()));
  TextDecoder decoder(**tokenizer);
  uint32_t place = 0;
  for (const TokenizedText::Token& token : tokenized->tokens) {
    Expect(token.begin <= token.end && token.end <= text.size() && token.begin >= place,
           "expected tokens in order inside the text");
    place = token.begin;
    (void)(token.id == kNoPieceId ? decoder.Add(tokenized->Piece(token)) : decoder.Add(token.id));
  }
  (void)decoder.Finish();
}

void ReadCutter(const std::string& path, Input input) {
  TokenizerChoice choice;
  choice.name = path;
  auto tables = ReadTokenizer(choice);
  ExpectOneLine(tables.status());
  if (tables.ok()) TokenizeText(*tables, TextOf(input));
  choice.known_tokens = path;
  choice.threshold = 1;
  tables = ReadTokenizer(choice);
  ExpectOneLine(tables.status());
}

// Tables that no program writes, and texts of the same letters and marks.
void CutByRandomTables(const std::string&, Input input) {
  ByteReader bytes(input);
  const TextTables tables = MakeRandomTables(bytes);
  std::string text;
  while (!bytes.ended()) text += RandomSymbol(bytes);
  TokenizeText(tables, text);
}

void ReadMap(const std::string&, Input input) {
  ByteReader bytes(input);
  const auto rules = ReadCharacterMap(MakeRandomMap(bytes));
  ExpectOneLine(rules.status());
}

void ReadDocuments(const std::string& path, Input) {
  for (const char* field : {"", "text"}) {
    auto reader = DocumentReader::Open(path, {field, true, false});
    ExpectOneLine(reader.status());
    for (bool more = reader.ok(); more;) {
      const auto document = reader->Next();
      ExpectOneLine(document.status());
      more = document.ok() && document->has_value();
    }
  }
}

void ReadRunningText(const std::string& path, Input input) {
  ExpectOneLine(ForEachWord(path, [](std::string_view word) {
    Expect(!word.empty(), "expected words that are not empty");
    return Status();
  }));
  const std::string words[] = {"the", "<eos>", "<unk>", "a"};
  const auto packed = Vocabulary::Pack(words);
  const auto vocabulary = Vocabulary::FromSegments(4, packed->words, packed->ranks);
  TokenSequence sequence;
  const auto model_text = ModelText::Of(nullptr, *vocabulary);
  TextReader reader(**model_text, "text");
  ExpectOneLine(reader.Add(TextOf(input), sequence));
  ExpectOneLine(reader.Finish(sequence));
  for (const uint32_t id : sequence.ids) Expect(id < 4, "expected ids of the vocabulary");
}

void ReadTypedLine(const std::string&, Input input) {
  ExpectOneLine(ParseTextLine(TextOf(input)).status());
  ExpectOneLine(ParseTokensLine(TextOf(input)).status());
}

constexpr std::array kReaders = {ReadWords,     ReadNumbers,       ReadLists,
                                 ReadCutter,    ReadDocuments,     ReadRunningText,
                                 ReadTypedLine, CutByRandomTables, ReadMap};

}  // namespace

void RunRecipe(Input input) {
  const auto node = RecipeNode::Parse("recipe.json", TextOf(input));
  ExpectOneLine(node.status());
  if (node.ok()) ExpectOneLine(ParseRecipe(*node).status());
  const MemoryFile file(input);
  const auto configuration = ConfigFile::Read(file.path());
  ExpectOneLine(configuration.status());
  if (configuration.ok()) AskConfiguration(*configuration, 0);
}

void RunTexts(Input input) {
  if (input.empty()) return;
  const Input content = input.subspan(1);
  const MemoryFile file(content);
  kReaders[static_cast<uint8_t>(input[0]) % kReaders.size()](file.path(), content);
}

}  // namespace kinglet::fuzz
