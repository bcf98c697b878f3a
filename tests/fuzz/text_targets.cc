// Files of text: recipes, configurations, vocabularies, ids, pairs, n-best lists, tokenizers.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <variant>
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
#include "runtime/session.h"
#include "runtime/text/marks.h"
#include "runtime/text/merge_queue.h"
#include "runtime/text/tokenizer.h"
#include "runtime/text/word_merges.h"
#include "runtime/text_prefix.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/random_tables.h"
#include "tests/fuzz/targets.h"
#include "tests/support/model_builder.h"
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
    if (lists.ok()) ExpectOneLine(AddGivenScores(text, "scores", 1, *lists));
  }
  (void)GuessListFormat(text);
  ExpectOneLine(ParseReferences(text, "references").status());
}

// Byte-pair codes put every byte of a word into one token.
void ExpectWordsTokenized(std::string_view text, const TokenizedText& tokenized) {
  size_t place = 0;
  for (const TokenizedText::Token& token : tokenized.tokens) {
    Expect(token.begin < token.end, "expected tokens that are not empty");
    const std::string_view between = text.substr(place, token.begin - place);
    Expect(between.find_first_not_of(" \r\n") == between.npos, "expected every byte in a token");
    std::string_view spelling = tokenized.Piece(token);
    const std::string_view taken = text.substr(token.begin, token.end - token.begin);
    if (spelling.size() > taken.size()) spelling.remove_suffix(kJoinMark.size());
    Expect(spelling == taken, "expected a token of the text's bytes");
    place = token.end;
  }
  const std::string_view rest = text.substr(place);
  Expect(rest.find_first_not_of(" \r\n") == rest.npos, "expected every byte in a token");
}

// Tokenizes a text with tables, and joins it again. A tokenizer gives each byte of the text to one
// token or a few, in order.
void TokenizeText(const TextTables& tables, std::string_view text, Marks marks = {}) {
  const auto packed = PackTextTables(tables);
  ExpectOneLine(packed.status());
  if (packed.ok()) {
    const auto read = ReadTextTables(*packed);
    Expect(read.ok() && *read == tables, "expected the tables that were packed");
  }
  const auto tokenizer = Tokenizer::Create(tables, std::move(marks));
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
  if (std::holds_alternative<MergeTables>(tables.method) && !tables.lower_case) {
    ExpectWordsTokenized(text, *tokenized);
  }
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

// Symbols, with spaces between some; sometimes repeated until a tokenizer changes its method for
// many symbols (merge_queue.h).
std::string RandomText(ByteReader& bytes, SymbolMaker& symbols) {
  const bool repeated = bytes.Byte() % 16 == 1;
  std::string text;
  while (!bytes.ended() && text.size() < 4096) {
    text += symbols.Next();
    if (bytes.Byte() % 4 == 0) text += ' ';
  }
  while (repeated && !text.empty() && text.size() <= 2 * MergeQueue::kFewPlaces) text += text;
  return text;
}

// Tables that no program writes, and texts of the same letters and marks.
void TokenizeByRandomTables(const std::string&, Input input) {
  ByteReader bytes(input);
  SymbolMaker symbols(bytes);
  const TextTables tables = MakeRandomTables(bytes, symbols);
  Marks marks;
  if (bytes.Bit()) {
    for (const std::string& symbol : symbols.made()) marks.Add(symbol);
  }
  TokenizeText(tables, RandomText(bytes, symbols), std::move(marks));
}

// A model of any words and tables answers about the text that follows.
void AskByRandomTables(const std::string&, Input input) {
  ByteReader bytes(input);
  SymbolMaker symbols(bytes);
  static const ModelDraft kSmall = TinyMicronet({.quantised = true});
  ModelDraft draft = kSmall;
  if (bytes.Byte() % 8 != 0) draft.tokenizer = MakeRandomTables(bytes, symbols);
  std::set<std::string> words;
  for (size_t i = bytes.Between(0, 20); i > 0; --i) {
    words.insert(symbols.Next() + (bytes.Byte() % 4 == 0 ? "@@" : ""));
  }
  size_t id = 0;
  for (auto word = words.begin(); word != words.end() && id < draft.vocabulary.size(); ++word) {
    draft.vocabulary[id++] = *word;
  }
  for (; id < draft.vocabulary.size(); ++id)
    draft.vocabulary[id] = "\xEF\xBC\x90" + std::to_string(id);
  const auto file = SerialiseModel(draft);
  ExpectOneLine(file.status());
  if (!file.ok()) return;
  const auto model = Model::FromBytes(*file, {});
  ExpectOneLine(model.status());
  if (!model.ok()) return;
  const auto session = Session::Create(*model);
  const uint32_t token = bytes.Byte() % (*model)->vocabulary_size();
  Expect(session.ok() && (*session)->StepToken(token).ok(), "expected a session");
  auto prefixes = TextPrefix::Create(**model);
  ExpectOneLine(prefixes.status());
  if (!prefixes.ok()) return;
  constexpr uint64_t kMostSteps = 64;
  const uint32_t count = bytes.Between(1, 4);
  const std::string prefix = RandomText(bytes, symbols).substr(0, 64);
  const auto whole = prefixes->Probability(**session, 0, prefix, kMostSteps);
  ExpectOneLine(whole.status());
  const auto next = prefixes->NextCharacters(**session, 0, prefix, kMostSteps);
  ExpectOneLine(next.status());
  if (whole.ok() && next.ok()) {
    double sum = 0;
    for (const NextCharacter& character : *next) sum += character.probability;
    Expect(std::abs(sum - *whole) <= 1e-5 * *whole + 1e-12,
           "expected next characters of " + std::to_string(*whole) + " together, found " +
               std::to_string(sum));
  }
  ExpectOneLine(prefixes->Best(**session, 0, prefix, {count, count, kMostSteps}).status());
}

void ReadMap(const std::string&, Input input) {
  ByteReader bytes(input);
  const auto rules = ReadCharacterMap(MakeRandomMap(bytes));
  ExpectOneLine(rules.status());
}

void ReadDocuments(const std::string& path, Input) {
  for (const char* field : {"", "text"}) {
    DocumentFormat format;
    format.field = field;
    format.annotated = true;
    auto reader = DocumentReader::Open(path, format);
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

constexpr std::array kReaders = {
    ReadWords,     ReadNumbers,      ReadLists,     ReadCutter,
    ReadDocuments, ReadRunningText,  ReadTypedLine, TokenizeByRandomTables,
    ReadMap,       AskByRandomTables};

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
