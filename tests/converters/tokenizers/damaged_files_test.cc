// Damaged files of tokenizers and vocabularies are refused or harmless: every single bit flipped,
// every truncation, and random changes. The environment variable KINGLET_MUTATIONS gives the number
// of random changes, and then nothing is omitted; without it there are few.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "converters/texts/vocabulary_file.h"
#include "converters/tokenizers/tokenizer_file.h"
#include "runtime/text/model_text.h"
#include "tests/converters/tokenizers/piece_model.h"

namespace kinglet::damaged_files_test {
namespace {

constexpr int kUsualMutations = 1000;
// A text that an intact copy of each file tokenizes, and bytes of no vocabulary.
constexpr std::string_view kTexts[] = {"",
                                       "ab a\xC3\xA9 <0x41> abab [MASK] ||| unaffable\xFF\xE2\x96",
                                       "  aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab "};

// Unigram pieces of every type, with a normaliser, a denormaliser and byte fallback.
std::string LargerModel() {
  std::string model = ProtoPiece("<unk>", 0, 2) + ProtoPiece("<s>", 0, 3);
  model += ProtoPiece("\xE2\x96\x81", -1, 1) + ProtoPiece("a", -2.5F, 1);
  model += ProtoPiece("ab", -1.5F, 1) + ProtoPiece("b", -3, 5) + ProtoPiece("[MASK]", 0, 4);
  for (int byte = 0; byte < 256; ++byte) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(byte));
    model += ProtoPiece(name, 0, 6);
  }
  model += ProtoText(2, ProtoNumber(3, 1) + ProtoNumber(35, 1) + ProtoText(44, " ? "));
  // A double array with one rule: "A" becomes "a".
  std::string map(4, '\0');
  std::vector<uint32_t> units(0xC2, 0);
  units[0] = 0x80 << 10;
  units[0x80] = 1;  // no byte leads there
  units[0x80 ^ 'A'] = uint32_t{'A'} | 1U << 8 | (0xC1 ^ 0x40) << 10;
  units[0x40] = 0x80000000U;
  for (const uint32_t unit : units) {
    for (int shift = 0; shift < 32; shift += 8) map += static_cast<char>(unit >> shift & 0xFF);
  }
  const auto bytes = static_cast<uint32_t>(map.size() - 4);
  for (int i = 0; i < 4; ++i)
    map[static_cast<size_t>(i)] = static_cast<char>(bytes >> 8 * i & 0xFF);
  map += std::string("a\0", 2);
  return model + ProtoText(3, ProtoText(1, "x") + ProtoText(2, map)) +
         ProtoText(5, ProtoNumber(3, 0) + ProtoNumber(4, 0));
}

std::optional<int> Mutations() {
  const char* const wanted = std::getenv("KINGLET_MUTATIONS");
  return wanted == nullptr ? std::nullopt : std::optional(std::stoi(wanted));
}

struct Sample {
  const char* name;
  std::string bytes;
  std::string known;  // of byte-pair codes
};

std::vector<Sample> Samples() {
  const std::string known = "ab@@ 9\na 3\nb 3\n";
  return {{"BPE.model", SmallModel(), ""},
          {"unigram.model", LargerModel(), ""},
          {"subword-nmt", "#version: 0.2\na b\nab a\nab ab</w>\n", known},
          {"subword-nmt 0.1", "#version: 0.1\na b\nab </w>\n", known},
          {"fastBPE", "a b 99\na b</w> 12\nab ab</w> 7\n", ""},
          {"vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\nun\n##aff\n##able\n", ""}};
}

std::vector<Sample> Vocabularies() {
  std::string array = std::string("\x93NUMPY\x01\0", 8) + std::string("\x46\0", 2) +
                      "{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }";
  array.resize(10 + 70, ' ');
  array += std::string("a\0\0\0b\0\0\0c\0\0\0\0\0\0\0", 16);
  // protocol 2: {"idx2sym": ["a", "b"]}
  const std::string pickle(
      "\x80\x02}q\x00U\x07idx2symq\x01]q\x02(U\x01"
      "aU\x01"
      "bes.",
      29);
  return {{"words", "the\n<eos>\n<unk>\ncat\xC3\xA9\n", ""},
          {"dict.txt", "the 99\ncat 12\n\xC3\xA9 1\nx 1 #fairseq:overwrite\n", ""},
          {"words.json", R"(["the","<unk>","\n","\u00e9\ud83d\ude00"])", ""},
          {"words.npy", array, ""},
          {"words.pkl", pickle, ""}};
}

void CheckCut(const TokenizedText& tokenized, const Tokenizer& tokenizer, std::string_view text) {
  TextDecoder by_id(tokenizer), by_piece(tokenizer);
  for (const TokenizedText::Token& token : tokenized.tokens) {
    ASSERT_LE(token.begin, token.end);
    ASSERT_LE(token.end, text.size());
    ASSERT_LE(size_t{token.piece} + token.bytes, tokenized.spellings.size());
    if (tokenizer.size() > 0) {
      ASSERT_LT(token.id, tokenizer.size());
      by_id.Add(token.id);
    }
    by_piece.Add(tokenized.Piece(token));
  }
  by_id.Finish();
  by_piece.Finish();
}

// Reads a tokenizer from a file, packs and reads its text tables, and tokenizes with them.
void TryTokenizer(const std::string& path, const std::string& known) {
  auto tables = ReadTokenizer({path, false, known, 3});
  if (!tables.ok()) {
    EXPECT_EQ(tables.status().message().find('\n'), std::string::npos);
    return;
  }
  const auto packed = PackTextTables(*tables);
  ASSERT_TRUE(packed.ok()) << packed.status().message();
  tables = ReadTextTables(*packed);
  ASSERT_TRUE(tables.ok()) << tables.status().message();
  const auto tokenizer = Tokenizer::Create(std::move(tables).value());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  for (const std::string_view text : kTexts) {
    const auto tokenized = (*tokenizer)->Encode(text);
    if (tokenized.ok()) CheckCut(*tokenized, **tokenizer, text);
  }
}

// Words that are read either make a vocabulary or are refused as one.
void TryVocabulary(const std::string& path) {
  const auto file = ReadVocabularyFile(path);
  if (!file.ok()) {
    EXPECT_EQ(file.status().message().find('\n'), std::string::npos);
    return;
  }
  const auto segments = Vocabulary::Pack(file->words);
  if (!segments.ok()) return;
  const auto size = static_cast<uint32_t>(file->words.size());
  const auto vocabulary = Vocabulary::FromSegments(size, segments->words, segments->ranks);
  ASSERT_TRUE(vocabulary.ok()) << vocabulary.status().message();
  for (uint32_t id = 0; id < size; ++id) ASSERT_EQ(vocabulary->Find(file->words[id]), id);
}

class DamagedFiles : public testing::Test {
 protected:
  void Try(const Sample& sample, bool vocabulary) {
    const std::string path = Write("file", sample.bytes);
    if (vocabulary) return TryVocabulary(path);
    // For byte-pair codes, the damaged file may also be their vocabulary.
    TryTokenizer(path, sample.known.empty() ? "" : Write("known", sample.known));
  }

  void TryEachBitAndLength(const Sample& sample, bool vocabulary) {
    SCOPED_TRACE(sample.name);
    for (std::string Sample::*part : {&Sample::bytes, &Sample::known}) {
      Sample damaged = sample;
      const std::string& intact = sample.*part;
      for (size_t bit = 0; bit < 8 * intact.size(); ++bit) {
        // Large parts of the larger model are alike.
        if (intact.size() > 1000 && bit % 61 >= 8 && !Mutations()) continue;
        (damaged.*part)[bit / 8] = static_cast<char>(intact[bit / 8] ^ (1 << bit % 8));
        Try(damaged, vocabulary);
        (damaged.*part)[bit / 8] = intact[bit / 8];
      }
      for (size_t length = 0; length < intact.size(); ++length) {
        damaged.*part = intact.substr(0, length);
        Try(damaged, vocabulary);
      }
    }
  }

  // Changes, removes, repeats and inserts a few bytes.
  std::string Mutated(std::string bytes, const std::vector<Sample>& others) {
    const auto below = [&](size_t limit) { return random_() % std::max<size_t>(limit, 1); };
    for (size_t edits = 1 + below(8); edits > 0; --edits) {
      const size_t at = below(bytes.size()),
                   length = below(std::min<size_t>(16, bytes.size() - at));
      switch (below(6)) {
        case 0:
          if (!bytes.empty()) bytes[at] = static_cast<char>(random_());
          break;
        case 1:
          bytes.erase(at, length);
          break;
        case 2:
          bytes.insert(at, bytes.substr(at, length));
          break;
        case 3:
          bytes.insert(at, 1 + below(20), static_cast<char>(random_()));
          break;
        case 4: {
          const std::string& other = others[below(others.size())].bytes;
          const size_t from = below(other.size());
          bytes.insert(at, other.substr(from, below(40)));
          break;
        }
        default:
          if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
      }
    }
    return bytes;
  }

  static std::string Write(const char* name, const std::string& bytes) {
    const std::string path = testing::TempDir() + "damaged_" + name;
    std::filesystem::remove(path);  // some file systems flush a file that is written over
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::minstd_rand random_{20};
};

TEST_F(DamagedFiles, IntactOnesAreRead) {
  for (const Sample& sample : Samples()) {
    const auto tables = ReadTokenizer({Write("file", sample.bytes), false, {}, 0});
    EXPECT_TRUE(tables.ok()) << sample.name << ": " << tables.status().message();
  }
  for (const Sample& sample : Vocabularies()) {
    const auto words = ReadVocabularyFile(Write("file", sample.bytes));
    EXPECT_TRUE(words.ok()) << sample.name << ": " << words.status().message();
  }
}

TEST_F(DamagedFiles, EachBitAndEachLengthOfTokenizers) {
  for (const Sample& sample : Samples()) TryEachBitAndLength(sample, false);
}

TEST_F(DamagedFiles, EachBitAndEachLengthOfVocabularies) {
  for (const Sample& sample : Vocabularies()) TryEachBitAndLength(sample, true);
}

TEST_F(DamagedFiles, RandomChanges) {
  const int count = Mutations().value_or(kUsualMutations);
  std::vector<Sample> samples = Samples();
  const size_t tokenizers = samples.size();
  for (Sample& sample : Vocabularies()) samples.push_back(std::move(sample));
  for (int i = 0; i < count && !HasFailure(); ++i) {
    const size_t which = static_cast<size_t>(i) % samples.size();
    Sample damaged = samples[which];
    SCOPED_TRACE(testing::Message() << "mutation " << i << " of " << damaged.name);
    damaged.bytes = Mutated(damaged.bytes, samples);
    if (!damaged.known.empty()) damaged.known = Mutated(damaged.known, samples);
    Try(damaged, which >= tokenizers);
  }
}

}  // namespace
}  // namespace kinglet::damaged_files_test
